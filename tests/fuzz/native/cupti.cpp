// A CUPTI that says anything, and fails anywhere: callbacks in any order, activity records and PC
// samples with any numbers, modules of any bytes. What it may not do is to give memory that is not
// there; what it says of memory that the library has given is not believed.
#include <algorithm>
#include <map>
#include <vector>

#include "cupti/api/functions.h"
#include "folder.h"
#include "input.h"
#include "recorder.h"
// Not linked: what they know of contexts and of the end is for ever, and each input begins anew.
#include "cupti/subscribe.cpp"
#include "sampling/sampling.cpp"

namespace {

using namespace flame;

Input* in;  // null: all is well
std::vector<Block> kept;
CUpti_CallbackFunc callback_given;
CUpti_BuffersCallbackRequestFunc request;
CUpti_BuffersCallbackCompleteFunc complete;
size_t reasons;  // as the library has been told
std::map<CUcontext, CUpti_PCSamplingData*> left;  // where samples go when sampling ends

CUptiResult result() {
  if (!in || in->byte() < 225) return CUPTI_SUCCESS;
  return CUptiResult(in->below(48));
}

uint64_t number() { return in ? in->number() : 1; }

char* string() {
  if (!in || in->byte() > 240) return nullptr;
  kept.push_back(c_string(in->bytes(100)));
  return kept.back().data();
}

// callbacks

constexpr const char* kNames[] = {
    "cuLaunchKernel", "cuGraphLaunch", "cuMemcpyHtoD_v2", "cuGraphInstantiate",
    "cuLaunchHostFunc", "cuCtxCreate", "cuMemsetD8_v2", "cuLaunchKernelEx",
    "cuStreamSynchronize", "cuMemAlloc_v2"};
constexpr uint32_t kNamed = 64;

CUptiResult CUPTIAPI get_name(CUpti_CallbackDomain, uint32_t id, const char** name) {
  if (id >= kNamed) return CUPTI_ERROR_INVALID_PARAMETER;
  *name = kNames[id % (sizeof kNames / sizeof *kNames)];
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI subscribe_double(CUpti_SubscriberHandle*, CUpti_CallbackFunc function, void*) {
  callback_given = function;
  return CUPTI_SUCCESS;
}

template <class Id>
CUptiResult CUPTIAPI tell(Id, uint32_t* id) {
  *id = uint32_t(number());
  return result();
}

CUptiResult CUPTIAPI tell_node(CUgraphNode, uint64_t* id) {
  *id = number();
  return result();
}

CUptiResult CUPTIAPI tell_crc(CUpti_GetCubinCrcParams* parameters) {
  parameters->cubinCrc = in ? in->byte() : 0;
  return result();
}

// activity records

template <class Record>
Record& put_record(char* place) {
  const std::string bytes = in->bytes(sizeof(Record));
  memset(place, 0, sizeof(Record));
  memcpy(place, bytes.data(), bytes.size());
  return *reinterpret_cast<Record*>(place);
}

using NewestKernel =
#if CUPTI_API_VERSION >= 130000
    CUpti_ActivityKernel10;
#else
    CUpti_ActivityKernel9;
#endif

// Of memory, of a pool, or of a kind that nobody asked for.
CUpti_ActivityKind put_rare(char* place) {
  constexpr CUpti_ActivityKind kRare[] = {CUPTI_ACTIVITY_KIND_MEMORY2,
                                          CUPTI_ACTIVITY_KIND_MEMORY_POOL,
                                          CUPTI_ACTIVITY_KIND_OVERHEAD};
  return kRare[put_record<CUpti_ActivityMemory3>(place).bytes % 3];
}

size_t put_any(char* place) {
  const uint8_t kind = in->below(7);
  constexpr CUpti_ActivityKind kKinds[] = {
      CUPTI_ACTIVITY_KIND_KERNEL,     CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
      CUPTI_ACTIVITY_KIND_MEMCPY,     CUPTI_ACTIVITY_KIND_MEMCPY2,
      CUPTI_ACTIVITY_KIND_MEMSET,     CUPTI_ACTIVITY_KIND_INVALID,
      CUPTI_ACTIVITY_KIND_GRAPH_TRACE};
  CUpti_ActivityKind told = kKinds[kind];
  size_t size;
  if (kind < 2) {
    put_record<NewestKernel>(place).name = string();
    size = sizeof(NewestKernel);
  } else if (kind == 3) {
    put_record<CUpti_ActivityMemcpyPtoP4>(place);
    size = sizeof(CUpti_ActivityMemcpyPtoP4);
  } else if (kind == 6) {
    put_record<CUpti_ActivityGraphTrace2>(place);
    size = sizeof(CUpti_ActivityGraphTrace2);
  } else if (kind == 5) {
    told = put_rare(place);
    size = sizeof(CUpti_ActivityMemory3);
  } else {
    put_record<CUpti_ActivityMemcpy6>(place);
    size = sizeof(CUpti_ActivityMemcpy6);
  }
  reinterpret_cast<CUpti_Activity*>(place)->kind = told;
  return size;
}

std::vector<size_t> sizes;  // of the records in the buffer
size_t next_record;

CUptiResult CUPTIAPI next(uint8_t* buffer, size_t, CUpti_Activity** record) {
  if (next_record == sizes.size()) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  size_t at = 0;
  for (size_t i = 0; i < next_record; i++) at += sizes[i];
  next_record++;
  *record = reinterpret_cast<CUpti_Activity*>(buffer + at);
  return result();
}

void fill_buffer() {
  uint8_t* buffer = nullptr;
  size_t size = 0, most = 0, used = 0;
  request(&buffer, &size, &most);
  require(buffer && size, "there is a buffer");
  sizes.clear();
  next_record = 0;
  for (unsigned count = in->below(8); count; count--) {
    sizes.push_back(put_any(reinterpret_cast<char*>(buffer) + used));
    used += sizes.back();
  }
  complete(nullptr, 0, buffer, size, used);
}

// It may say that there are more kinds than it was given room for.
CUptiResult CUPTIAPI tell_kinds(CUpti_SubscriberHandle, CUpti_ActivityKind* kinds, uint32_t* room,
                                uint32_t* count) {
  const uint32_t told = uint32_t(number());
  kinds[0] = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  for (uint32_t each = 0; in && each < std::min({told, *room, 8u}); each++)
    kinds[each] = CUpti_ActivityKind(in->below(64));
  *count = told;
  return result();
}

CUptiResult CUPTIAPI register_buffers_double(CUpti_BuffersCallbackRequestFunc requests,
                                             CUpti_BuffersCallbackCompleteFunc completes) {
  request = requests;
  complete = completes;
  return CUPTI_SUCCESS;
}

// PC samples

CUptiResult CUPTIAPI count_reasons_double(CUpti_PCSamplingGetNumStallReasonsParams* parameters) {
  // Room for all of them is made at thousands of instructions: mostly it is little.
  *parameters->numStallReasons = reasons = in->byte() < 250 ? in->below(8) : number();
  return result();
}

CUptiResult CUPTIAPI name_reasons_double(CUpti_PCSamplingGetStallReasonsParams* parameters) {
  for (size_t i = 0; i < parameters->numStallReasons && !in->empty(); i++) {
    parameters->stallReasonIndex[i] = in->byte();
    memset(parameters->stallReasons[i], in->byte(), CUPTI_STALL_REASON_STRING_SIZE);
  }
  return result();
}

CUptiResult CUPTIAPI configure_double(CUpti_PCSamplingConfigurationInfoParams* parameters) {
  for (size_t i = 0; i < parameters->numAttributes; i++) {
    const auto& each = parameters->pPCSamplingConfigurationInfo[i];
    if (each.attributeType == CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER)
      left[parameters->ctx] = static_cast<CUpti_PCSamplingData*>(
          each.attributeData.samplingDataBufferData.samplingDataBuffer);
  }
  return result();
}

void fill(CUpti_PCSamplingData* data) {
  data->totalNumPcs = number();
  data->remainingNumPcs = number();
  data->droppedSamples = number();
  data->hardwareBufferFull = in->byte() > 250;
  const size_t count = std::min({data->totalNumPcs, data->collectNumPcs, size_t{8}});
  for (size_t i = 0; i < count; i++) {
    CUpti_PCSamplingPCData& pc = data->pPcData[i];
    pc.cubinCrc = number();
    pc.pcOffset = number();
    pc.functionName = string();
    pc.stallReasonCount = number();
    for (size_t j = 0; j < reasons && j < 4; j++) pc.stallReason[j] = {in->byte(), in->byte()};
  }
}

CUptiResult CUPTIAPI get_data_double(CUpti_PCSamplingGetDataParams* parameters) {
  fill(static_cast<CUpti_PCSamplingData*>(parameters->pcSamplingData));
  return result();
}

// What has not been collected is left where the library said.
CUptiResult CUPTIAPI disable_double(CUpti_PCSamplingDisableParams* parameters) {
  const auto found = left.find(parameters->ctx);
  if (found == left.end()) return result();
  fill(found->second);
  left.erase(found);
  return result();
}

// One that has all functions; those that only say whether it worked do no more.
Cupti make_double() {
  Cupti made = {};
  made.cuptiSubscribe = subscribe_double;
  made.cuptiUnsubscribe = [](CUpti_SubscriberHandle) { return CUPTI_SUCCESS; };
  made.cuptiEnableCallback = [](uint32_t, CUpti_SubscriberHandle, CUpti_CallbackDomain,
                                CUpti_CallbackId) { return result(); };
  made.cuptiGetVersion = [](uint32_t* version) {
    *version = 28;
    return CUPTI_SUCCESS;
  };
  made.cuptiActivityRegisterCallbacks = register_buffers_double;
  made.cuptiActivityEnable = made.cuptiActivityDisable = [](CUpti_ActivityKind) {
    return result();
  };
  made.cuptiActivityGetEnabledKinds = tell_kinds;
  made.cuptiActivityGetNextRecord = next;
  made.cuptiActivityFlushAll = [](uint32_t) { return result(); };
  made.cuptiActivityGetNumDroppedRecords = [](CUcontext, uint32_t, size_t* lost) {
    *lost = number();
    return result();
  };
  made.cuptiGetTimestamp = [](uint64_t* time) {
    *time = number();
    return result();
  };
  made.cuptiGetCallbackName = get_name;
  made.cuptiGetContextId = tell<CUcontext>;
  made.cuptiGetGraphId = tell<CUgraph>;
  made.cuptiGetGraphExecId = tell<CUgraphExec>;
  made.cuptiGetGraphNodeId = tell_node;
  made.cuptiGetCubinCrc = tell_crc;
  made.cuptiPCSamplingEnable = [](CUpti_PCSamplingEnableParams*) { return result(); };
  made.cuptiPCSamplingDisable = disable_double;
  made.cuptiPCSamplingGetData = get_data_double;
  made.cuptiPCSamplingGetNumStallReasons = count_reasons_double;
  made.cuptiPCSamplingGetStallReasons = name_reasons_double;
  made.cuptiPCSamplingSetConfigurationAttribute = configure_double;
  return made;
}

// what the program does

CUcontext any_context() { return reinterpret_cast<CUcontext>(uintptr_t{in->below(4)}); }

void call_driver() {
  CUresult returned = CUresult(in->byte());
  CUpti_CallbackData data = {};
  data.callbackSite = in->flag() ? CUPTI_API_ENTER : CUPTI_API_EXIT;
  data.correlationId = in->byte();
  data.context = any_context();
  data.contextUid = in->byte();
  data.symbolName = string();
  data.functionReturnValue = in->flag() ? &returned : nullptr;
  const auto id = in->flag() ? in->below(kNamed) : CUpti_CallbackId(in->number());
  callback_given(nullptr, CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
}

void tell_resource(CUpti_CallbackIdResource id, void* descriptor) {
  CUpti_ResourceData data = {};
  data.context = any_context();
  data.resourceDescriptor = descriptor;
  callback_given(nullptr, CUPTI_CB_DOMAIN_RESOURCE, id, &data);
}

void load_module() {
  kept.emplace_back(in->bytes(200));
  CUpti_ModuleResourceData module = {};
  module.moduleId = in->byte();
  module.cubinSize = kept.back().size();
  module.pCubin = in->byte() > 250 ? nullptr : kept.back().data();
  tell_resource(in->byte() > 200 ? CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING
                                 : CUPTI_CBID_RESOURCE_MODULE_LOADED,
                &module);
}

void make_node() {
  CUpti_GraphData graph = {};
  graph.graph = reinterpret_cast<CUgraph>(uintptr_t{in->below(3)});
  graph.node = reinterpret_cast<CUgraphNode>(uintptr_t{in->below(3)});
  graph.originalNode = reinterpret_cast<CUgraphNode>(uintptr_t{in->below(3)});
  graph.nodeType = CUgraphNodeType(in->below(4));
  graph.graphExec = reinterpret_cast<CUgraphExec>(uintptr_t{in->below(3)});
  constexpr CUpti_CallbackIdResource kTold[] = {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
                                                CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
                                                CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED};
  tell_resource(kTold[in->below(3)], &graph);
}

void sample() {
  constexpr const char* kModes[] = {"off", "continuous", "serialized", "continuous:5",
                                    "serialized:31"};
  if (in->byte() > 100) return void(switch_sampling(kModes[in->below(5)]));
  SamplingMode mode;
  const Block text(in->bytes(20));
  const bool known = read_sampling_mode({text.data(), text.size()}, &mode);
  require(!mode.period || (known && mode.period >= 5 && mode.period <= 31), "periods are known");
}

void step() {
  switch (in->below(11)) {
    case 0:
    case 1:
    case 2: return call_driver();
    case 3: return fill_buffer();
    case 4: return load_module();
    case 5: return make_node();
    case 6: return sample();
    case 7: return recorder::flush(in->byte() > 240);
    case 8: return tell_resource(CUPTI_CBID_RESOURCE_CONTEXT_CREATED, nullptr);
    case 9: return enable_kinds();  // as when records are taken back
    default: return tell_resource(CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, nullptr);
  }
}

bool begin_once() {
  setenv("FLAME_MEMORY_EVENTS", "1", 1);
  return record_into_own_folder() && start_cupti();
}

void forget() {
  in = nullptr;
  reasons = 0;
  while (flame::contexts) {
    SampledContext* const first = flame::contexts;
    flame::contexts = first->next;
    delete first;
  }
  flame::mode = {};
  flame::wanted = 0;
  flame::given_up = false;
  flame::last_flush = 0;
  flame::on = true;
  flame::leave_out_work_from(0);
  left.clear();
  kept.clear();
}

}  // namespace

namespace flame {

Cupti* cupti() {
  static Cupti made = make_double();
  return &made;
}
bool choose_cupti(Attempt (*attempt)(std::string*)) {
  std::string why;
  return attempt(&why) == Attempt::kWorks;
}
const char* result_name(CUptiResult) { return "an error"; }
void* driver_function(const char*) { return nullptr; }
void* cupti_function(const char*) { return nullptr; }

}  // namespace flame

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool begun = begin_once();
  require(begun, "CUPTI is there");
  recorder::begin();
  Input input(data, size);
  in = &input;
  while (!in->empty()) step();
  recorder::end_thread();
  forget();
  return 0;
}
