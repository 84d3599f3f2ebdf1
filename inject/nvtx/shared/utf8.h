// Converts wide characters to UTF-8.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace flame::nvtx {

void append_utf8(std::string* to, uint32_t code_point);
void append_utf16(std::string* to, const char16_t* units, size_t count);
void append_utf32(std::string* to, const char32_t* units, size_t count);
std::string utf8(const wchar_t* wide);

}  // namespace flame::nvtx
