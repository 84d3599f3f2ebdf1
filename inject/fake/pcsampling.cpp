// CUPTI's PC Sampling API: every run of a kernel gives the samples of its script. They can be
// collected once the kernel has ended. Whether the hardware buffer is made when sampling is enabled
// or when its size is configured is not documented: FAKE_CUPTI chooses.
#include <algorithm>
#include <cstring>
#include <tuple>

#include "fake/fake.h"

namespace fake {
namespace {

constexpr uint64_t kInstruction = 16;  // bytes
constexpr uint32_t kReasonStep = 3;  // indices are neither dense nor in pairs
constexpr const char* kReasons[] = {
    "selected", "long_scoreboard", "short_scoreboard", "math_pipe_throttle", "barrier", "wait",
    "not_selected", "no_instructions", "lg_throttle",
    "selected_not_issued", "long_scoreboard_not_issued", "short_scoreboard_not_issued",
    "math_pipe_throttle_not_issued", "barrier_not_issued", "wait_not_issued",
    "not_selected_not_issued", "no_instructions_not_issued", "lg_throttle_not_issued",
    "mio_throttle", "mio_throttle_not_issued", "branch_resolving", "branch_resolving_not_issued",
    "dispatch_stall", "dispatch_stall_not_issued", "drain", "drain_not_issued", "imc_miss",
    "imc_miss_not_issued", "membar", "membar_not_issued", "sleeping", "sleeping_not_issued",
    "tex_throttle", "tex_throttle_not_issued", "misc", "misc_not_issued"};
constexpr size_t kReasonCount = sizeof kReasons / sizeof *kReasons;

uint32_t reason_index(size_t i) { return uint32_t(i) * kReasonStep + 1; }

std::string reason_name(size_t i) {
  return std::string("smsp__pcsamp_warps_issue_stalled_") + kReasons[i];
}

struct Pc {
  uint64_t crc;
  const char* function;
  uint64_t offset;
  uint32_t correlation;
  bool operator<(const Pc& other) const { return key() < other.key(); }
  std::tuple<uint64_t, std::string_view, uint64_t, uint32_t> key() const {
    return {crc, function, offset, correlation};
  }
};

struct Taken {
  uint64_t end;
  Pc pc;
  uint32_t reason, count;
};

struct Sampler {
  bool serialized = false;
  uint32_t period = 10;
  CUpti_PCSamplingData* left = nullptr;
  std::vector<Taken> running;  // of kernels that may not have ended
  std::map<Pc, std::map<uint32_t, uint32_t>> ready;
  uint64_t dropped = 0;
  uint32_t kernels = 0;

