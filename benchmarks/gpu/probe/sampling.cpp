// PC sampling as NVIDIA's sample does it: every result is counted, nothing is done about errors.
#include <cstring>
#include <memory>

#include "probe.h"

namespace probe {
namespace {

constexpr size_t kPcs = 4096, kMostRounds = 1000;

std::mutex& sampling_mutex = *new std::mutex;  // held while CUPTI is called; state().mutex is not

struct Buffer {
  Buffer(size_t reasons) : pcs(kPcs), stalls(kPcs * reasons) {
    for (size_t i = 0; i < kPcs; ++i) {
      pcs[i].size = sizeof pcs[i];
      pcs[i].stallReason = &stalls[i * reasons];
    }
    data.size = sizeof data;
    data.collectNumPcs = kPcs;
    data.pPcData = pcs.data();
  }
  std::vector<CUpti_PCSamplingPCData> pcs;
  std::vector<CUpti_PCSamplingStallReason> stalls;
  CUpti_PCSamplingData data = {};
};

struct Sampled {
  std::unique_ptr<Buffer> configured, output;  // CUPTI writes into the first, we read the second
};
auto& contexts = *new std::map<CUcontext, Sampled>;  // an empty one: it was refused

const char* mode() { return setting("PROBE_PC", "off"); }

CUpti_PCSamplingConfigurationInfo of_type(CUpti_PCSamplingConfigurationAttributeType type) {
  CUpti_PCSamplingConfigurationInfo info = {};
  info.attributeType = type;
  return info;
}

std::vector<CUpti_PCSamplingConfigurationInfo> configuration(Buffer* buffer) {
  auto collection = of_type(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE);
  collection.attributeData.collectionModeData.collectionMode =
      sampling_serialized() ? CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED
                            : CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS;
  auto data = of_type(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER);
  data.attributeData.samplingDataBufferData.samplingDataBuffer = &buffer->data;
  auto scratch = of_type(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE);
  scratch.attributeData.scratchBufferSizeData.scratchBufferSize = number("PROBE_SCRATCH_MB") << 20;
  auto hardware = of_type(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE);
  hardware.attributeData.hardwareBufferSizeData.hardwareBufferSize = number("PROBE_HW_MB") << 20;
  auto period = of_type(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD);
  period.attributeData.samplingPeriodData.samplingPeriod = uint32_t(number("PROBE_PERIOD"));
  std::vector<CUpti_PCSamplingConfigurationInfo> all = {collection, data};
  if (number("PROBE_SCRATCH_MB")) all.push_back(scratch);
  if (number("PROBE_HW_MB")) all.push_back(hardware);
  if (number("PROBE_PERIOD")) all.push_back(period);
  return all;
}

void configure(CUcontext context, Sampled* sampled) {
  size_t reasons = 0;
  CUpti_PCSamplingGetNumStallReasonsParams count = {};
  count.size = CUpti_PCSamplingGetNumStallReasonsParamsSize;
  count.ctx = context;
  count.numStallReasons = &reasons;
  PROBE_ASK(cuptiPCSamplingGetNumStallReasons, &count);
  sampled->configured = std::make_unique<Buffer>(reasons);
  sampled->output = std::make_unique<Buffer>(reasons);
  auto all = configuration(sampled->configured.get());
  CUpti_PCSamplingConfigurationInfoParams params = {};
  params.size = CUpti_PCSamplingConfigurationInfoParamsSize;
  params.ctx = context;
  params.numAttributes = all.size();
  params.pPCSamplingConfigurationInfo = all.data();
  PROBE_ASK(cuptiPCSamplingSetConfigurationAttribute, &params);
}

void count(const Buffer& buffer) {
  std::lock_guard<std::mutex> lock(state().mutex);
  state().dropped_samples += buffer.data.droppedSamples;
  for (size_t i = 0; i < buffer.data.totalNumPcs && i < kPcs; ++i) {
    const CUpti_PCSamplingPCData& pc = buffer.pcs[i];
    uint64_t samples = 0;
    for (size_t j = 0; j < pc.stallReasonCount; ++j) samples += pc.stallReason[j].samples;
    state().pcs++;
    state().samples += samples;
    if (pc.correlationId) state().samples_with_correlation += samples;
  }
}

void drain(CUcontext context, Buffer* output) {
  for (size_t i = 0; i < kMostRounds; ++i) {
    output->data.totalNumPcs = output->data.remainingNumPcs = 0;
    output->data.hardwareBufferFull = 0;
    CUpti_PCSamplingGetDataParams get = {};
    get.size = CUpti_PCSamplingGetDataParamsSize;
    get.ctx = context;
    get.pcSamplingData = &output->data;
    int code = PROBE_ASK(cuptiPCSamplingGetData, &get);
    {
      std::lock_guard<std::mutex> lock(state().mutex);
      state().looks++;
      state().failed_looks += code != CUPTI_SUCCESS;
      state().hardware_full += output->data.hardwareBufferFull != 0;
    }
    if (code != CUPTI_SUCCESS) return;
    count(*output);
    if (!output->data.remainingNumPcs) return;
  }
}

}  // namespace

bool sampling_wanted() { return strcmp(mode(), "off") != 0; }
bool sampling_serialized() { return !strcmp(mode(), "serialized"); }
bool sampling_late() { return sampling_wanted() && number("PROBE_LATE"); }

void sample(CUcontext context) {
  std::lock_guard<std::mutex> lock(sampling_mutex);
  if (contexts.count(context)) return;
  uint64_t begin = now();
  Sampled& sampled = contexts[context];
  CUpti_PCSamplingEnableParams enable = {};
  enable.size = CUpti_PCSamplingEnableParamsSize;
  enable.ctx = context;
  if (PROBE_ASK(cuptiPCSamplingEnable, &enable) != CUPTI_SUCCESS) return;
  configure(context, &sampled);
  std::lock_guard<std::mutex> counted(state().mutex);
  state().sampled_contexts++;
  state().sampling_set_up_ms += ms_since(begin);
}

void collect(CUcontext context) {
  std::lock_guard<std::mutex> lock(sampling_mutex);
  auto found = contexts.find(context);
  if (found != contexts.end() && found->second.output) drain(context, found->second.output.get());
}

void end_sampling() {
  std::lock_guard<std::mutex> lock(sampling_mutex);
  for (auto& [context, sampled] : contexts) {
    if (!sampled.output) continue;
    drain(context, sampled.output.get());
    sampled.configured->data.totalNumPcs = 0;
    CUpti_PCSamplingDisableParams disable = {};
    disable.size = CUpti_PCSamplingDisableParamsSize;
    disable.ctx = context;
    PROBE_ASK(cuptiPCSamplingDisable, &disable);
    count(*sampled.configured);  // what was left goes there
  }
}

}  // namespace probe
