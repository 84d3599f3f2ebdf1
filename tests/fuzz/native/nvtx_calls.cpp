// Calls of NVTX in any order, with any arguments that a program can pass: strings, attributes of any
// size and type, domains, handles, ranges that do not match. What push and pop return is compared
// with what they must.
#include <cwchar>
#include <map>
#include <vector>

#include "forget.h"
#include "input.h"
#include "nvtx/shared/names.h"
#include "recorder.h"

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
extern "C" int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t* module);

namespace {

constexpr unsigned kModules = 8, kFunctions = 64;
void (*functions[kModules][kFunctions])();
intptr_t slots[256];

// The export table of a copy of NVTX.
int get_functions(NvtxCallbackModule module, NvtxFunctionTable* table, unsigned* size) {
  static NvtxFunctionPointer* places[kModules][kFunctions];
  if (module >= kModules) return 0;
  for (unsigned i = 0; i < kFunctions; i++)
    places[module][i] = reinterpret_cast<NvtxFunctionPointer*>(&functions[module][i]);
  *table = places[module];
  *size = kFunctions;
  return 1;
}

const void* get_table(uint32_t id) {
  static const NvtxExportTableCallbacks table = {sizeof table, get_functions};
  return id == NVTX_ETID_CALLBACKS ? &table : nullptr;
}

bool connect() {
  nvtxExtModuleSegment_t segment = {};
  segment.slotCount = sizeof slots / sizeof *slots;
  segment.functionSlots = slots;
  nvtxExtModuleInfo_t module = {};
  module.structSize = sizeof module;
  module.moduleId = NVTX_EXT_PAYLOAD_MODULEID;
  module.segments = &segment;
  module.segmentsCount = 1;
  return InitializeInjectionNvtx2(get_table) && InitializeInjectionNvtxExtension(&module);
}

template <class Result, class... Arguments>
Result call(NvtxCallbackModule module, unsigned id, Arguments... arguments) {
  return reinterpret_cast<Result (*)(Arguments...)>(functions[module][id])(arguments...);
}

#define CORE(name) NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_##name
#define CORE2(name) NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_##name

template <class Result, class... Arguments>
Result call_slot(unsigned id, Arguments... arguments) {
  return reinterpret_cast<Result (*)(Arguments...)>(slots[id])(arguments...);
}

using DomainHandle = const nvtxDomainRegistration_st*;
using StringHandle = const nvtxStringRegistration_st*;

struct Scene {
  Input in;
  std::vector<Block> kept{};
  std::vector<DomainHandle> domains{nullptr};
  std::vector<StringHandle> strings{nullptr};
  std::vector<uint64_t> ranges{0};
  std::vector<uint64_t> schemas{0};
  std::map<DomainHandle, int> depth{};

  const char* narrow() {
    if (in.byte() == 255) return nullptr;
    kept.push_back(c_string(in.bytes(in.byte() == 255 ? 40000 : 60)));
    return kept.back().data();
  }

  // Of any 32-bit units: those that are no characters too.
  const wchar_t* wide() {
    if (in.byte() == 255) return nullptr;
    std::wstring made(in.below(20), 0);
    for (wchar_t& unit : made) unit = in.flag() ? wchar_t(in.byte()) : in.take<wchar_t>();
    const size_t size = (wcslen(made.c_str()) + 1) * sizeof(wchar_t);
    kept.emplace_back(std::string(reinterpret_cast<const char*>(made.c_str()), size));
    return reinterpret_cast<const wchar_t*>(kept.back().data());
  }

  DomainHandle domain() { return domains[in.byte() % domains.size()]; }

  std::vector<nvtxPayloadData_t> payloads() {
    std::vector<nvtxPayloadData_t> made(in.below(3));
    for (auto& payload : made) {
      kept.emplace_back(in.bytes(64));
      payload = {schemas[in.byte() % schemas.size()], kept.back().size(), kept.back().data()};
      if (in.flag()) payload.schemaId = in.byte();
    }
    return made;
  }

  void set_message(nvtxEventAttributes_t* to) {
    to->messageType = in.flag() ? in.below(5) : in.take<int32_t>();
    switch (to->messageType) {
      case NVTX_MESSAGE_TYPE_ASCII: to->message.ascii = narrow(); break;
      case NVTX_MESSAGE_TYPE_UNICODE: to->message.unicode = wide(); break;
      case NVTX_MESSAGE_TYPE_REGISTERED: to->message.registered = string(); break;
      default: to->message.ascii = reinterpret_cast<const char*>(uintptr_t{in.byte()});
    }
  }

  nvtxStringHandle_t string() {
    return const_cast<nvtxStringHandle_t>(strings[in.byte() % strings.size()]);
  }

  // In memory of the size that it says, which an older or newer NVTX has chosen.
  const nvtxEventAttributes_t* attributes() {
    if (in.byte() == 255) return nullptr;
    nvtxEventAttributes_t made = {};
    made.version = in.take<uint16_t>();
    made.category = in.byte();
    made.colorType = in.below(3);
    made.color = in.take<uint32_t>();
    made.payloadType = in.flag() ? in.below(9) : in.take<int32_t>();
    made.payload.ullValue = in.number();
    set_message(&made);
    if (made.payloadType == NVTX_PAYLOAD_TYPE_EXT) {
      const auto given = payloads();
      made.reserved0 = int32_t(given.size());
      kept.emplace_back(std::string(reinterpret_cast<const char*>(given.data()),
                                    given.size() * sizeof(nvtxPayloadData_t)));
      made.payload.ullValue = reinterpret_cast<uint64_t>(kept.back().data());
    }
    std::string bytes(reinterpret_cast<const char*>(&made), sizeof made);
    made.size = in.flag() ? sizeof made : uint16_t(4 + in.below(100));
    memcpy(&bytes[offsetof(nvtxEventAttributes_t, size)], &made.size, sizeof made.size);
    bytes.resize(made.size);
    kept.emplace_back(bytes);
    return reinterpret_cast<const nvtxEventAttributes_t*>(kept.back().data());
  }