  bool out_of_memory() const { return kernels >= faults().pc_oom || kernels >= faults().pc_full; }
};

constexpr uint32_t kOwnSize = 512;  // MB of the hardware buffer, where nothing is configured

std::mutex& mutex = *new std::mutex;
auto& samplers = *new std::map<CUcontext, Sampler>;
auto& asked_sizes = *new std::map<CUcontext, uint32_t>;  // of hardware buffers, in MB
std::atomic<bool> any{false};

// What a function without a script gives.
std::vector<CUfunc_st::Sample> made_up(const CUfunc_st& function) {
  std::vector<CUfunc_st::Sample> samples;
  uint64_t hash = hash_of(function.name, strlen(function.name));
  uint64_t most = function.size ? std::min<uint64_t>(function.size / kInstruction, 8) : 8;
  for (uint64_t i = 0; i < most; ++i, hash = hash * 6364136223846793005 + 1) {
    uint32_t reason = reason_index((hash >> 33) % kReasonCount);
    samples.push_back({i * kInstruction, reason, uint32_t(hash >> 40) % 50 + 1});
  }
  return samples;
}

void end_running(Sampler& sampler, bool all) {
  uint64_t time = now();
  auto ended = [&](const Taken& taken) { return all || taken.end <= time; };
  for (const Taken& taken : sampler.running) {
    if (ended(taken)) sampler.ready[taken.pc][taken.reason] += taken.count;
  }
  auto& running = sampler.running;
  running.erase(std::remove_if(running.begin(), running.end(), ended), running.end());
}

void give_pc(CUpti_PCSamplingPCData& to, const Pc& pc, const std::map<uint32_t, uint32_t>& counts) {
  to.cubinCrc = pc.crc;
  to.pcOffset = pc.offset;
  to.functionIndex = 1;
  to.functionName = const_cast<char*>(pc.function);  // shared with kernel records: not to be freed
  to.correlationId = pc.correlation;
  to.stallReasonCount = 0;
  for (auto [reason, count] : counts) to.stallReason[to.stallReasonCount++] = {reason, count};
  to.stallReasonCount += faults().pc_more;
}

void give(Sampler& sampler, CUpti_PCSamplingData& data) {
  data.totalNumPcs = 0;
  data.totalSamples = sampler.dropped;
  data.droppedSamples = sampler.dropped;
  data.hardwareBufferFull = 0;
  sampler.dropped = 0;
  while (!sampler.ready.empty() && data.totalNumPcs < data.collectNumPcs) {
    auto first = sampler.ready.begin();
    for (auto [reason, count] : first->second) data.totalSamples += count;
    give_pc(data.pPcData[data.totalNumPcs++], first->first, first->second);
    sampler.ready.erase(first);
  }
  data.remainingNumPcs = sampler.ready.size();
}

CUptiResult configure(Sampler& sampler, CUpti_PCSamplingConfigurationInfo& info) {
  const auto& data = info.attributeData;
  switch (info.attributeType) {
    case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD:
      sampler.period = data.samplingPeriodData.samplingPeriod;
      return sampler.period < 5 || sampler.period > 31 ? CUPTI_ERROR_INVALID_OPERATION
                                                       : CUPTI_SUCCESS;
    case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE:
      sampler.serialized = data.collectionModeData.collectionMode ==
                           CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED;
      if (sampler.serialized) serialize_kernels(kPcSampling, true);
      return CUPTI_SUCCESS;
    case CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER:
      sampler.left =
          static_cast<CUpti_PCSamplingData*>(data.samplingDataBufferData.samplingDataBuffer);
      return sampler.left ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_OPERATION;
    default: return CUPTI_SUCCESS;
  }
}

// Before sampling is enabled nothing but this can be configured, and only where it is made then.
CUptiResult ask_for_size(CUcontext context, const CUpti_PCSamplingConfigurationInfoParams& all) {
  if (faults().pc_lazy) return CUPTI_ERROR_INVALID_OPERATION;
  for (size_t i = 0; i < all.numAttributes; ++i) {
    const auto& info = all.pPCSamplingConfigurationInfo[i];
    if (info.attributeType != CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE)
      return CUPTI_ERROR_INVALID_OPERATION;
    asked_sizes[context] =
        uint32_t(info.attributeData.hardwareBufferSizeData.hardwareBufferSize >> 20);
  }
  return CUPTI_SUCCESS;
}

CUptiResult make_hardware_buffer(uint32_t mb) {
  return mb > faults().pc_memory ? CUPTI_ERROR_OUT_OF_MEMORY : CUPTI_SUCCESS;
}

// With the hardware buffer, where that is made now.
CUptiResult configure_all(Sampler& sampler, const CUpti_PCSamplingConfigurationInfoParams& all) {
  CUptiResult result = CUPTI_SUCCESS;
  uint32_t mb = kOwnSize;
  for (size_t i = 0; i < all.numAttributes; ++i) {
    auto& info = all.pPCSamplingConfigurationInfo[i];
    info.attributeStatus = configure(sampler, info);
    if (info.attributeStatus) result = CUPTI_ERROR_INVALID_PARAMETER;
    if (info.attributeType == CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_HARDWARE_BUFFER_SIZE)
      mb = uint32_t(info.attributeData.hardwareBufferSizeData.hardwareBufferSize >> 20);
  }
  return result || !faults().pc_lazy ? result : make_hardware_buffer(mb);
}

template <class Parameters>
CUptiResult check(const Parameters* parameters, size_t size) {
  if (!parameters || parameters->size != size || !parameters->ctx) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  return faults().pc_later && in_callback() ? CUPTI_ERROR_INVALID_OPERATION : CUPTI_SUCCESS;
}

Sampler* sampler_of(CUcontext context) {
  auto found = samplers.find(context);
  return found == samplers.end() ? nullptr : &found->second;
}

}  // namespace

bool reason_called(std::string_view name, uint32_t* index) {
  for (size_t i = 0; i < kReasonCount; ++i) {
    if (name != kReasons[i]) continue;
    *index = reason_index(i);
    return true;
  }
  return false;
}

void sample(CUcontext context, const Operation& operation) {
  if (!any || !operation.work.function) return;
  std::lock_guard<std::mutex> lock(mutex);
  Sampler* sampler = sampler_of(context);
  if (!sampler) return;
  const CUfunc_st& function = *operation.work.function;
  ++sampler->kernels;
  uint32_t correlation = sampler->serialized ? operation.correlation : 0;
  sampler->dropped += faults().pc_drop;
  for (const auto& sample : function.samples.empty() ? made_up(function) : function.samples) {
    Pc pc = {function.module->crc, function.name, sample.offset, correlation};
    sampler->running.push_back({operation.end, pc, sample.reason, sample.count});
    truth_sample(context->id, operation, sample, sampler->serialized);
  }
}

}  // namespace fake

