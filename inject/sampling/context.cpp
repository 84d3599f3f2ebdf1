// Samples PCs in one CUDA context, by CUPTI's PC Sampling API (cupti_pcsampling.h).
#include "sampling/context.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

#include "cupti/api/functions.h"
#include "flame.h"
#include "system/clock.h"
#include "system/settings.h"

namespace flame {
namespace {

constexpr uint32_t kOldest = 22;  // CUPTI 12.4: its PC records are the first with a correlation id
constexpr int kMaxRounds = 1000;  // of one collection
constexpr size_t kMaxReasons = 1024;  // GPUs have some 40; there is room for all at every instruction
constexpr size_t kSmallHardwareBuffer = 128u << 20;  // Proton's; CUPTI takes 512 MB of its own accord

constexpr char kHardwareFull[] =
    "the GPU's buffer of PC samples was full: samples are missing, and how many is not known. "
    "Sample less often, for example by FLAME_PC=continuous:20";
constexpr char kScratchFull[] =
    "CUPTI ran out of memory for PC samples: samples are missing, and how many is not known. "
    "FLAME_PC_SCRATCH=64 gives it 64 MB, four times as much";
constexpr char kSmaller[] =
    "the GPU has too little free memory for CUPTI's own buffer of PC samples (512 MB): it is one of "
    "128 MB, which is full sooner";

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

// Some of what can be configured; the rest is left to CUPTI.
struct Configuration {
  CUpti_PCSamplingConfigurationInfo attributes[5] = {};
  size_t count = 0;

  auto& add(CUpti_PCSamplingConfigurationAttributeType type) {
    attributes[count].attributeType = type;
    return attributes[count++].attributeData;
  }

  // Left to CUPTI unless asked for: on Blackwell parcagpu found that a size of any kind leaves no
  // memory for samples at all.
  void add_hardware_buffer(size_t bytes) {
    if (!bytes) return;
    add(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE)
        .hardwareBufferSizeData.hardwareBufferSize = bytes;
  }

  // CUPTI's own scratch buffer, of 1 MB, has room for some 5,500 instructions; with PyTorch parcagpu
  // saw it overflow within minutes, and gives it 16 MB as Proton does.
  void add_scratch_buffer(size_t bytes) {
    if (!bytes) return;
    add(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SCRATCH_BUFFER_SIZE)
        .scratchBufferSizeData.scratchBufferSize = bytes;
  }