  void pushed(DomainHandle domain, int answer) { require(answer == depth[domain]++, "push"); }

  void popped(DomainHandle domain, int answer) {
    int& open = depth[domain];
    require(open ? answer == --open : answer < 0, "pop");
  }

  void push() {
    const DomainHandle in_domain = domain();
    switch (in.below(5)) {
      case 0: return pushed(nullptr, call<int>(CORE(RangePushA), narrow()));
      case 1: return pushed(nullptr, call<int>(CORE(RangePushW), wide()));
      case 2: return pushed(nullptr, call<int>(CORE(RangePushEx), attributes()));
      case 3: {
        const auto given = payloads();
        return pushed(in_domain, call_slot<int>(NVTX3EXT_CBID_nvtxRangePushPayload, in_domain,
                                                given.data(), given.size()));
      }
      default:
        return pushed(in_domain, call<int>(CORE2(DomainRangePushEx), in_domain, attributes()));
    }
  }

  void pop() {
    const DomainHandle in_domain = domain();
    switch (in.below(3)) {
      case 0: return popped(nullptr, call<int>(CORE(RangePop)));
      case 1: {
        const auto given = payloads();
        return popped(in_domain, call_slot<int>(NVTX3EXT_CBID_nvtxRangePopPayload, in_domain,
                                                given.data(), given.size()));
      }
      default: return popped(in_domain, call<int>(CORE2(DomainRangePop), in_domain));
    }
  }

  void start() {
    switch (in.below(4)) {
      case 0: ranges.push_back(call<uint64_t>(CORE(RangeStartA), narrow())); break;
      case 1: ranges.push_back(call<uint64_t>(CORE(RangeStartW), wide())); break;
      case 2: ranges.push_back(call<uint64_t>(CORE(RangeStartEx), attributes())); break;
      default:
        ranges.push_back(call<uint64_t>(CORE2(DomainRangeStartEx), domain(), attributes()));
    }
  }

  void end() {
    const uint64_t id = in.flag() ? ranges[in.byte() % ranges.size()] : in.number();
    if (in.flag()) return call<void>(CORE(RangeEnd), id);
    const auto given = payloads();
    call_slot<void>(NVTX3EXT_CBID_nvtxRangeEndPayload, domain(), id, given.data(), given.size());
  }

  void mark() {
    switch (in.below(4)) {
      case 0: return call<void>(CORE(MarkA), narrow());
      case 1: return call<void>(CORE(MarkW), wide());
      case 2: return call<void>(CORE(MarkEx), attributes());
      default: return call<void>(CORE2(DomainMarkEx), domain(), attributes());
    }
  }

  void name() {
    const uint32_t id = in.byte();
    switch (in.below(7)) {
      case 0: return call<void>(CORE(NameCategoryA), id, narrow());
      case 1: return call<void>(CORE(NameCategoryW), id, wide());
      case 2: return call<void>(CORE(NameOsThreadA), id, narrow());
      case 3: return call<void>(CORE(NameOsThreadW), id, wide());
      case 4: return call<void>(CORE2(DomainNameCategoryA), domain(), id, narrow());
      case 5: return call<void>(CORE2(DomainNameCategoryW), domain(), id, wide());
      default:
        return call<void>(NVTX_CB_MODULE_CUDA, NVTX_CBID_CUDA_NameCuDeviceA, int(id), narrow());
    }
  }

  void make() {
    switch (in.below(4)) {
      case 0: domains.push_back(call<DomainHandle>(CORE2(DomainCreateA), narrow())); break;
      case 1: domains.push_back(call<DomainHandle>(CORE2(DomainCreateW), wide())); break;
      case 2:
        strings.push_back(call<StringHandle>(CORE2(DomainRegisterStringA), domain(), narrow()));
        break;
      default:
        strings.push_back(call<StringHandle>(CORE2(DomainRegisterStringW), domain(), wide()));
    }
  }

  void make_schema() {
    std::vector<nvtxPayloadSchemaEntry_t> entries(in.below(4));
    for (auto& entry : entries)
      entry = {in.take<uint16_t>(), in.byte(), narrow(), nullptr, in.byte(), in.byte(), nullptr,
               nullptr};
    nvtxPayloadSchemaAttr_t given = {};
    given.fieldMask = 0x3e;
    given.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC + in.below(2);
    given.entries = entries.data();
    given.numEntries = entries.size();
    schemas.push_back(call_slot<uint64_t>(NVTX3EXT_CBID_nvtxPayloadSchemaRegister, domain(),
                                          static_cast<const nvtxPayloadSchemaAttr_t*>(&given)));
  }

  void step() {
    switch (in.below(12)) {
      case 0:
      case 1:
      case 2: return push();
      case 3:
      case 4: return pop();
      case 5: return start();
      case 6: return end();
      case 7: return mark();
      case 8: return name();
      case 9: return make_schema();
      case 10:
        recorder::end_thread();
        return depth.clear();
      default: return make();
    }
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool connected = connect();
  require(connected, "NVTX's functions are taken");
  recorder::begin();
  forget_schemas();
  forget_names();
  Scene scene{{data, size}};
  while (!scene.in.empty()) scene.step();
  recorder::end_thread();
  recorder::flush(true);
  for (const uint64_t id : scene.ranges) call<void>(CORE(RangeEnd), id);
  return 0;
}
