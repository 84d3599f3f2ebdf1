// Writes values as JSON. Nothing here depends on the locale, which is the program's.
#include <charconv>
#include <cmath>

#include "nvtx/payload/payload.h"

namespace flame::nvtx {
namespace {

template <class Number>
void append_chars(std::string* json, Number value) {
  char digits[40];
  const auto end = std::to_chars(digits, digits + sizeof digits, value);
  json->append(digits, static_cast<size_t>(end.ptr - digits));
}

// JSON has no such numbers.
template <class Number>
void append_float(std::string* json, Number value) {
  if (std::isnan(value)) {
    json->append("\"nan\"");
  } else if (std::isinf(value)) {
    json->append(value < 0 ? "\"-inf\"" : "\"inf\"");
  } else {
    append_chars(json, value);
  }
}

void append_escaped(std::string* json, char byte) {
  constexpr char kDigits[] = "0123456789abcdef";
  const auto code = static_cast<unsigned char>(byte);
  if (byte == '"' || byte == '\\') {
    json->push_back('\\');
    json->push_back(byte);
  } else if (code < 0x20) {
    json->append("\\u00");
    json->push_back(kDigits[code >> 4]);
    json->push_back(kDigits[code & 15]);
  } else {
    json->push_back(byte);
  }
}

bool continues(char byte) { return (byte & 0xc0) == 0x80; }

}  // namespace

// A character that has begun is written to its end, which is not far, or it is none.
void append_json(std::string* json, std::string_view text) {
  constexpr size_t kMaxContinued = 3;
  json->push_back('"');
  for (char byte : text) {
    if (json->size() >= kMaxJson + kMaxContinued) break;
    if (json->size() >= kMaxJson && !continues(byte)) break;
    append_escaped(json, byte);
  }
  json->push_back('"');
}

void append_number(std::string* json, uint64_t value) { append_chars(json, value); }
void append_number(std::string* json, int64_t value) { append_chars(json, value); }
void append_number(std::string* json, double value) { append_float(json, value); }
void append_number(std::string* json, float value) { append_float(json, value); }

void append_number(std::string* json, unsigned __int128 value, bool is_signed) {
  const bool negative = is_signed && static_cast<__int128>(value) < 0;
  if (negative) value = -value;
  char digits[40];
  char* first = digits + sizeof digits;
  do {
    *--first = static_cast<char>('0' + static_cast<int>(value % 10));
    value /= 10;
  } while (value);
  if (negative) *--first = '-';
  json->append(first, static_cast<size_t>(digits + sizeof digits - first));
}

}  // namespace flame::nvtx
