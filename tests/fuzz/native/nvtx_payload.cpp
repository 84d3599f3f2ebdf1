// Payloads of NVTX, with the schemas and enumerations that describe them, as a program may register
// and submit them: whatever they say, nothing is read beyond what is there, and the text that comes
// of it is JSON and not long.
#include <sys/mman.h>

#include <vector>

#include "forget.h"
#include "input.h"
#include "json.h"
#include "nvtx/deferred.h"
#include "nvtx/payload/payload.h"
#include "recorder.h"

namespace {

using namespace flame::nvtx;

constexpr uint32_t kDomain = 1;

void* hole() {
  static void* const page = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page;
}

struct Scene {
  Input in;
  std::vector<uint64_t> ids;
  std::vector<Block> kept;

  uint64_t type() {
    const uint8_t kind = in.byte();
    if (kind < 160 || ids.empty()) return kind;
    return kind < 240 ? ids[kind % ids.size()] : in.number();
  }

  const char* label() {
    if (in.flag()) return nullptr;
    kept.push_back(c_string(in.bytes(40)));
    return kept.back().data();
  }

  // That says by which clock a time is: one that is registered, or any.
  const nvtxSemanticsHeader_t* clock() {
    if (in.below(4) == 0) return nullptr;
    struct {
      nvtxSemanticsHeader_t header;
      uint64_t domain;
    } made = {{sizeof made, in.below(4), 1, nullptr}, in.number()};
    kept.emplace_back(std::string(reinterpret_cast<const char*>(&made), sizeof made));
    return reinterpret_cast<const nvtxSemanticsHeader_t*>(kept.back().data());
  }

  void add_schema() {
    std::vector<nvtxPayloadSchemaEntry_t> entries(in.below(9));
    for (auto& entry : entries) {
      entry.flags = in.take<uint16_t>();
      entry.type = type();
      entry.name = label();
      entry.arrayOrUnionDetail = in.number();
      entry.offset = in.flag() ? in.number() : 0;
      if (entry.flags & NVTX_PAYLOAD_ENTRY_FLAG_TIMESTAMP) entry.semantics = clock();
    }
    nvtxPayloadSchemaAttr_t given = {};
    given.fieldMask = in.flag() ? in.take<uint16_t>() : 0x3fe;
    given.type = in.below(6);
    given.flags = in.byte();
    given.entries = entries.data();
    given.numEntries = entries.size();
    given.payloadStaticSize = in.number();
    given.packAlign = in.number();
    given.schemaId = in.flag() ? 0 : NVTX_PAYLOAD_SCHEMA_ID_STATIC_START + in.below(8);
    ids.push_back(register_schema(kDomain, in.byte() ? &given : nullptr));
  }

  void add_enum() {
    std::vector<nvtxPayloadEnum_t> values(in.below(5));
    for (auto& value : values) value = {label(), in.number(), int8_t(in.byte())};
    nvtxPayloadEnumAttr_t given = {};
    given.fieldMask = in.flag() ? in.byte() : 0x7e;
    given.entries = values.data();
    given.numEntries = values.size();
    given.sizeOfEnum = in.below(17);
    ids.push_back(register_enum(kDomain, &given));
  }

  void add_time_domain() {
    nvtxTimeDomainAttr_t given = {};
    given.timestampTypeId = in.byte();
    given.timeDomainId = in.number();
    given.timerResolution = in.flag() ? int64_t(in.number()) : 0;
    register_time_domain(&given);
  }

  uint64_t address(const std::vector<nvtxPayloadData_t>& payloads) {
    switch (in.below(5)) {
      case 0: return in.number();
      case 1: return reinterpret_cast<uint64_t>(hole()) + 4096 - in.byte();
      case 2: return reinterpret_cast<uint64_t>(registered("a registered string"));
      default:
        if (payloads.empty()) return 0;
        return reinterpret_cast<uint64_t>(payloads[in.byte() % payloads.size()].payload) +
               in.byte();
    }
  }

  void add_pointers(Block& block, const std::vector<nvtxPayloadData_t>& payloads) {
    for (unsigned left = in.below(4); left && block.size() >= 8; --left) {
      const uint64_t to = address(payloads);
      memcpy(block.data() + in.byte() % (block.size() - 7), &to, sizeof to);
    }
  }

  // SIZE_MAX: "as the schema says", which is the program's word, and so is kept.
  uint64_t size_of(uint64_t type, const Block& block) {
    if (in.below(8)) return block.size();
    const Schema* schema = schema_of(kDomain, type);
    return !schema || schema->size <= block.size() ? SIZE_MAX : block.size();
  }

  std::vector<nvtxPayloadData_t> payloads() {
    std::vector<nvtxPayloadData_t> made;
    for (unsigned left = in.below(5); left; --left) {
      kept.emplace_back(in.bytes(300));
      Block& block = kept.back();
      add_pointers(block, made);
      const uint64_t of = type();
      const bool empty = in.byte() == 255;
      made.push_back({of, size_of(of, block), empty ? nullptr : block.data()});
    }
    return made;
  }

  void read() {
    flame::nvtx::Event event;
    Times times;
    const auto given = payloads();
    read_payloads(kDomain, given.data(), given.size(), &event, in.flag() ? &times : nullptr);
    require(event.json.empty() || Json::is_valid(event.json), "a payload is written as JSON");
    require(event.json.size() < 3 * kMaxJson, "it is not long");
    flame::text(event.message);
  }

  void submit_batch() {
    kept.emplace_back(in.bytes(300));
    kept.emplace_back(in.bytes(100));
    const Block &events = kept[kept.size() - 2], &flexible = kept.back();
    nvtxEventBatch_t batch = {};
    batch.eventSchemaId = type();
    batch.events = events.data();
    batch.size = events.size();
    batch.flexData = in.flag() ? flexible.data() : nullptr;
    batch.flexDataSize = flexible.size();
    batch.flexDataOffset = in.flag() ? in.number() : 0;
    submit(kDomain, &batch);
  }

  void step() {
    switch (in.below(8)) {
      case 0:
      case 1: return add_schema();
      case 2: return add_enum();
      case 3: return add_time_domain();
      case 4: return submit_batch();
      case 5: {
        const auto given = payloads();
        return submit(kDomain, given.data(), given.size());
      }
      default: return read();
    }
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  recorder::begin();
  forget_schemas();
  Scene scene{{data, size}, {}, {}};
  while (!scene.in.empty()) scene.step();
  recorder::flush(true);
  return 0;
}
