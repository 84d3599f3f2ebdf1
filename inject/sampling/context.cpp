// Samples PCs in one CUDA context, by CUPTI's PC Sampling API (cupti_pcsampling.h).
#include "sampling/context.h"

#include <cstring>
#include <memory>
#include <new>

#include "cupti/api/functions.h"
#include "flame.h"
#include "system/clock.h"

namespace flame {
namespace {

constexpr uint32_t kOldest = 22;  // CUPTI 12.4: its PC records are the first with a correlation id
constexpr int kMaxRounds = 1000;  // of one collection
constexpr size_t kMaxReasons = 1024;  // GPUs have some 40; there is room for all at every instruction

CUptiResult enable(CUcontext context) {
  CUpti_PCSamplingEnableParams parameters = {};
  parameters.size = CUpti_PCSamplingEnableParamsSize;
  parameters.ctx = context;
  return cupti()->cuptiPCSamplingEnable(&parameters);
}

CUptiResult disable(CUcontext context) {
  CUpti_PCSamplingDisableParams parameters = {};
  parameters.size = CUpti_PCSamplingDisableParamsSize;
  parameters.ctx = context;
  return cupti()->cuptiPCSamplingDisable(&parameters);
}

CUptiResult configure(SampledContext& sampled, const SamplingMode& mode) {
  CUpti_PCSamplingConfigurationInfo attributes[3] = {};
  attributes[0].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE;
  attributes[0].attributeData.collectionModeData.collectionMode = mode.collection;
  attributes[1].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER;
  attributes[1].attributeData.samplingDataBufferData.samplingDataBuffer = &sampled.left.data;
  attributes[2].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD;
  attributes[2].attributeData.samplingPeriodData.samplingPeriod = mode.period;
  CUpti_PCSamplingConfigurationInfoParams parameters = {};
  parameters.size = CUpti_PCSamplingConfigurationInfoParamsSize;
  parameters.ctx = sampled.context;
  parameters.numAttributes = mode.period ? 3 : 2;
  parameters.pPCSamplingConfigurationInfo = attributes;
  return cupti()->cuptiPCSamplingSetConfigurationAttribute(&parameters);
}

CUptiResult count_reasons(CUcontext context, size_t* count) {
  CUpti_PCSamplingGetNumStallReasonsParams parameters = {};
  parameters.size = CUpti_PCSamplingGetNumStallReasonsParamsSize;
  parameters.ctx = context;
  parameters.numStallReasons = count;
  return cupti()->cuptiPCSamplingGetNumStallReasons(&parameters);
}

CUptiResult name_reasons(CUcontext context, size_t count) {
  using Text = char[CUPTI_STALL_REASON_STRING_SIZE];
  std::unique_ptr<uint32_t[]> ids(new (std::nothrow) uint32_t[count]());
  std::unique_ptr<Text[]> texts(new (std::nothrow) Text[count]());
  std::unique_ptr<char*[]> pointers(new (std::nothrow) char*[count]);
  if (!ids || !texts || !pointers) return CUPTI_ERROR_OUT_OF_MEMORY;
  for (size_t i = 0; i < count; ++i) pointers[i] = texts[i];
  CUpti_PCSamplingGetStallReasonsParams parameters = {};
  parameters.size = CUpti_PCSamplingGetStallReasonsParamsSize;
  parameters.ctx = context;
  parameters.numStallReasons = count;
  parameters.stallReasonIndex = ids.get();
  parameters.stallReasons = pointers.get();
  CUptiResult result = cupti()->cuptiPCSamplingGetStallReasons(&parameters);
  if (result) return result;
  for (size_t i = 0; i < count; ++i)
    name(kStallReason, 0, ids[i], std::string_view(texts[i], strnlen(texts[i], sizeof(Text))));
  return CUPTI_SUCCESS;
}

// After enabling, in the order of NVIDIA's sample pc_sampling_continuous.
SamplingFailure prepare(SampledContext& sampled, const SamplingMode& mode) {
  size_t reasons = 0;
  if (CUptiResult result = count_reasons(sampled.context, &reasons))
    return {"cuptiPCSamplingGetNumStallReasons", result};
  if (!reasons || reasons > kMaxReasons)
    return {"no stall reasons for this GPU", CUPTI_ERROR_NOT_SUPPORTED};
  if (CUptiResult result = name_reasons(sampled.context, reasons))
    return {"cuptiPCSamplingGetStallReasons", result};
  if (!sampled.left.allocate(reasons) || !sampled.collected.allocate(reasons))
    return {"buffers", CUPTI_ERROR_OUT_OF_MEMORY};
  sampled.left.clear();
  return {"cuptiPCSamplingSetConfigurationAttribute", configure(sampled, mode)};
}

void write(const PcBuffer& buffer, const SampledContext& sampled) {
  const SampleOrigin origin = {sampled.id, sampled.looks[0], now()};
  const CUpti_PCSamplingData& data = buffer.data;
  for (size_t i = 0; i < data.totalNumPcs && i < data.collectNumPcs; ++i)
    write_samples(data.pPcData[i], buffer.reasons, origin);
  if (data.droppedSamples) dropped(kCuptiDropped, kSample, data.droppedSamples);
  if (data.hardwareBufferFull)
    note("the GPU's buffer of PC samples was full: samples are missing, and how many is not known. "
         "Sample less often, for example by FLAME_PC=continuous:20");
}

CUptiResult get_data(SampledContext& sampled) {
  sampled.collected.clear();
  CUpti_PCSamplingGetDataParams parameters = {};
  parameters.size = CUpti_PCSamplingGetDataParamsSize;
  parameters.ctx = sampled.context;
  parameters.pcSamplingData = &sampled.collected.data;
  return cupti()->cuptiPCSamplingGetData(&parameters);
}

// A full hardware buffer is an error to CUPTI; sampling goes on behind it.
bool fatal(const SampledContext& sampled, CUptiResult result) {
  bool full = sampled.collected.data.hardwareBufferFull;
  return result && !(result == CUPTI_ERROR_OUT_OF_MEMORY && full);
}

bool has_functions() {
  const Cupti& api = *cupti();
  return api.cuptiPCSamplingEnable && api.cuptiPCSamplingDisable && api.cuptiPCSamplingGetData &&
         api.cuptiPCSamplingGetNumStallReasons && api.cuptiPCSamplingGetStallReasons &&
         api.cuptiPCSamplingSetConfigurationAttribute;
}

}  // namespace

SamplingFailure SampledContext::begin(const SamplingMode& mode) {
  looks[0] = looks[1] = now();
  if (CUptiResult result = enable(context)) return {"cuptiPCSamplingEnable", result};
  SamplingFailure failure = prepare(*this, mode);
  if (failure.result) disable(context);
  begun = !failure.result;
  return failure;
}

SamplingFailure SampledContext::collect() {
  const uint64_t begin = now();
  for (int round = 0; round < kMaxRounds; ++round) {
    CUptiResult result = get_data(*this);
    if (fatal(*this, result)) return {"cuptiPCSamplingGetData", result};
    write(collected, *this);
    if (!collected.data.totalNumPcs || !collected.data.remainingNumPcs) break;
  }
  looks[0] = looks[1];
  looks[1] = begin;
  return {};
}

SamplingFailure SampledContext::end() {
  if (!begun) return {};
  begun = false;
  SamplingFailure failure = collect();
  if (!disable(context)) write(left, *this);
  return failure;
}

bool can_sample() {
  uint32_t version = 0;
  return has_functions() && !cupti()->cuptiGetVersion(&version) && version >= kOldest;
}

}  // namespace flame