using namespace fake;

FAKE_API CUptiResult cuptiPCSamplingEnable(CUpti_PCSamplingEnableParams* parameters) {
  if (auto error = check(parameters, CUpti_PCSamplingEnableParamsSize)) return error;
  if (faults().pc_hang) wait_for_ever();
  if (faults().no_pc_permission) return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
  if (faults().pc_refused) return CUptiResult(faults().pc_refused);
  std::lock_guard<std::mutex> lock(mutex);
  auto asked = asked_sizes.find(parameters->ctx);
  const uint32_t mb = asked == asked_sizes.end() ? kOwnSize : asked->second;
  if (auto error = faults().pc_lazy ? CUPTI_SUCCESS : make_hardware_buffer(mb)) return error;
  if (!samplers.try_emplace(parameters->ctx).second) return CUPTI_ERROR_INVALID_OPERATION;
  any = true;
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiPCSamplingDisable(CUpti_PCSamplingDisableParams* parameters) {
  if (auto error = check(parameters, CUpti_PCSamplingDisableParamsSize)) return error;
  std::lock_guard<std::mutex> lock(mutex);
  Sampler* sampler = sampler_of(parameters->ctx);
  if (!sampler) return CUPTI_ERROR_INVALID_OPERATION;
  if (sampler->out_of_memory()) sampler->running.clear(), sampler->ready.clear();
  end_running(*sampler, true);
  if (sampler->left) give(*sampler, *sampler->left);
  samplers.erase(parameters->ctx);
  asked_sizes.erase(parameters->ctx);
  bool serialized = false;
  for (const auto& [context, other] : samplers) serialized |= other.serialized;
  serialize_kernels(kPcSampling, serialized);
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult
cuptiPCSamplingSetConfigurationAttribute(CUpti_PCSamplingConfigurationInfoParams* parameters) {
  if (auto error = check(parameters, CUpti_PCSamplingConfigurationInfoParamsSize)) return error;
  std::lock_guard<std::mutex> lock(mutex);
  Sampler* sampler = sampler_of(parameters->ctx);
  return sampler ? configure_all(*sampler, *parameters) : ask_for_size(parameters->ctx, *parameters);
}

FAKE_API CUptiResult
cuptiPCSamplingGetNumStallReasons(CUpti_PCSamplingGetNumStallReasonsParams* parameters) {
  if (auto error = check(parameters, CUpti_PCSamplingGetNumStallReasonsParamsSize)) return error;
  *parameters->numStallReasons = faults().pc_reasons ? faults().pc_reasons : kReasonCount;
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult
cuptiPCSamplingGetStallReasons(CUpti_PCSamplingGetStallReasonsParams* parameters) {
  if (auto error = check(parameters, CUpti_PCSamplingGetStallReasonsParamsSize)) return error;
  for (size_t i = 0; i < std::min(parameters->numStallReasons, kReasonCount); ++i) {
    parameters->stallReasonIndex[i] = reason_index(i);
    strncpy(parameters->stallReasons[i], reason_name(i).c_str(),
            CUPTI_STALL_REASON_STRING_SIZE - 1);
  }
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiPCSamplingGetData(CUpti_PCSamplingGetDataParams* parameters) {
  if (auto error = check(parameters, CUpti_PCSamplingGetDataParamsSize)) return error;
  auto* data = static_cast<CUpti_PCSamplingData*>(parameters->pcSamplingData);
  if (!data || data->size != sizeof *data) return CUPTI_ERROR_INVALID_PARAMETER;
  std::lock_guard<std::mutex> lock(mutex);
  Sampler* sampler = sampler_of(parameters->ctx);
  if (!sampler) return CUPTI_ERROR_INVALID_OPERATION;
  if (sampler->out_of_memory()) {
    data->totalNumPcs = data->remainingNumPcs = 0;
    data->hardwareBufferFull = sampler->kernels >= faults().pc_full;
    return faults().pc_error ? CUptiResult(faults().pc_error) : CUPTI_ERROR_OUT_OF_MEMORY;
  }
  end_running(*sampler, false);
  give(*sampler, *data);
  return CUPTI_SUCCESS;
}
