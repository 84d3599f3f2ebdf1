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

// Where the characters of a `str` are: `offset` bytes behind `object`.
struct Characters {
  const char* object;
  size_t offset;
};

// Instances of a subclass of `str` keep their characters elsewhere.
template <class Memory>
Characters characters_of(const Memory& memory, const char* text, const TextState& state,
                         const Offsets& offsets) {
  if (!state.compact) return {memory.template load<const char*>(text, offsets.text_compact), 0};
  return {text, state.ascii ? offsets.text_ascii : offsets.text_compact};
}

template <class Memory>
uint32_t character(const Memory& memory, Characters from, uint32_t width, size_t index) {
  const size_t offset = from.offset + index * width;
  if (width == 1) return memory.template load<uint8_t>(from.object, offset);
  if (width == 2) return memory.template load<uint16_t>(from.object, offset);
  return memory.template load<uint32_t>(from.object, offset);
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

constexpr int64_t kMaxTable = 16 << 20;  // bytes; longer ones are none

// The location table of a code object: bytes of a `bytes`.
template <class Memory>
class Table {
 public:
  Table(const Memory& memory, const char* bytes, const Offsets& offsets)
      : memory_(memory), bytes_(bytes), offset_(offsets.bytes_data) {
    const auto size = memory.template load<int64_t>(bytes, offsets.bytes_size);
    if (size > 0 && size <= kMaxTable) size_ = static_cast<size_t>(size);
  }

  bool has(size_t at) const { return at < size_ && !memory_.failed(); }
  uint32_t operator[](size_t at) const {
    return memory_.template load<uint8_t>(bytes_, offset_ + at);
  }

 private:
  const Memory& memory_;
  const char* bytes_;
  size_t offset_, size_ = 0;
};

// 6 bits a byte, the lowest first; bit 6: more follows. The lowest bit of all is the sign.
template <class Bytes>
int32_t signed_number(const Bytes& table, size_t at) {
  uint32_t value = 0;
  for (unsigned shift = 0; table.has(at) && shift < 32; shift += 6) {
    const uint32_t byte = table[at++];
    value |= (byte & 0x3f) << shift;
    if (!(byte & 0x40)) break;
  }
  const auto size = static_cast<int32_t>(value >> 1);
  return value & 1 ? -size : size;
}

template <class Bytes>
int32_t line_step(uint32_t code, const Bytes& table, size_t rest) {
  if (code == kNoColumns || code == kLong) return signed_number(table, rest);
  return code >= kOneLine && code < kNoColumns ? static_cast<int32_t>(code - kOneLine) : 0;
}

// Only the first byte of an entry has its highest bit set.
template <class Bytes>
size_t next_entry(const Bytes& table, size_t at) {
  do at++;
  while (table.has(at) && !(table[at] & 0x80));
  return at;
}

}  // namespace

template <class Memory>
std::string_view utf8(const Memory& memory, const char* text, const Offsets& offsets, char* room) {
  if (!text) return "?";
  const TextState state(memory.template load<uint32_t>(text, offsets.text_state));
  const auto length = memory.template load<size_t>(text, offsets.text_length);
  const Characters from = characters_of(memory, text, state, offsets);
  if (!from.object || !state.width) return "?";
  if (state.ascii) return memory.text(from.object, from.offset, length, room);
  size_t size = 0;
  for (size_t i = 0; i < length && size + 4 <= kTextRoom && !memory.failed(); i++)
    size += put_character(character(memory, from, state.width, i), room + size);
  return {room, size};
}

// A program may give its code objects any table: sums wrap.
template <class Memory>
uint32_t line_of(const Memory& memory, const char* code, int32_t lasti, const Offsets& offsets) {
  auto line = memory.template load<uint32_t>(code, offsets.code_first_line);
  if (lasti < 0) return line;
  const auto* bytes = memory.template load<const char*>(code, offsets.code_linetable);
  const Table<Memory> table(memory, bytes, offsets);
  int64_t behind = 0;
  for (size_t at = 0; table.has(at); at = next_entry(table, at)) {
    const uint32_t head = table[at], kind = head >> 3 & 15;
    behind += ((head & 7) + 1) * 2;
    line += static_cast<uint32_t>(line_step(kind, table, at + 1));
    if (lasti < behind) return kind == kNoLocation || static_cast<int32_t>(line) < 0 ? 0 : line;
  }
  return 0;
}

template std::string_view utf8(const Trusted&, const char*, const Offsets&, char*);
template std::string_view utf8(const Checked&, const char*, const Offsets&, char*);
template uint32_t line_of(const Trusted&, const char*, int32_t, const Offsets&);
template uint32_t line_of(const Checked&, const char*, int32_t, const Offsets&);

}  // namespace flame::python
