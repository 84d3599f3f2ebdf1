// Gives ids to what comes again and again. All new ones are written by one writer under one lock;
// an id is handed out only after its record is committed.
#include "dump/names.h"

#include <cstring>

#include "dump/cache.h"
#include "dump/thread.h"
#include "dump/writer.h"
#include "flame.h"

namespace flame {

std::mutex names_lock;

namespace {

ChunkWriter writer;
Cache texts(14), frames(14), range_names(14), nodes(16), names(10), notes(6);
uint32_t last_text, last_frame, last_range_name, last_node, last_name, last_note;

template <class Record>
bool write(const Record& record) {
  char* place = make_room(writer, Record::kType, sizeof record);
  if (!place) return false;
  memcpy(place, &record, sizeof record);
  advance(writer, Record::kType, sizeof record);
  return true;
}

bool write_text(uint32_t id, std::string_view value) {
  uint32_t size = uint32_t(value.size());
  uint32_t padded = (2 * sizeof(uint32_t) + size + 7) & ~7u;
  char* place = make_room(writer, kText, padded);
  if (!place) return false;
  memcpy(place, &id, sizeof id);
  memcpy(place + 4, &size, sizeof size);
  memcpy(place + 8, value.data(), size);
  memset(place + 8 + size, 0, padded - 8 - size);
  advance(writer, kText, padded);
  return true;
}

// The id of `key`; `write_as(id)` writes the record of a new one. 0: there was no room for it.
template <class Write>
uint32_t intern(Cache& cache, uint32_t& last, Key key, Write write_as) {
  if (uint32_t id = cache.find(key)) return id;
  Inside inner;
  if (!inner.entered) return 0;
  std::lock_guard<std::mutex> guard(names_lock);
  if (uint32_t id = cache.find(key)) return id;
  if (!write_as(last + 1)) return 0;
  cache.insert(key, ++last);
  return last;
}

// Not in the middle of a character.
std::string_view cut(std::string_view value) {
  if (value.size() <= kMaxText) return value;
  size_t size = kMaxText;
  while (size > kMaxText - 4 && (value[size] & 0xc0) == 0x80) size--;
  return value.substr(0, size);
}

uint64_t pair(uint32_t high, uint32_t low) { return uint64_t(high) << 32 | low; }

uint64_t word(const char* text, size_t size) {
  uint64_t result = 0;
  memcpy(&result, text, size);
  return result;
}

}  // namespace

Key hash_text(const char* text, size_t size) {
  uint64_t first = 0xa0761d6478bd642fu ^ size, second = 0x8ebc6af09c88c6e3u ^ size;
  for (;; text += 16, size -= 16) {
    uint64_t low = size >= 8 ? word(text, 8) : word(text, size);
    uint64_t high = size >= 16 ? word(text + 8, 8) : size > 8 ? word(text + 8, size - 8) : 0;
    first = mix(first ^ low ^ 0x589965cc75374cc3u, high ^ 0x1d8e4e27c47d124fu) + (first << 1 | 1);
    second = mix(second ^ high ^ 0xeb44accab455d165u, low ^ 0x2d358dccaa6c78a5u) + (second << 1 | 1);
    if (size <= 16) return Key{mix(first, 0x9e3779b97f4a7c15u), mix(second, 0xd6e8feb86659fd93u)};
  }
}

bool prepare_names() {
  return texts.prepare() && frames.prepare() && range_names.prepare() && nodes.prepare() &&
         names.prepare() && notes.prepare();
}

void forget_names() {
  std::lock_guard<std::mutex> guard(names_lock);
  for (Cache* cache : {&texts, &frames, &range_names, &nodes, &names, &notes}) cache->clear();
  writer = ChunkWriter();
  last_text = last_frame = last_range_name = last_node = last_name = last_note = 0;
}

void write_shared_drop(const Drop& drop) {
  std::lock_guard<std::mutex> guard(names_lock);
  write(drop);
}

uint32_t text(std::string_view value) {
  if (value.empty() || !recording()) return 0;
  value = cut(value);
  return intern(texts, last_text, hash_text(value.data(), value.size()),
                [&](uint32_t id) { return write_text(id, value); });
}

uint32_t frame(std::string_view function, std::string_view file, uint32_t line) {
  uint32_t function_text = text(function), file_text = text(file);
  if (!recording()) return 0;
  return intern(frames, last_frame, Key{pair(function_text, file_text), line},
                [&](uint32_t id) { return write(Frame{id, function_text, file_text, line}); });
}

uint32_t range_name(uint32_t text, uint32_t domain, uint32_t category) {
  if (!recording()) return 0;
  return intern(range_names, last_range_name, Key{pair(text, domain), category},
                [&](uint32_t id) { return write(RangeName{id, text, domain, category}); });
}

uint32_t node(uint32_t parent, uint32_t item, NodeKind kind, uint16_t flags) {
  if (!recording()) return 0;
  return intern(nodes, last_node, Key{pair(parent, item), pair(kind, flags)},
                [&](uint32_t id) { return write(Node{id, parent, item, kind, flags}); });
}

void name(NameKind kind, uint32_t scope, uint32_t id, std::string_view value) {
  uint32_t value_text = text(value);
  Key key = {pair(kind, scope), pair(id, value_text)};
  Inside inner;
  if (!value_text || !inner.entered || names.find(key)) return;
  std::lock_guard<std::mutex> guard(names_lock);
  if (!names.find(key) && write(Name{kind, scope, id, value_text})) {
    names.insert(key, ++last_name);
  }
}

void meta(std::string_view key, std::string_view value) {
  uint32_t key_text = text(key), value_text = text(value);
  Inside inner;
  if (!key_text || !value_text || !inner.entered) return;
  std::lock_guard<std::mutex> guard(names_lock);
  write(Meta{key_text, value_text});
}

void note(std::string_view value) {
  if (value.empty() || !recording()) return;
  value = cut(value);
  Key key = hash_text(value.data(), value.size());
  {
    Inside inner;
    if (!inner.entered) return;
    std::lock_guard<std::mutex> guard(names_lock);
    if (notes.find(key)) return;
    notes.insert(key, ++last_note);
  }
  meta("note", value);
}

}  // namespace flame
