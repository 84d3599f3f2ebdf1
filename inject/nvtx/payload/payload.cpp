// Writes extended payloads as JSON. Every byte is read within the size that the program gives,
// whatever a schema says; what cannot be told is null, and what does not fit is left out ("…").
#include "nvtx/payload/payload.h"

#include <algorithm>
#include <cstring>

#include "nvtx/payload/reader.h"
#include "system/foreign_memory.h"

namespace flame::nvtx {
namespace {

constexpr size_t kMaxPayloads = 64;
constexpr unsigned kMaxNesting = 8;

uint64_t write_object(Reader& reader, const Schema& schema, Memory memory, unsigned nesting);
void write_union(Reader& reader, const Object& object, const Entry& entry, Memory at);

void set_message(Event* event, std::string&& message) {
  event->registered = nullptr;
  event->made = std::move(message);
  event->message = event->made;
}

void write_text(Reader& reader, const Entry& entry, Memory at, uint64_t units) {
  const uint64_t size = unit_size(entry.type);
  const uint64_t bytes = units > at.size / size ? at.size / size * size : units * size;
  if (entry.has(NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE))
    set_message(reader.event, utf8(entry.type, at.data, bytes));
  if (!at.data) {
    reader.json->append("null");
  } else {
    append_text(reader.json, entry.type, at.data, bytes);
  }
}

void append_flags(std::string* text, const Schema& schema, uint64_t value) {
  for (const EnumValue& each : schema.values) {
    if (!each.is_flag || !each.value || (value & each.value) != each.value) continue;
    value &= ~each.value;
    text->append(text->empty() ? "" : "|").append(each.name);
  }
  if (value) text->append(text->empty() ? "" : "|").append(std::to_string(value));
}

void write_enum(Reader& reader, const Schema& schema, Memory at) {
  uint64_t value = 0;
  if (at.size < schema.size) return void(reader.json->append("null"));
  memcpy(&value, at.data, schema.size);
  const uint64_t mask = schema.size == 8 ? ~0ull : (1ull << schema.size * 8) - 1;
  for (const EnumValue& each : schema.values)
    if ((each.value & mask) == value) return append_json(reader.json, each.name);
  std::string flags;
  append_flags(&flags, schema, value);
  if (flags == std::to_string(value)) return append_number(reader.json, value);
  append_json(reader.json, flags.empty() ? "0" : flags);
}

// One value; the bytes that it took, or kUnknown.
uint64_t write_value(Reader& reader, const Object& object, const Entry& entry, Memory at) {
  const Schema* schema = schema_of(reader.domain, entry.type);
  const uint64_t size = element_size(reader.domain, entry.type);
  if (!schema) {
    if (!size || at.size < size) return reader.json->append("null"), size ? size : kUnknown;
    append_scalar(reader.json, entry.type, at.data);
    return size;
  }
  if (schema->is_enum()) return write_enum(reader, *schema, at), size;
  if (schema->is_union()) return write_union(reader, object, entry, at), size ? size : kUnknown;
  if (size) at.size = std::min(at.size, size);
  const uint64_t taken = write_object(reader, *schema, at, object.nesting + 1);
  return size ? size : taken;
}

void write_union(Reader& reader, const Object& object, const Entry& entry, Memory at) {
  const Schema& schema = *schema_of(reader.domain, entry.type);
  const bool external = schema.type == NVTX_PAYLOAD_SCHEMA_TYPE_UNION;
  const uint64_t member = external ? length_by_entry(object, entry.detail) : kUnknown;
  const bool known = member < schema.entries.size() && object.nesting < kMaxNesting;
  if (!known) return void(reader.json->append("null"));
  Schema selected = schema;
  selected.type = NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC;
  selected.entries = {schema.entries[member]};
  write_object(reader, selected, at, object.nesting + 1);
}

void write_list(Reader& reader, const Object& object, const Entry& entry, Memory at,
                uint64_t count) {
  const uint64_t size = element_size(reader.domain, entry.type);
  const uint64_t there = size ? std::min(count, at.size / size) : 0;
  if (is_character(entry.type)) return append_text(reader.json, entry.type, at.data, there * size);
  if (entry.type == NVTX_PAYLOAD_ENTRY_TYPE_BYTE) return append_hex(reader.json, at.data, there);
  uint64_t i = 0;
  reader.json->push_back('[');
  for (; i < there && !reader.full(); ++i, ++reader.steps) {
    if (i) reader.json->push_back(',');
    write_value(reader, object, entry, at.from(i * size));
  }
  if (i < count) reader.json->append(i ? ",\"…\"" : "\"…\"");
  reader.json->push_back(']');
}

// The bytes that the values take from `at` on, where they are not pointed at, or kUnknown.
uint64_t write_values(Reader& reader, const Object& object, const Entry& entry, Memory at) {
  const uint64_t count = length(reader, object, entry, at);
  const uint64_t size = element_size(reader.domain, entry.type);
  if (count == kUnknown) return reader.json->append("null"), kUnknown;
  if (is_string(entry.type)) {
    write_text(reader, entry, at, count);
  } else if (!entry.array()) {
    return write_value(reader, object, entry, at);
  } else {
    write_list(reader, object, entry, at, count);
  }
  const bool zero = entry.array() == NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_ZERO_TERMINATED;
  uint64_t bytes = 0;
  return size && !__builtin_mul_overflow(count + zero, size, &bytes) ? bytes : kUnknown;
}

void set_time(Times* times, const Schema& schema, const Entry& entry, Memory at) {
  constexpr uint64_t kRole = 7 << 12;
  int64_t value;
  if (at.size < sizeof value || scalar_size(entry.type) != sizeof value) return;
  memcpy(&value, at.data, sizeof value);
  times->flags = schema.flags;
  const bool end = (entry.flags & kRole) == NVTX_PAYLOAD_ENTRY_FLAG_RANGE_END;
  (end ? times->end : times->begin) = value;
  (end ? times->end_domain : times->begin_domain) = entry.time_domain;
  (end ? times->has_end : times->has_begin) = true;
}

// Entries that say something of the event itself; true: they are no part of the payload's value.
bool is_of_event(const Reader& reader, const Schema& schema, const Entry& entry, Memory at) {
  const bool message = entry.has(NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE);
  uint64_t value = 0;
  if (reader.times && entry.has(NVTX_PAYLOAD_ENTRY_FLAG_TIMESTAMP))
    return set_time(reader.times, schema, entry, at), true;
  if (entry.array() || is_pointer(entry)) return message;
  if (entry.type == NVTX_PAYLOAD_ENTRY_TYPE_CATEGORY && at.size >= 4)
    return integer(entry.type, at.data, &value), reader.event->category = uint32_t(value), true;
  if (entry.type == NVTX_PAYLOAD_ENTRY_TYPE_COLOR_ARGB && at.size >= 4)
    return integer(entry.type, at.data, &value), reader.event->color = uint32_t(value), true;
  if (message && entry.type == NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE &&
      at.size >= sizeof(void*)) {
    const RegisteredString* handle;
    memcpy(&handle, at.data, sizeof handle);
    if (!is_registered(handle)) return true;
    reader.event->registered = handle;
    reader.event->message = handle->value;
  }
  return message;
}

// The value of the entry whose place is known; where the next one may begin, or kUnknown.
uint64_t write_entry(Reader& reader, const Object& object, const Entry& entry, uint64_t place) {
  const Memory at = object.memory.from(place);
  uint64_t size = sizeof(void*);
  if (entry.flags &
      (NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_BASE | NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_HERE)) {
    reader.json->append("null");  // NVTX does not say how wide an offset is
    return kUnknown;
  }
  if (is_pointer(entry)) {
    std::string copy;
    const Memory target = pointed(reader, at, &copy);
    if (target.size) {
      write_values(reader, object, entry, target);
    } else {
      reader.json->append("null");
    }
  } else {
    size = write_values(reader, object, entry, at);
  }
  return size == kUnknown || __builtin_add_overflow(place, size, &size) ? kUnknown : size;
}

void append_key(std::string* json, const Entry& entry, size_t index) {
  if (json->back() != '{') json->push_back(',');
  append_json(json, entry.name.empty() ? std::to_string(index) : entry.name);
  json->push_back(':');
}

uint64_t align_of(const Reader& reader, const Entry& entry) {
  return is_pointer(entry) ? alignof(void*) : element_align(reader.domain, entry.type);
}

// The next entry of the object; where the one after it may begin.
uint64_t write_member(Reader& reader, Object& object, uint64_t cursor, bool bare) {
  const size_t index = object.places.size();
  const Entry& entry = object.schema.entries[index];
  const uint64_t place = place_of(object.schema, index, cursor, align_of(reader, entry));
  const size_t before = reader.json->size();
  const bool apart = is_of_event(reader, object.schema, entry, object.memory.from(place));
  if (!bare) append_key(reader.json, entry, index);
  cursor = write_entry(reader, object, entry, place);
  if (apart || entry.has(NVTX_PAYLOAD_ENTRY_FLAG_HIDE)) reader.json->resize(before);
  object.places.push_back(place);
  return cursor;
}

// "float64" and "str128" are what the nvtx package calls the only field of a plain value.
bool names_type(const std::string& name) {
  const size_t letters = name.find_first_of("0123456789");
  const std::string word = name.substr(0, letters);
  if (letters == std::string::npos || name.find_first_not_of("0123456789", letters) < name.size())
    return false;
  for (const char* type : {"int", "uint", "float", "str", "bytes"})
    if (word == type) return true;
  return false;
}

bool is_bare(const Schema& schema) {
  if (schema.entries.size() != 1) return false;
  const std::string& name = schema.entries[0].name;
  return name.empty() || names_type(name);
}

// A schema whose only entry says no more than its type is that entry's value, else an object.
uint64_t write_object(Reader& reader, const Schema& schema, Memory memory, unsigned nesting) {
  const bool bare = is_bare(schema);
  Object object{schema, memory, nesting, {}};
  uint64_t cursor = 0;
  if (nesting > kMaxNesting || !memory.data) return reader.json->append("null"), kUnknown;
  if (!bare) reader.json->push_back('{');
  while (object.places.size() < schema.entries.size()) {
    const Entry& next = schema.entries[object.places.size()];
    const bool lost = cursor == kUnknown && !next.offset;
    if (reader.full() || lost) {
      if (!bare) reader.json->append(reader.json->back() == '{' ? "\"…\":null" : ",\"…\":null");
      cursor = kUnknown;
      break;
    }
    ++reader.steps;
    cursor = write_member(reader, object, cursor == kUnknown ? 0 : cursor, bare);
  }
  if (!bare) reader.json->push_back('}');
  return cursor;
}

// A payload without a schema: as many values of a predefined type as there are.
void write_plain(Reader& reader, const nvtxPayloadData_t& payload) {
  const uint64_t type = payload.schemaId;
  const uint64_t size = element_size(reader.domain, type);
  Memory memory{static_cast<const char*>(payload.payload), payload.size};
  std::string copy;
  if (payload.size == SIZE_MAX && is_string(type)) {
    copy.resize(kPointed);
    copy.resize(read_foreign(reinterpret_cast<uint64_t>(payload.payload), copy.data(), kPointed));
    memory = {copy.data(), copy.size()};
  }
  if (memory.size == SIZE_MAX) return;
  if (type == NVTX_TYPE_PAYLOAD_SCHEMA_RAW)
    return append_hex(reader.json, memory.data, memory.size);
  if (!size) return;
  if (is_string(type))
    return append_text(reader.json, type, memory.data, memory.size / size * size);
  const Schema none;
  const Object object{none, memory, 0, {}};
  const Entry entry{0, type, 0, 0, 0, ""};
  if (memory.size / size == 1) {
    write_value(reader, object, entry, memory);
  } else {
    write_list(reader, object, entry, memory, memory.size / size);
  }
}

void write_payload(Reader& reader, const nvtxPayloadData_t& payload) {
  if (!payload.payload || !payload.size) return;
  if (payload.schemaId == NVTX_TYPE_PAYLOAD_SCHEMA_REFERENCED) return;
  if (payload.schemaId < NVTX_PAYLOAD_SCHEMA_ID_STATIC_START) return write_plain(reader, payload);
  const Schema* schema = schema_of(reader.domain, payload.schemaId);
  if (!schema) return;
  const uint64_t size = payload.size == SIZE_MAX ? schema->size : payload.size;
  const Memory memory{static_cast<const char*>(payload.payload), size};
  if (!size) return;
  if (schema->is_enum()) return write_enum(reader, *schema, memory);
  if (!schema->is_union()) write_object(reader, *schema, memory, 0);
}

}  // namespace

void read_payloads(uint32_t domain, const nvtxPayloadData_t* payloads, size_t count, Event* event,
                   Times* times) {
  std::string all;
  size_t values = 0;
  bool cut = false;  // what comes later can still name the event
  if (!payloads) return;
  for (size_t i = 0; i < count && i < kMaxPayloads; ++i) {
    std::string json;
    Reader reader{domain, payloads, std::min(count, kMaxPayloads), event, times, &json};
    write_payload(reader, payloads[i]);
    if (json.empty() || json == "{}") continue;  // all that it says is of the event
    const bool full = all.size() >= kMaxJson;
    if (!cut) all.append(values++ ? "," : "").append(full ? "\"…\"" : json);
    cut = full;
  }
  event->json = values > 1 ? "[" + all + "]" : all;
}

}  // namespace flame::nvtx
