// Finds where the values of a payload's entry lie, and how many there are.
#include <cstring>

#include "nvtx/payload/reader.h"
#include "system/foreign_memory.h"

namespace flame::nvtx {
namespace {

constexpr uint64_t kMaxDimensions = 32;

uint64_t count_to_zero(Memory memory, uint64_t size) {
  static const char kZeros[16] = {};
  uint64_t count = 0;
  if (size == 0 || size > sizeof kZeros) return kUnknown;
  while ((count + 1) * size <= memory.size && memcmp(memory.data + count * size, kZeros, size))
    ++count;
  return count;
}

// A length that the program tells: an integer; of several dimensions the product.
uint64_t given_length(const Memory& memory, uint64_t type, uint64_t dimensions) {
  const size_t size = scalar_size(type);
  uint64_t product = 1, value = 0;
  if (!size || !dimensions || dimensions > kMaxDimensions) return kUnknown;
  if (dimensions > memory.size / size) return kUnknown;
  for (uint64_t i = 0; i < dimensions; ++i) {
    if (!integer(type, memory.data + i * size, &value)) return kUnknown;
    if (static_cast<int64_t>(value) < 0) value = 0;
    if (__builtin_mul_overflow(product, value, &product)) return kUnknown;
  }
  return product;
}

uint64_t length_by_payload(const Reader& reader, uint64_t index) {
  if (index >= reader.count) return kUnknown;
  const nvtxPayloadData_t& payload = reader.payloads[index];
  uint64_t type = payload.schemaId;
  const Schema* schema = schema_of(reader.domain, type);
  if (schema && schema->entries.size() == 1) type = schema->entries[0].type;
  const size_t size = scalar_size(type);
  if (!size || payload.size == SIZE_MAX || !payload.payload) return kUnknown;
  return given_length({static_cast<const char*>(payload.payload), payload.size}, type,
                     payload.size / size);
}

}  // namespace

Memory pointed(const Reader& reader, Memory at, std::string* copy) {
  uint64_t address = 0;
  if (at.size < sizeof address) return {nullptr, 0};
  memcpy(&address, at.data, sizeof address);
  for (size_t i = 0; i < reader.count; ++i) {
    const nvtxPayloadData_t& payload = reader.payloads[i];
    const uint64_t offset = address - reinterpret_cast<uint64_t>(payload.payload);
    if (payload.payload && payload.size != SIZE_MAX && offset < payload.size)
      return {static_cast<const char*>(payload.payload) + offset, payload.size - offset};
  }
  copy->resize(kPointed);
  copy->resize(address ? read_foreign(address, copy->data(), kPointed) : 0);
  return {copy->data(), copy->size()};
}

uint64_t length_by_entry(const Object& object, size_t index) {
  if (index >= object.places.size()) return kUnknown;  // it must come before
  const Entry& entry = object.schema.entries[index];
  const Memory at = object.memory.from(object.places[index]);
  if (is_pointer(entry)) return kUnknown;
  switch (entry.array()) {
    case 0: return given_length(at, entry.type, 1);
    case NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE:
      return given_length(at, entry.type, entry.detail);
    case NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_ZERO_TERMINATED:
      return given_length(at, entry.type, count_to_zero(at, scalar_size(entry.type)));
    default: return kUnknown;
  }
}

uint64_t length(const Reader& reader, const Object& object, const Entry& entry, Memory at) {
  const uint64_t size = element_size(reader.domain, entry.type);
  switch (entry.array()) {
    case 0:
      if (!is_string(entry.type)) return 1;
      return entry.detail ? entry.detail : count_to_zero(at, size);
    case NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE: return entry.detail;
    case NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_ZERO_TERMINATED:
      // Strings of a fixed length, up to an empty one, are not read.
      return is_string(entry.type) && entry.detail ? kUnknown : count_to_zero(at, size);
    case NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX: return length_by_entry(object, entry.detail);
    case NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_PAYLOAD_INDEX:
      return length_by_payload(reader, entry.detail);
    default: return kUnknown;
  }
}

}  // namespace flame::nvtx
