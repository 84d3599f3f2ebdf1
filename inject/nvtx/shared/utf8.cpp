// Converts wide characters to UTF-8.
#include "nvtx/shared/utf8.h"

#include "dump/dump.h"

namespace flame::nvtx {
namespace {

constexpr uint32_t kReplacement = 0xfffd;

bool is_surrogate(uint32_t unit) { return unit >= 0xd800 && unit < 0xe000; }
bool is_high(uint32_t unit) { return unit >= 0xd800 && unit < 0xdc00; }
bool is_low(uint32_t unit) { return unit >= 0xdc00 && unit < 0xe000; }

void append_tail(std::string* to, uint32_t code_point, int bytes) {
  for (int shift = 6 * (bytes - 1); shift >= 0; shift -= 6)
    to->push_back(static_cast<char>(0x80 | (code_point >> shift & 0x3f)));
}

}  // namespace

void append_utf8(std::string* to, uint32_t code_point) {
  if (code_point > 0x10ffff || is_surrogate(code_point)) code_point = kReplacement;
  if (code_point < 0x80) {
    to->push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    to->push_back(static_cast<char>(0xc0 | code_point >> 6));
    append_tail(to, code_point, 1);
  } else if (code_point < 0x10000) {
    to->push_back(static_cast<char>(0xe0 | code_point >> 12));
    append_tail(to, code_point, 2);
  } else {
    to->push_back(static_cast<char>(0xf0 | code_point >> 18));
    append_tail(to, code_point, 3);
  }
}

void append_utf16(std::string* to, const char16_t* units, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t unit = units[i];
    if (is_high(unit) && i + 1 < count && is_low(units[i + 1])) {
      ++i;
      unit = 0x10000 + ((unit - 0xd800) << 10) + (units[i] - 0xdc00u);
    }
    append_utf8(to, unit);
  }
}

void append_utf32(std::string* to, const char32_t* units, size_t count) {
  for (size_t i = 0; i < count; ++i) append_utf8(to, units[i]);
}

std::string utf8(const wchar_t* wide) {
  static_assert(sizeof(wchar_t) == sizeof(char32_t), "wide characters are UTF-32 on Linux");
  std::string made;
  while (*wide && made.size() <= kMaxText) append_utf8(&made, static_cast<uint32_t>(*wide++));
  return made;
}

}  // namespace flame::nvtx
