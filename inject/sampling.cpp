// PC sampling by CUPTI's PC Sampling API (cupti_pcsampling.h). Nothing of it is forced on the
// program: where the machine does not allow it, one note says why, and recording goes on without.
#include "sampling.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

#include "clock.h"
#include "clock.h"
#include "cupti_api.h"
#include "flame.h"
#include "sampling_buffer.h"

namespace flame {
namespace {

constexpr uint32_t kMinPeriod = 5, kMaxPeriod = 31;  // CUPTI samples every 2^period cycles
constexpr uint32_t kOldest = 22;  // CUPTI 12.4: its PC records are the first with a correlation id
constexpr uint64_t kPause = 500'000'000;  // ns between two collections: CUPTI gathers by itself,
                                          // and its collecting races with modules being unloaded
constexpr int kMaxRounds = 1000;          // of one collection
constexpr int kPatience = 1000;           // ms

struct Wish {
  CUpti_PCSamplingCollectionMode mode = CUPTI_PC_SAMPLING_COLLECTION_MODE_INVALID;
  uint32_t period = 0;  // 0: CUPTI's own choice
};

bool starts_with(const char* text, const char* word, const char** rest) {
  size_t size = strlen(word);
  *rest = text + size;
  return !strncmp(text, word, size);
}

// What stands behind the mode: nothing, or ":period".
bool read_period(const char* text, uint32_t* period) {
  if (!*text) return true;
  char* end = nullptr;
  unsigned long value = *text == ':' ? strtoul(text + 1, &end, 10) : 0;
  *period = static_cast<uint32_t>(value);
  return end && !*end && value >= kMinPeriod && value <= kMaxPeriod;
}

Wish read_wish() {
  Wish wish;
  const char* text = settings().pc;
  const char* rest = text;
  if (!*text || !strcmp(text, "off")) return wish;
  if (starts_with(text, "continuous", &rest))
    wish.mode = CUPTI_PC_SAMPLING_COLLECTION_MODE_CONTINUOUS;
  else if (starts_with(text, "serialized", &rest))
    wish.mode = CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED;
  if (wish.mode && read_period(rest, &wish.period)) return wish;
  note("FLAME_PC is not understood: off, continuous or serialized, with :5 to :31 behind it for a "
       "sample every 2^n cycles. Recorded without PC samples");
  return Wish();
}

const Wish& wish() {
  static const Wish read = read_wish();
  return read;
}

// One context's sampling.
struct Sampled {
  Sampled* next;
  CUcontext context;
  uint32_t id;
  bool begun;         // else it is tried (again) at the next flush
  PcBuffer left;      // CUPTI leaves here what has not been collected when sampling ends
  PcBuffer collected;
};

std::mutex lock;  // of all below. Held while CUPTI collects, so nobody waits for it without end
Sampled* contexts = nullptr;
uint64_t last_flush = 0;
std::atomic<bool> given_up{false};

// An application thread that destroys a context may hold locks of the driver that CUPTI needs to
// finish collecting in the helper thread: it gives up after a while.
std::unique_lock<std::mutex> patient_lock() {
  std::unique_lock<std::mutex> held(lock, std::try_to_lock);
  for (int waited = 0; !held && waited < kPatience; ++waited) {
    usleep(1000);
    held.try_lock();
  }
  return held;
}

void explain(const char* step, CUptiResult result) {
  given_up.store(true, std::memory_order_relaxed);
  if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)
    return note("PC sampling is not allowed for this user: run as root or with CAP_SYS_ADMIN, or "
                "let all users do it by 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' in "
                "/etc/modprobe.d/nvidia.conf and a reboot. Recorded without PC samples");
  char text[256];
  snprintf(text, sizeof text,
           "PC sampling does not work here (%s: %s). Recorded without PC samples", step,
           result_name(result));
  note(text);
}

bool has_functions() {
  const Cupti& api = *cupti();
  return api.cuptiPCSamplingEnable && api.cuptiPCSamplingDisable && api.cuptiPCSamplingGetData &&
         api.cuptiPCSamplingGetNumStallReasons && api.cuptiPCSamplingGetStallReasons &&
         api.cuptiPCSamplingSetConfigurationAttribute;
}

bool new_enough() {
  uint32_t version = 0;
  return has_functions() && !cupti()->cuptiGetVersion(&version) && version >= kOldest;
}

bool possible() {
  if (given_up.load(std::memory_order_relaxed) || !recording()) return false;
  if (new_enough()) return true;
  note("PC sampling needs CUPTI 12.4 or newer. Recorded without PC samples");
  given_up.store(true, std::memory_order_relaxed);
  return false;
}

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

CUptiResult configure(Sampled& sampled) {
  CUpti_PCSamplingConfigurationInfo attributes[3] = {};
  attributes[0].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_COLLECTION_MODE;
  attributes[0].attributeData.collectionModeData.collectionMode = wish().mode;
  attributes[1].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_DATA_BUFFER;
  attributes[1].attributeData.samplingDataBufferData.samplingDataBuffer = &sampled.left.data;
  attributes[2].attributeType = CUPTI_PC_SAMPLING_CONFIGURATION_ATTR_TYPE_SAMPLING_PERIOD;
  attributes[2].attributeData.samplingPeriodData.samplingPeriod = wish().period;
  CUpti_PCSamplingConfigurationInfoParams parameters = {};
  parameters.size = CUpti_PCSamplingConfigurationInfoParamsSize;
  parameters.ctx = sampled.context;
  parameters.numAttributes = wish().period ? 3 : 2;
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

struct Failure {
  const char* step;
  CUptiResult result;
};

// After enabling, in the order of NVIDIA's sample pc_sampling_continuous.
Failure prepare(Sampled& sampled) {
  size_t reasons = 0;
  if (CUptiResult result = count_reasons(sampled.context, &reasons))
    return {"cuptiPCSamplingGetNumStallReasons", result};
  if (!reasons) return {"no stall reasons for this GPU", CUPTI_ERROR_NOT_SUPPORTED};
  if (CUptiResult result = name_reasons(sampled.context, reasons))
    return {"cuptiPCSamplingGetStallReasons", result};
  if (!sampled.left.allocate(reasons) || !sampled.collected.allocate(reasons))
    return {"buffers", CUPTI_ERROR_OUT_OF_MEMORY};
  return {"cuptiPCSamplingSetConfigurationAttribute", configure(sampled)};
}

Failure begin(Sampled& sampled) {
  if (CUptiResult result = enable(sampled.context)) return {"cuptiPCSamplingEnable", result};
  Failure failure = prepare(sampled);
  if (failure.result) disable(sampled.context);
  sampled.begun = !failure.result;
  return failure;
}

void write(const PcBuffer& buffer, uint32_t context) {
  const CUpti_PCSamplingData& data = buffer.data;
  for (size_t i = 0; i < data.totalNumPcs && i < data.collectNumPcs; ++i)
    write_samples(data.pPcData[i], context);
  if (data.droppedSamples) dropped(kCuptiDropped, kSample, data.droppedSamples);
  if (data.hardwareBufferFull)
    note("the GPU's buffer of PC samples was full: samples are missing, and how many is not known. "
         "Sample less often, for example by FLAME_PC=continuous:20");
}

CUptiResult get_data(Sampled& sampled) {
  sampled.collected.clear();
  CUpti_PCSamplingGetDataParams parameters = {};
  parameters.size = CUpti_PCSamplingGetDataParamsSize;
  parameters.ctx = sampled.context;
  parameters.pcSamplingData = &sampled.collected.data;
  return cupti()->cuptiPCSamplingGetData(&parameters);
}

// A full hardware buffer is an error to CUPTI; sampling goes on behind it.
bool fatal(const Sampled& sampled, CUptiResult result) {
  bool full = sampled.collected.data.hardwareBufferFull;
  return result && !(result == CUPTI_ERROR_OUT_OF_MEMORY && full);
}

void collect(Sampled& sampled) {
  for (int round = 0; round < kMaxRounds; ++round) {
    CUptiResult result = get_data(sampled);
    if (fatal(sampled, result)) return explain("cuptiPCSamplingGetData", result);
    write(sampled.collected, sampled.id);
    const CUpti_PCSamplingData& data = sampled.collected.data;
    if (!data.totalNumPcs || !data.remainingNumPcs) return;
  }
}

void end(Sampled& sampled) {
  if (!sampled.begun) return;
  sampled.begun = false;
  collect(sampled);
  if (!disable(sampled.context)) write(sampled.left, sampled.id);
}

// NVIDIA's sample begins in the callback that tells of the context; others found that CUPTI refuses
// it there. So both are tried: there, and if need be once more in the helper thread.
void begin_or_wait(Sampled& sampled) {
  Failure failure = begin(sampled);
  if (failure.result && failure.result != CUPTI_ERROR_INVALID_OPERATION)
    explain(failure.step, failure.result);
}

void flush(Sampled& sampled, bool last) {
  if (sampled.begun) {
    if (last) end(sampled);
    else collect(sampled);
  } else if (!last) {
    Failure failure = begin(sampled);
    if (failure.result) explain(failure.step, failure.result);
  }
}

}  // namespace

bool sampling_wanted() { return wish().mode != CUPTI_PC_SAMPLING_COLLECTION_MODE_INVALID; }

bool sampling_serialized() {
  return wish().mode == CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED;
}

void sample_context(CUcontext context, uint32_t context_id) {
  if (!sampling_wanted() || !possible()) return;
  std::unique_lock<std::mutex> held = patient_lock();
  auto* sampled = held ? new (std::nothrow) Sampled{contexts, context, context_id, false, {}, {}}
                       : nullptr;
  if (!sampled) return note("a context is recorded without PC samples: no memory, or too busy");
  contexts = sampled;
  begin_or_wait(*sampled);
}

void forget_context(CUcontext context) {
  std::unique_lock<std::mutex> held = patient_lock();
  if (!held) return note("PC samples of a destroyed context may be missing");
  for (Sampled** link = &contexts; *link; link = &(*link)->next) {
    if ((*link)->context != context) continue;
    std::unique_ptr<Sampled> sampled(*link);
    *link = sampled->next;
    return end(*sampled);
  }
}

void flush_sampling(bool last) {
  uint64_t time = now();
  std::unique_lock<std::mutex> held = patient_lock();
  if (!held || (!last && time < last_flush + kPause)) return;
  last_flush = time;
  for (Sampled* sampled = contexts; sampled; sampled = sampled->next) {
    if (last || !given_up.load(std::memory_order_relaxed)) flush(*sampled, last);
  }
}

void flush_launch(CUcontext context) {
  if (!sampling_serialized() || given_up.load(std::memory_order_relaxed)) return;
  std::unique_lock<std::mutex> held(lock, std::try_to_lock);
  if (!held) return;  // they are being collected
  for (Sampled* sampled = contexts; sampled; sampled = sampled->next) {
    if (sampled->context == context && sampled->begun) collect(*sampled);
  }
}

}  // namespace flame
