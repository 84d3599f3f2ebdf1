// Reads PEP 393 strings and the location table of code objects ("Objects/locations.md" of CPython).
#include "python/code_text.h"

namespace flame::python {
namespace {

// The head of PyUnicodeObject.state: interned 2 bits, kind 3, compact 1, ascii 1.
struct TextState {
  explicit TextState(uint32_t bits)
      : width(bits >> 2 & 7), compact(bits >> 5 & 1), ascii(bits >> 6 & 1) {}
  uint32_t width;  // bytes of a character
  bool compact, ascii;
};

// Instances of a subclass of `str` keep their characters elsewhere.
const char* data_of(const char* text, const TextState& state, const Offsets& offsets) {
  if (!state.compact) return load<const char*>(text, offsets.text_compact);
  return text + (state.ascii ? offsets.text_ascii : offsets.text_compact);
}

uint32_t character(const char* data, uint32_t width, size_t index) {
  if (width == 1) return load<uint8_t>(data, index);
  if (width == 2) return load<uint16_t>(data, index * 2);
  return load<uint32_t>(data, index * 4);
}

// Surrogates have no UTF-8: a lone one becomes the replacement character.
size_t put_character(uint32_t point, char* room) {
  if (point >= 0xd800 && point < 0xe000) point = 0xfffd;
  if (point < 0x80) {
    room[0] = static_cast<char>(point);
    return 1;
  }
  const size_t size = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  for (size_t i = size - 1; i > 0; i--, point >>= 6)
    room[i] = static_cast<char>(0x80 | (point & 0x3f));
  room[0] = static_cast<char>((0xf00u >> size & 0xf0) | point);
  return size;
}

// What stands in a location entry, by its code.
constexpr uint32_t kOneLine = 10;  // 10..12: the line is 0..2 further
constexpr uint32_t kNoColumns = 13, kLong = 14, kNoLocation = 15;

// 6 bits a byte, the lowest first; bit 6: more follows. The lowest bit of all is the sign.
int32_t signed_number(const uint8_t* bytes, const uint8_t* end) {
  uint32_t value = 0;
  for (unsigned shift = 0; bytes < end && shift < 32; shift += 6) {
    value |= static_cast<uint32_t>(*bytes & 0x3f) << shift;
    if (!(*bytes++ & 0x40)) break;
  }
  const auto size = static_cast<int32_t>(value >> 1);
  return value & 1 ? -size : size;
}

int32_t line_step(uint32_t code, const uint8_t* rest, const uint8_t* end) {
  if (code == kNoColumns || code == kLong) return signed_number(rest, end);
  return code >= kOneLine && code < kNoColumns ? static_cast<int32_t>(code - kOneLine) : 0;
}

// Only the first byte of an entry has its highest bit set.
const uint8_t* next_entry(const uint8_t* entry, const uint8_t* end) {
  do entry++;
  while (entry < end && !(*entry & 0x80));
  return entry;
}

}  // namespace

std::string_view utf8(const char* text, const Offsets& offsets, char* room) {
  if (!text) return "?";
  const TextState state(load<uint32_t>(text, offsets.text_state));
  const auto length = static_cast<size_t>(load<int64_t>(text, offsets.text_length));
  const char* data = data_of(text, state, offsets);
  if (!data || !state.width) return "?";
  if (state.ascii) return {data, length};
  size_t size = 0;
  for (size_t i = 0; i < length && size + 4 <= kTextRoom; i++)
    size += put_character(character(data, state.width, i), room + size);
  return {room, size};
}

uint32_t line_of(const char* code, int32_t lasti, const Offsets& offsets) {
  const char* table = load<const char*>(code, offsets.code_linetable);
  const auto* entry = reinterpret_cast<const uint8_t*>(table + offsets.bytes_data);
  const uint8_t* end = entry + load<int64_t>(table, offsets.bytes_size);
  int32_t line = load<int32_t>(code, offsets.code_first_line);
  if (lasti < 0) return static_cast<uint32_t>(line);
  for (int32_t behind = 0; entry < end; entry = next_entry(entry, end)) {
    const uint32_t kind = *entry >> 3 & 15;
    behind += ((*entry & 7) + 1) * 2;
    line += line_step(kind, entry + 1, end);
    if (lasti < behind) return kind == kNoLocation || line < 0 ? 0 : static_cast<uint32_t>(line);
  }
  return 0;
}

}  // namespace flame::python
