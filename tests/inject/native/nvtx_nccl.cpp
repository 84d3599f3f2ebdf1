// The ranges of NCCL 2.27, as its macros write them: src/include/nvtx.h, nvtx_payload_schemas.h.
#include <nvtx3/nvToolsExtPayload.h>

#include <cstddef>
#include <vector>

namespace {

using Entries = std::vector<nvtxPayloadSchemaEntry_t>;

constexpr uint64_t kStatic = 1 << 24;
constexpr uint64_t kCommInitRank = kStatic, kAllReduce = kStatic + 5, kSend = kStatic + 9;
constexpr uint64_t kReduction = kStatic + 15;
constexpr uint64_t kCommunicator = 0xfedcba9876543210;

nvtxDomainHandle_t domain;

struct CommInitRank {
  uint64_t newcomm;
  int nranks, myrank, cuda_device;
};
struct AllReduce {
  uint64_t comm;
  size_t bytes;
  int op;
};
struct SendReceive {
  uint64_t comm;
  size_t bytes;
  int peer;
};

nvtxPayloadSchemaEntry_t entry(uint64_t type, const char* name, size_t offset) {
  return {0, type, name, nullptr, 0, offset, nullptr, nullptr};
}

void add_schema(uint64_t id, size_t size, const Entries& entries) {
  nvtxPayloadSchemaAttr_t given = {};
  given.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                    NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                    NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE |
                    NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  given.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  given.entries = entries.data();
  given.numEntries = entries.size();
  given.payloadStaticSize = size;
  given.schemaId = id;
  nvtxPayloadSchemaRegister(domain, &given);
}

void add_reductions() {
  static const nvtxPayloadEnum_t kValues[] = {
      {"Sum", 0, 0}, {"Product", 1, 0}, {"Max", 2, 0}, {"Min", 3, 0}, {"Avg", 4, 0}};
  nvtxPayloadEnumAttr_t given = {};
  given.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
                    NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID;
  given.entries = kValues;
  given.numEntries = 5;
  given.sizeOfEnum = sizeof(int);
  given.schemaId = kReduction;
  nvtxPayloadEnumRegister(domain, &given);
}

void push(const char* function, const nvtxPayloadData_t* payload = nullptr) {
  nvtxEventAttributes_t event = {};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(domain, function);
  if (payload) {
    event.payloadType = NVTX_PAYLOAD_TYPE_EXT;
    event.reserved0 = 1;
    event.payload.ullValue = NVTX_POINTER_AS_PAYLOAD_ULLVALUE(payload);
  }
  nvtxDomainRangePushEx(domain, &event);
}

template <class Payload>
void call(const char* function, uint64_t schema, const Payload& payload) {
  const nvtxPayloadData_t data = {schema, sizeof payload, &payload};
  push(function, &data);
  nvtxDomainRangePop(domain);
}

}  // namespace

int main() {
  domain = nvtxDomainCreateA("NCCL");
  const auto comm = entry(NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "NCCL communicator ID", 0);
  const auto bytes = entry(NVTX_PAYLOAD_ENTRY_TYPE_SIZE, "Message size [bytes]", 8);
  add_reductions();
  add_schema(kCommInitRank, sizeof(CommInitRank),
             {comm, entry(NVTX_PAYLOAD_ENTRY_TYPE_INT, "No. of ranks", 8),
              entry(NVTX_PAYLOAD_ENTRY_TYPE_INT, "Rank", 12),
              entry(NVTX_PAYLOAD_ENTRY_TYPE_INT, "CUDA device", 16)});
  add_schema(kAllReduce, sizeof(AllReduce),
             {comm, bytes, entry(kReduction, "Reduction operation", 16)});
  add_schema(kSend, sizeof(SendReceive),
             {comm, bytes, entry(NVTX_PAYLOAD_ENTRY_TYPE_INT, "Peer rank", 16)});

  push("ncclCommInitRank");
  const CommInitRank made = {kCommunicator, 8, 3, 0};
  const nvtxPayloadData_t data = {kCommInitRank, sizeof made, &made};
  nvtxRangePopPayload(domain, &data, 1);
  call("ncclAllReduce", kAllReduce, AllReduce{kCommunicator, 4096, 2});
  push("ncclGroupStart");
  nvtxDomainRangePop(domain);
  call("ncclSend", kSend, SendReceive{kCommunicator, 64, 5});
  push("ncclGroupEnd");
  nvtxDomainRangePop(domain);
}
