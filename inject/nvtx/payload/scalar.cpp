// Reads values of NVTX's predefined types.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "dump/dump.h"
#include "nvtx/payload/payload.h"
#include "nvtx/shared/names.h"
#include "nvtx/shared/utf8.h"

namespace flame::nvtx {
namespace {

template <class Value>
Value load(const void* data) {
  Value value;
  memcpy(&value, data, sizeof value);
  return value;
}

// An IEEE 754 number that has no type here, from its bits: exact, or the nearest double.
double widened(uint64_t mantissa, int mantissa_bits, int exponent, int exponent_bits,
               bool negative) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double fraction = std::ldexp(static_cast<double>(mantissa), -mantissa_bits);
  double value;
  if (exponent == (1 << exponent_bits) - 1) {
    value = mantissa ? NAN : INFINITY;
  } else {
    value = exponent ? std::ldexp(1 + fraction, exponent - bias) : std::ldexp(fraction, 1 - bias);
  }
  return negative ? -value : value;
}

float from_half(const void* data) {
  const auto bits = load<uint16_t>(data);
  return static_cast<float>(widened(bits & 0x3ff, 10, bits >> 10 & 0x1f, 5, bits >> 15));
}

float from_bf16(const void* data) {
  const uint32_t bits = static_cast<uint32_t>(load<uint16_t>(data)) << 16;
  return load<float>(&bits);
}

double from_quad(const void* data) {
  const auto bits = load<unsigned __int128>(data);
  const auto mantissa = static_cast<uint64_t>(bits >> 49) & ((uint64_t(1) << 63) - 1);
  return widened(mantissa, 63, static_cast<int>(bits >> 112 & 0x7fff), 15, bits >> 127 & 1);
}

void append_address(std::string* json, uint64_t address) {
  char text[32];
  json->append(text, static_cast<size_t>(snprintf(text, sizeof text, "\"0x%llx\"",
                                                  static_cast<unsigned long long>(address))));
}

bool is_signed(uint64_t type) {
  switch (type) {
    case NVTX_PAYLOAD_ENTRY_TYPE_SHORT:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT:
    case NVTX_PAYLOAD_ENTRY_TYPE_LONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_LONGLONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT8:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT16:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT32:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT64: return true;
    default: return false;
  }
}

template <class Signed, class Unsigned>
uint64_t widened(uint64_t type, const void* data) {
  return is_signed(type) ? static_cast<uint64_t>(load<Signed>(data)) : load<Unsigned>(data);
}

bool is_integer(uint64_t type) {
  if (type >= NVTX_PAYLOAD_ENTRY_TYPE_CHAR && type <= NVTX_PAYLOAD_ENTRY_TYPE_UINT64) return true;
  if (type >= kTypeRangeId && type <= NVTX_PAYLOAD_ENTRY_TYPE_TID_UINT64) return true;
  return type == NVTX_PAYLOAD_ENTRY_TYPE_SIZE;
}

bool append_float(std::string* json, uint64_t type, const void* data) {
  switch (type) {
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT32:
    case NVTX_PAYLOAD_ENTRY_TYPE_TF32: append_number(json, load<float>(data)); return true;
    case NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64: append_number(json, load<double>(data)); return true;
    case NVTX_PAYLOAD_ENTRY_TYPE_LONGDOUBLE:
      append_number(json, static_cast<double>(load<long double>(data)));
      return true;
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT16: append_number(json, from_half(data)); return true;
    case NVTX_PAYLOAD_ENTRY_TYPE_BF16: append_number(json, from_bf16(data)); return true;
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT128: append_number(json, from_quad(data)); return true;
    default: return false;
  }
}

bool append_integer(std::string* json, uint64_t type, const void* data) {
  uint64_t value;
  if (type == NVTX_PAYLOAD_ENTRY_TYPE_INT128 || type == NVTX_PAYLOAD_ENTRY_TYPE_UINT128) {
    append_number(json, load<unsigned __int128>(data), type == NVTX_PAYLOAD_ENTRY_TYPE_INT128);
  } else if (!integer(type, data, &value)) {
    return false;
  } else if (is_signed(type)) {
    append_number(json, static_cast<int64_t>(value));
  } else {
    append_number(json, value);
  }
  return true;
}

void append_registered(std::string* json, const void* handle) {
  if (!is_registered(handle)) return append_address(json, reinterpret_cast<uint64_t>(handle));
  append_json(json, static_cast<const RegisteredString*>(handle)->value);
}

}  // namespace

bool is_string(uint64_t type) {
  return type >= NVTX_PAYLOAD_ENTRY_TYPE_CSTRING && type <= NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF32;
}

bool is_character(uint64_t type) {
  return type == NVTX_PAYLOAD_ENTRY_TYPE_CHAR ||
         (type >= NVTX_PAYLOAD_ENTRY_TYPE_WCHAR && type <= NVTX_PAYLOAD_ENTRY_TYPE_CHAR32);
}

bool is_pointer(const Entry& entry) {
  if (entry.has(NVTX_PAYLOAD_ENTRY_FLAG_POINTER)) return true;
  return is_string(entry.type) && !entry.array() && !entry.detail;
}

