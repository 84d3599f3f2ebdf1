// N marks whose payloads and schemas are nonsense, made by chance: "nvtx_malformed SEED N".
// Every payload lies in memory of exactly its size, so that a sanitizer sees each byte too many.
#include <nvtx3/nvToolsExtPayload.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace {

std::mt19937_64 random_bits;
std::vector<uint64_t> known;  // ids of schemas and enumerations

uint64_t below(uint64_t end) { return random_bits() % end; }

uint64_t length() {
  const uint64_t odd[] = {0, 1, UINT64_MAX, UINT64_MAX / 2, 1ull << 61, 1ull << 32};
  return below(4) ? below(20) : odd[below(6)];
}

uint64_t type() {
  switch (below(4)) {
    case 0: return below(130);
    case 1: return known.empty() ? 5 : known[below(known.size())];
    case 2: return NVTX_PAYLOAD_ENTRY_TYPE_CSTRING + below(4);
    default: return below(32);
  }
}

uint64_t flags() {
  uint64_t made = below(8) << 4;
  for (int bit : {1, 2, 3, 8, 9, 10, 11})
    if (!below(8)) made |= 1ull << bit;
  return made;
}

uint64_t make_schema(nvtxDomainHandle_t domain) {
  std::vector<nvtxPayloadSchemaEntry_t> entries;
  for (uint64_t count = below(6); count; --count)
    entries.push_back({flags(), type(), below(3) ? "name" : nullptr, nullptr, length(),
                       below(3) ? 0 : length(), nullptr, nullptr});
  nvtxPayloadSchemaAttr_t given = {};
  given.fieldMask = below(8) ? 0x3fe : random_bits();
  given.type = below(6);
  given.entries = below(16) ? entries.data() : nullptr;
  given.numEntries = entries.size();
  given.payloadStaticSize = length();
  given.packAlign = below(3) ? 0 : length();
  given.schemaId = below(2) ? 0 : NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + below(20);
  return nvtxPayloadSchemaRegister(domain, below(32) ? &given : nullptr);
}

uint64_t make_enum(nvtxDomainHandle_t domain) {
  const nvtxPayloadEnum_t values[] = {{"one", 1, int8_t(below(2))}, {nullptr, random_bits(), 1}};
  nvtxPayloadEnumAttr_t given = {};
  given.fieldMask = 0x7e;
  given.entries = values;
  given.numEntries = 2;
  given.sizeOfEnum = below(10);
  return nvtxPayloadEnumRegister(domain, &given);
}

nvtxPayloadData_t make_payload(const std::vector<nvtxPayloadData_t>& before) {
  const uint64_t size = below(48);
  char* data = static_cast<char*>(malloc(size));
  for (uint64_t i = 0; i < size; ++i) data[i] = static_cast<char>(below(2) ? below(4) : below(256));
  if (size >= 8 && !before.empty() && before[0].payload) {  // a pointer to another one
    const char* inside = static_cast<const char*>(before[0].payload) + below(50);
    memcpy(data + below(size - 7), &inside, sizeof inside);
  }
  return {type(), size, data};
}

void mark(nvtxDomainHandle_t domain) {
  std::vector<nvtxPayloadData_t> payloads;
  for (uint64_t count = below(4); count; --count) payloads.push_back(make_payload(payloads));
  nvtxMarkPayload(domain, payloads.data(), payloads.size());
  for (const nvtxPayloadData_t& payload : payloads) free(const_cast<void*>(payload.payload));
}

}  // namespace

int main(int, char** arguments) {
  random_bits.seed(strtoull(arguments[1], nullptr, 10));
  const nvtxDomainHandle_t domain = nvtxDomainCreateA("malformed");
  for (long i = strtol(arguments[2], nullptr, 10); i; --i) {
    if (below(3) == 0) known.push_back(below(4) ? make_schema(domain) : make_enum(domain));
    mark(domain);
  }
}
