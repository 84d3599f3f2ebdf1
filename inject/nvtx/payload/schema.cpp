// Keeps schemas and enumerations of extended payloads as they were registered, and lays them out.
#include <algorithm>
#include <cstring>
#include <map>

#include "nvtx/payload/payload.h"
#include "nvtx/shared/lock.h"
#include "nvtx/shared/table.h"

namespace flame::nvtx {
namespace {

constexpr size_t kMaxEntries = 1024;
constexpr size_t kMaxSchemas = 16 * 1024;
constexpr size_t kMaxBytes = 64u << 20;  // of all of them
constexpr size_t kMaxLabel = 256;

using Key = std::pair<uint32_t, uint64_t>;  // domain and id

struct Schemas {
  std::map<Key, const Schema*> all;  // never changed nor freed: others use them without the lock
  uint64_t last = NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START;
  size_t bytes = 0;
};

size_t bytes_of(const Schema& schema) {
  size_t bytes = sizeof schema;
  for (const Entry& entry : schema.entries) bytes += sizeof entry + entry.name.capacity();
  for (const EnumValue& value : schema.values) bytes += sizeof value + value.name.capacity();
  return bytes;
}

uint64_t add(uint32_t domain, uint64_t id, const Schema& schema) {
  Schemas& known = the<Schemas>();
  const size_t bytes = bytes_of(schema);
  TableLock guard;
  if (known.all.size() >= kMaxSchemas || known.bytes + bytes > kMaxBytes) {
    dropped(kNameLimit, kText, 1);
    return 0;
  }
  const bool chosen = id >= NVTX_PAYLOAD_SCHEMA_ID_STATIC_START &&
                      id < NVTX_PAYLOAD_SCHEMA_ID_DYNAMIC_START;
  if (!chosen) id = ++known.last;
  const Key key(domain, id);
  // A second copy of NVTX in the process registers what it shares with the first one again.
  if (known.all.count(key)) return id;
  known.all.emplace(key, new Schema(schema));
  known.bytes += bytes;
  return id;
}

std::string label(const char* text) {
  return text ? std::string(text, strnlen(text, kMaxLabel)) : "";
}

uint64_t time_domain_of(const nvtxSemanticsHeader_t* semantics) {
  struct Time {  // nvtxSemanticsTime_t, of nvToolsExtSemanticsTime.h
    nvtxSemanticsHeader_t header;
    uint64_t domain;
  };
  constexpr uint16_t kTimeSemantics = 2;
  for (int links = 0; semantics && links < 16; ++links, semantics = semantics->next)
    if (semantics->semanticId == kTimeSemantics && semantics->structSize >= sizeof(Time))
      return reinterpret_cast<const Time*>(semantics)->domain;
  return 0;
}

Entry copied(const nvtxPayloadSchemaEntry_t& entry) {
  return {entry.flags,  entry.type, entry.arrayOrUnionDetail, entry.offset,
          time_domain_of(entry.semantics), label(entry.name)};
}

// Bytes that an entry takes in a static schema; 0: that cannot be told.
uint64_t entry_size(uint32_t domain, const Entry& entry) {
  if (is_pointer(entry)) return sizeof(void*);
  const uint64_t array = entry.array();
  if (array && array != NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE) return 0;
  const bool many = array || is_string(entry.type);
  uint64_t size = 0;
  const bool fits = !__builtin_mul_overflow(element_size(domain, entry.type),
                                            many ? entry.detail : 1, &size);
  return fits ? size : 0;
}

uint64_t entry_align(uint32_t domain, const Entry& entry) {
  return is_pointer(entry) ? alignof(void*) : element_align(domain, entry.type);
}

uint64_t rounded(uint64_t size, uint64_t align) { return (size + align - 1) / align * align; }

// What follows from the entries. Of a size that cannot be told nothing is said.
void measure(uint32_t domain, Schema* schema) {
  uint64_t end = 0;
  bool known = true;
  for (size_t i = 0; i < schema->entries.size(); ++i) {
    const Entry& entry = schema->entries[i];
    const uint64_t align = entry_align(domain, entry);
    const uint64_t size = entry_size(domain, entry);
    const uint64_t place = place_of(*schema, i, end, align);
    schema->align = std::max(schema->align, schema->pack ? std::min(align, schema->pack) : align);
    known = known && size && !__builtin_add_overflow(place, size, &end);
  }
  const bool fixed = schema->type != NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC && !schema->is_union();
  if (fixed && known && !schema->size) schema->size = rounded(end, schema->align);
}

void measure_union(uint32_t domain, Schema* schema) {
  for (const Entry& entry : schema->entries) {
    schema->align = std::max(schema->align, entry_align(domain, entry));
    if (!schema->size) schema->size = entry_size(domain, entry);
    schema->size = std::max(schema->size, entry_size(domain, entry));
  }
}

}  // namespace

uint64_t register_schema(uint32_t domain, const nvtxPayloadSchemaAttr_t* given) {
  constexpr uint64_t kNeeded = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                               NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                               NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES;
  if (!given || (given->fieldMask & kNeeded) != kNeeded || !given->entries) return 0;
  if (given->numEntries == 0 || given->numEntries > kMaxEntries) return 0;
  if (given->type < NVTX_PAYLOAD_SCHEMA_TYPE_STATIC ||
      given->type > NVTX_PAYLOAD_SCHEMA_TYPE_UNION_WITH_INTERNAL_SELECTOR)
    return 0;
  const auto set = [&](uint64_t field) { return (given->fieldMask & field) != 0; };
  Schema schema;
  schema.type = given->type;
  if (set(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_FLAGS)) schema.flags = given->flags;
  if (set(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ALIGNMENT)) schema.pack = given->packAlign;
  if (set(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE) &&
      schema.type != NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC)
    schema.size = given->payloadStaticSize;
  for (size_t i = 0; i < given->numEntries; ++i)
    schema.entries.push_back(copied(given->entries[i]));
  schema.is_union() ? measure_union(domain, &schema) : measure(domain, &schema);
  return add(domain, set(NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID) ? given->schemaId : 0, schema);
}

uint64_t register_enum(uint32_t domain, const nvtxPayloadEnumAttr_t* given) {
  constexpr uint64_t kNeeded = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
                               NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
                               NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE;
  if (!given || (given->fieldMask & kNeeded) != kNeeded || !given->entries) return 0;
  const size_t size = given->sizeOfEnum;
  if (size != 1 && size != 2 && size != 4 && size != 8) return 0;
  if (given->numEntries > kMaxEntries) return 0;
  Schema schema;
  schema.size = schema.align = size;
  for (size_t i = 0; i < given->numEntries; ++i) {
    const nvtxPayloadEnum_t& value = given->entries[i];
    schema.values.push_back({label(value.name), value.value, value.isFlag != 0});
  }
  const bool chosen = given->fieldMask & NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID;
  return add(domain, chosen ? given->schemaId : 0, schema);
}

uint64_t new_dynamic_id() {
  Schemas& known = the<Schemas>();
  TableLock guard;
  return ++known.last;
}

const Schema* schema_of(uint32_t domain, uint64_t id) {
  Schemas& known = the<Schemas>();
  TableLock guard;
  const auto found = known.all.find(Key(domain, id));
  return found == known.all.end() ? nullptr : found->second;
}

uint64_t element_size(uint32_t domain, uint64_t type) {
  if (is_string(type)) return unit_size(type);
  if (type < NVTX_PAYLOAD_SCHEMA_ID_STATIC_START) return scalar_size(type);
  const Schema* schema = schema_of(domain, type);
  return schema ? schema->size : 0;
}

uint64_t element_align(uint32_t domain, uint64_t type) {
  if (type < NVTX_PAYLOAD_SCHEMA_ID_STATIC_START)
    return std::max<uint64_t>(element_size(domain, type), 1);
  const Schema* schema = schema_of(domain, type);
  return schema ? schema->align : 1;
}

uint64_t place_of(const Schema& schema, size_t index, uint64_t cursor, uint64_t align) {
  const uint64_t offset = schema.entries[index].offset;
  if (index == 0 || offset || schema.is_union()) return offset;
  return rounded(cursor, schema.pack ? std::min(align, schema.pack) : align);
}

}  // namespace flame::nvtx
