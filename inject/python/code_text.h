// Reads names and lines of Python code objects, without the interpreter's help.
#pragma once
#include <cstdint>
#include <string_view>

#include "python/memory.h"
#include "python/offsets.h"

namespace flame::python {

// `Memory` is Trusted or Checked.

// A `str` as UTF-8: its own memory, or `room` (kTextRoom bytes) when it has to be converted. "?"
// for one that is not ready for use (3.11).
template <class Memory>
std::string_view utf8(const Memory& memory, const char* text, const Offsets& offsets, char* room);

// The line of the instruction at `lasti` (bytes from the first one), 0 for none.
template <class Memory>
uint32_t line_of(const Memory& memory, const char* code, int32_t lasti, const Offsets& offsets);

}  // namespace flame::python