  CUptiResult set(CUcontext context) {
    CUpti_PCSamplingConfigurationInfoParams parameters = {};
    parameters.size = CUpti_PCSamplingConfigurationInfoParamsSize;
    parameters.ctx = context;
    parameters.numAttributes = count;
    parameters.pPCSamplingConfigurationInfo = attributes;
    return cupti()->cuptiPCSamplingSetConfigurationAttribute(&parameters);
  }
};

CUptiResult configure(SampledContext& sampled, const SamplingMode& mode, size_t hardware_bytes) {
  Configuration all;
  all.add(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE)
      .collectionModeData.collectionMode = mode.collection;
  all.add(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER)
      .samplingDataBufferData.samplingDataBuffer = &sampled.left.data;
  if (mode.period)
    all.add(CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD)
        .samplingPeriodData.samplingPeriod = mode.period;
  all.add_scratch_buffer(settings().pc_scratch_bytes);
  all.add_hardware_buffer(hardware_bytes);
  return all.set(sampled.context);
}

CUptiResult count_reasons(CUcontext context, size_t* count) {
  CUpti_PCSamplingGetNumStallReasonsParams parameters = {};
  parameters.size = CUpti_PCSamplingGetNumStallReasonsParamsSize;
  parameters.ctx = context;
  parameters.numStallReasons = count;
  return cupti()->cuptiPCSamplingGetNumStallReasons(&parameters);
}

CUptiResult name_reasons(SampledContext& sampled, size_t count) {
  if (sampled.named == count) return CUPTI_SUCCESS;
  using Text = char[CUPTI_STALL_REASON_STRING_SIZE];
  std::unique_ptr<uint32_t[]> ids(new (std::nothrow) uint32_t[count]());
  std::unique_ptr<Text[]> texts(new (std::nothrow) Text[count]());
  std::unique_ptr<char*[]> pointers(new (std::nothrow) char*[count]);
  if (!ids || !texts || !pointers) return CUPTI_ERROR_OUT_OF_MEMORY;
  for (size_t i = 0; i < count; ++i) pointers[i] = texts[i];
  CUpti_PCSamplingGetStallReasonsParams parameters = {};
  parameters.size = CUpti_PCSamplingGetStallReasonsParamsSize;
  parameters.ctx = sampled.context;
  parameters.numStallReasons = count;
  parameters.stallReasonIndex = ids.get();
  parameters.stallReasons = pointers.get();
  CUptiResult result = cupti()->cuptiPCSamplingGetStallReasons(&parameters);
  if (result) return result;
  for (size_t i = 0; i < count; ++i)
    name(kStallReason, 0, ids[i], std::string_view(texts[i], strnlen(texts[i], sizeof(Text))));
  sampled.named = count;
  return CUPTI_SUCCESS;
}

// After enabling, in the order of NVIDIA's sample pc_sampling_continuous.
SamplingFailure prepare(SampledContext& sampled, const SamplingMode& mode, size_t hardware_bytes) {
  size_t reasons = 0;
  if (CUptiResult result = count_reasons(sampled.context, &reasons))
    return {"cuptiPCSamplingGetNumStallReasons", result};
  if (!reasons || reasons > kMaxReasons)
    return {"no stall reasons for this GPU", CUPTI_ERROR_NOT_SUPPORTED};
  if (CUptiResult result = name_reasons(sampled, reasons))
    return {"cuptiPCSamplingGetStallReasons", result};
  if (!sampled.left.allocate(reasons) || !sampled.collected.allocate(reasons))
    return {"buffers", CUPTI_ERROR_OUT_OF_MEMORY};
  sampled.left.clear();
  return {"cuptiPCSamplingSetConfigurationAttribute", configure(sampled, mode, hardware_bytes)};
}

// The context is not synchronised before, though parcagpu and Proton do that. They do it for
// cuptiPCSamplingStart, which is not used here, and neither does it for what is: parcagpu resets a
// context in the middle of launches, by enabling it as it is. To wait for the GPU could take for
// ever (a kernel that waits for another rank), and would spoil a graph that the program captures.
SamplingFailure begin_with(SampledContext& sampled, const SamplingMode& mode,
                           size_t hardware_bytes) {
  if (hardware_bytes) {  // as early as CUPTI may take the memory; it may refuse this as too early
    Configuration early;
    early.add_hardware_buffer(hardware_bytes);
    early.set(sampled.context);
  }
  if (CUptiResult result = enable(sampled.context)) return {"cuptiPCSamplingEnable", result};
  SamplingFailure failure = prepare(sampled, mode, hardware_bytes);
  if (failure.result) disable(sampled.context);
  return failure;
}

// How many instructions had samples.
size_t write(const PcBuffer& buffer, SampledContext& sampled) {
  const SampleOrigin origin = {sampled.id, sampled.looks[0], now()};
  const CUpti_PCSamplingData& data = buffer.data;
  const size_t count = std::min(data.totalNumPcs, data.collectNumPcs);
  for (size_t i = 0; i < count; ++i) write_samples(data.pPcData[i], buffer.reasons, origin);
  if (data.droppedSamples) dropped(kCuptiDropped, kSample, data.droppedSamples);
  if (count) sampled.futile = 0;
  return count;
}

void note_loss(CUptiResult result, bool hardware_full) {
  if (hardware_full) return note(kHardwareFull);
  if (result == CUPTI_ERROR_OUT_OF_MEMORY) return note(kScratchFull);
  char text[256];
  snprintf(text, sizeof text,
           "CUPTI failed to give PC samples (cuptiPCSamplingGetData: %s): samples are missing, and "
           "how many is not known", result_name(result));
  note(text);
}

void get_stuck(SampledContext& sampled, CUptiResult result, bool hardware_full) {
  sampled.stuck = true;
  count(count_sampling_errors);
  dropped(kSamplesLost, kSample, 1);
  note_loss(result, hardware_full);
}

void disable_and_write(SampledContext& sampled) {
  sampled.begun = false;
  if (!disable(sampled.context)) write(sampled.left, sampled);
}

CUptiResult get_data(SampledContext& sampled) {
  sampled.collected.clear();
  CUpti_PCSamplingGetDataParams parameters = {};
  parameters.size = CUpti_PCSamplingGetDataParamsSize;
  parameters.ctx = sampled.context;
  parameters.pcSamplingData = &sampled.collected.data;
  return cupti()->cuptiPCSamplingGetData(&parameters);
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
  const size_t wanted = settings().pc_hardware_bytes;
  SamplingFailure failure = begin_with(*this, mode, wanted);
  if (failure.result == CUPTI_ERROR_OUT_OF_MEMORY && !wanted) {
    failure = begin_with(*this, mode, kSmallHardwareBuffer);
    if (!failure.result) note(kSmaller);
  }
  begun = !failure.result;
  return failure;
}

// Out of memory CUPTI gives no samples any more, be it the GPU's buffer that is full or its own:
// thousands of calls later there were none yet, in parcagpu. Other errors are taken for the same.
void SampledContext::collect() {
  if (stuck) return;
  const uint64_t begin = now();
  for (int round = 0; round < kMaxRounds && !stuck; ++round) {
    const CUptiResult result = get_data(*this);
    const bool full = collected.data.hardwareBufferFull;
    if (result || full) get_stuck(*this, result, full);
    if (!write(collected, *this) || !collected.data.remainingNumPcs) break;
  }
  looks[0] = looks[1];
  looks[1] = begin;
}

void SampledContext::reset(const SamplingMode& mode) {
  last_reset = now();
  count(count_sampling_resets);
  ++futile;
  if (begun) disable_and_write(*this);
  stuck = begin(mode).result;
}

void SampledContext::end() {
  if (begun) {
    collect();
    disable_and_write(*this);
  }
  clear();
}

void SampledContext::clear() {
  stuck = given_up = false;
  futile = 0;
}

bool can_sample() {
  uint32_t version = 0;
  return has_functions() && !cupti()->cuptiGetVersion(&version) && version >= kOldest;
}

}  // namespace flame
