// Reads names and lines of Python code objects, without the interpreter's help.
#pragma once
#include <cstdint>
#include <string_view>

#include "python/offsets.h"

namespace flame::python {

constexpr size_t kTextRoom = 4096;  // a name that is not ASCII is cut to this many bytes

// A `str` as UTF-8: its own memory, or `room` (kTextRoom bytes) when it has to be converted. "?"
// for one that is not ready for use (3.11).
std::string_view utf8(const char* text, const Offsets& offsets, char* room);

// The line of the instruction at `lasti` (bytes from the first one), 0 for none.
uint32_t line_of(const char* code, int32_t lasti, const Offsets& offsets);

}  // namespace flame::python