size_t scalar_size(uint64_t type) {
  switch (type) {
    case NVTX_PAYLOAD_ENTRY_TYPE_CHAR:
    case NVTX_PAYLOAD_ENTRY_TYPE_UCHAR:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT8:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT8:
    case NVTX_PAYLOAD_ENTRY_TYPE_CHAR8:
    case NVTX_PAYLOAD_ENTRY_TYPE_BYTE: return 1;
    case NVTX_PAYLOAD_ENTRY_TYPE_SHORT:
    case NVTX_PAYLOAD_ENTRY_TYPE_USHORT:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT16:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT16:
    case NVTX_PAYLOAD_ENTRY_TYPE_CHAR16:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT16:
    case NVTX_PAYLOAD_ENTRY_TYPE_BF16: return 2;
    case NVTX_PAYLOAD_ENTRY_TYPE_INT:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT32:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT32:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT32:
    case NVTX_PAYLOAD_ENTRY_TYPE_TF32:
    case NVTX_PAYLOAD_ENTRY_TYPE_WCHAR:
    case NVTX_PAYLOAD_ENTRY_TYPE_CHAR32:
    case NVTX_PAYLOAD_ENTRY_TYPE_CATEGORY:
    case NVTX_PAYLOAD_ENTRY_TYPE_COLOR_ARGB:
    case NVTX_PAYLOAD_ENTRY_TYPE_PID_UINT32:
    case NVTX_PAYLOAD_ENTRY_TYPE_TID_UINT32: return 4;
    case NVTX_PAYLOAD_ENTRY_TYPE_LONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_ULONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_LONGLONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_ULONGLONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT64:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT64:
    case NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64:
    case NVTX_PAYLOAD_ENTRY_TYPE_SIZE:
    case NVTX_PAYLOAD_ENTRY_TYPE_ADDRESS:
    case NVTX_PAYLOAD_ENTRY_TYPE_SCOPE_ID:
    case NVTX_PAYLOAD_ENTRY_TYPE_PID_UINT64:
    case NVTX_PAYLOAD_ENTRY_TYPE_TID_UINT64:
    case NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE:
    case kTypeRangeId: return 8;
    case NVTX_PAYLOAD_ENTRY_TYPE_LONGDOUBLE: return sizeof(long double);
    case NVTX_PAYLOAD_ENTRY_TYPE_INT128:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT128:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT128: return 16;
    default: return 0;
  }
}

size_t unit_size(uint64_t type) {
  switch (type) {
    case NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF16: return 2;
    case NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF32: return 4;
    default: return is_string(type) ? 1 : scalar_size(type);
  }
}

bool integer(uint64_t type, const void* data, uint64_t* value) {
  if (!is_integer(type)) return false;
  switch (scalar_size(type)) {
    case 1: *value = widened<int8_t, uint8_t>(type, data); break;
    case 2: *value = widened<int16_t, uint16_t>(type, data); break;
    case 4: *value = widened<int32_t, uint32_t>(type, data); break;
    default: *value = load<uint64_t>(data);
  }
  return true;
}

void append_scalar(std::string* json, uint64_t type, const void* data) {
  if (is_character(type)) return append_text(json, type, data, scalar_size(type));
  switch (type) {
    case NVTX_PAYLOAD_ENTRY_TYPE_BYTE: return append_hex(json, data, 1);
    case NVTX_PAYLOAD_ENTRY_TYPE_ADDRESS: return append_address(json, load<uint64_t>(data));
    case NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE:
      return append_registered(json, load<const void*>(data));
  }
  if (!append_integer(json, type, data) && !append_float(json, type, data)) json->append("null");
}

std::string utf8(uint64_t type, const void* units, size_t bytes) {
  std::string made;
  bytes = std::min<size_t>(bytes, kMaxText);
  if (!bytes) return made;
  if (unit_size(type) == 1) {
    made.assign(static_cast<const char*>(units), strnlen(static_cast<const char*>(units), bytes));
  } else if (unit_size(type) == 2) {
    std::u16string copy(bytes / 2, 0);
    memcpy(copy.data(), units, copy.size() * 2);
    append_utf16(&made, copy.data(), std::min(copy.find(u'\0'), copy.size()));
  } else {
    std::u32string copy(bytes / 4, 0);
    memcpy(copy.data(), units, copy.size() * 4);
    append_utf32(&made, copy.data(), std::min(copy.find(U'\0'), copy.size()));
  }
  return made;
}

void append_text(std::string* json, uint64_t type, const void* units, size_t bytes) {
  append_json(json, utf8(type, units, bytes));
}

void append_hex(std::string* json, const void* data, size_t size) {
  constexpr char kDigits[] = "0123456789abcdef";
  const auto* bytes = static_cast<const unsigned char*>(data);
  json->append("\"0x");
  for (size_t i = 0; i < size && json->size() < kMaxJson; ++i) {
    json->push_back(kDigits[bytes[i] >> 4]);
    json->push_back(kDigits[bytes[i] & 15]);
  }
  json->push_back('"');
}

}  // namespace flame::nvtx
