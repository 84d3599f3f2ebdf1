// Decides which contexts are sampled, and since when. Nothing of it is forced on the program: where
// the machine does not allow it, one note says why, and recording goes on without.
#include "sampling/sampling.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>
#include <new>

#include "cupti/api/activity_calls.h"
#include "flame.h"
#include "sampling/context.h"
#include "sampling/cubins.h"
#include "system/clock.h"
#include "system/settings.h"

namespace flame {
namespace {

constexpr uint64_t kPause = 500'000'000;  // ns between two collections: CUPTI gathers by itself,
                                          // and its collecting races with modules being unloaded
constexpr int kLockTimeout = 1000;           // ms
constexpr uint64_t kResetPause = 1'000'000'000;  // ns between two resets of a context, at least
constexpr uint32_t kMostResets = 5;  // of a context that gives no samples in between: kAbandoned

constexpr char kNotAllowed[] =
    "PC sampling is not allowed for this user: run as root or with CAP_SYS_ADMIN, or let all users "
    "do it by 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' in "
    "/etc/modprobe.d/nvidia.conf and a reboot. Recorded without PC samples";
constexpr char kVirtual[] =
    "PC sampling is not allowed on this virtual GPU: its host can allow it. Recorded without PC "
    "samples";
constexpr char kAbandoned[] =
    "PC sampling of a context was given up: 5 times in a row it began anew, and CUPTI gave no "
    "samples. Those of its work are missing from then on";
constexpr char kNotBeside[] =
    "PC sampling has no functions for several tools that use CUPTI. Recorded without PC samples";
constexpr char kTooOld[] = "PC sampling needs CUPTI 12.4 or newer. Recorded without PC samples";

std::atomic<uint32_t> wanted{CUPTI_PC_SAMPLING_COLLECTION_MODE_INVALID};  // as mode.collection

std::mutex lock;  // of all below. Held while CUPTI collects, so nobody waits for it without end
SamplingMode mode;
SampledContext* contexts = nullptr;
uint64_t last_flush = 0;
bool given_up = false;
char problem[sizeof SamplingAnswer::why];  // why it was given up

// An application thread that destroys a context may hold locks of the driver that CUPTI needs to
// finish collecting in the flush thread: it gives up after a while.
std::unique_lock<std::mutex> lock_with_timeout() {
  std::unique_lock<std::mutex> held(lock, std::try_to_lock);
  for (int waited = 0; !held && waited < kLockTimeout; ++waited) {
    usleep(1000);
    held.try_lock();
  }
  return held;
}

// What follows is done with the lock held.

void set_mode(const SamplingMode& next) {
  mode = next;
  wanted.store(next.collection, std::memory_order_relaxed);
}

void give_up(const char* why) {
  given_up = true;
  snprintf(problem, sizeof problem, "%s", why);
  note(why);
}

struct Cause {
  int result;
  const char* text;
};
// By number what CUPTI 12.1 has no names for. A user of DCGM has seen the unknown error, too.
constexpr Cause kCauses[] = {
    {CUPTI_ERROR_OUT_OF_MEMORY, ": there is too little memory for samples, most likely on the GPU"},
    {CUPTI_ERROR_HARDWARE_BUSY,
     ": another profiler, or DCGM, uses the GPU's counters. End it, or let DCGM pause by 'dcgmi "
     "profiling --pause'"},
    {CUPTI_ERROR_NOT_SUPPORTED, ": this GPU or its driver cannot do it"},
    {CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, ": virtual GPUs of this kind cannot do it"},
    {41, ": it is not possible in confidential computing mode"},
    {42, ": GPUs made for mining cannot do it"},
    {43, ": it is not possible on a part of a GPU (MIG)"},
    {44, ": it is not possible with SLI"},
    {45, ": it is not possible under WSL"},
    {CUPTI_ERROR_UNKNOWN,
     ": CUPTI does not know why. Perhaps another profiler, or DCGM, uses the GPU's counters"}};

const char* cause_of(CUptiResult result) {
  for (const Cause& cause : kCauses)
    if (cause.result == result) return cause.text;
  return "";
}

void explain(const SamplingFailure& failure) {
  const CUptiResult result = failure.result;
  if (!result) return;
  if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES) return give_up(kNotAllowed);
  if (result == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES) return give_up(kVirtual);
  char text[sizeof problem];
  snprintf(text, sizeof text,
           "PC sampling does not work here (%s: %s)%s. Recorded without PC samples", failure.step,
           result_name(result), cause_of(result));
  give_up(text);
}

bool possible() {
  if (!given_up && is_beside_others()) give_up(kNotBeside);
  if (!given_up && !can_sample()) give_up(kTooOld);
  return !given_up;
}

SampledContext* find(CUcontext context) {
  for (SampledContext* one = contexts; one; one = one->next) {
    if (one->context == context) return one;
  }
  return nullptr;
}

// Null: there is no memory.
SampledContext* add(CUcontext context, uint32_t id) {
  SampledContext* sampled = find(context);
  if (!sampled) {
    sampled = new (std::nothrow) SampledContext{contexts, context, id};
    if (sampled) contexts = sampled;
  } else {  // that of another time: its end was missed
    sampled->id = id;
    sampled->begun = false;
    sampled->clear();
  }
  return sampled;
}

// NVIDIA's sample begins in the callback that tells of the context; others found that CUPTI refuses
// it there. So both are tried: there, and if need be once more in the flush thread.
void begin_or_wait(SampledContext& sampled) {
  SamplingFailure failure = sampled.begin(mode);
  if (failure.result != CUPTI_ERROR_INVALID_OPERATION) explain(failure);
}

void end_all() {
  for (SampledContext* sampled = contexts; sampled; sampled = sampled->next)
    sampled->end();
}

void abandon(SampledContext& sampled) {
  sampled.end();
  sampled.given_up = true;
  note(kAbandoned);
}

// In the flush thread alone: CUPTI waits for threads of its own in there, a launch must not.
void reset(SampledContext& sampled) {
  if (now() < sampled.last_reset + kResetPause) return;
  if (sampled.futile == kMostResets) return abandon(sampled);
  sampled.reset(mode);
}

void begin_or_collect(SampledContext& sampled) {
  if (sampled.given_up) return;
  if (!sampled.begun && !sampled.stuck) return explain(sampled.begin(mode));
  sampled.collect();
  if (sampled.stuck) reset(sampled);
}

void begin_or_collect_all() {
  for (SampledContext* sampled = contexts; sampled && !given_up; sampled = sampled->next)
    begin_or_collect(*sampled);
}

// What is asked for has begun in all contexts, or in none.
bool begin_all(const SamplingMode& next) {
  given_up = false;
  set_mode(next);
  if (possible()) begin_or_collect_all();
  if (!given_up) return true;
  for (SampledContext* sampled = contexts; sampled; sampled = sampled->next) sampled->end();
  set_mode({});
  return false;
}

bool samples_all() {
  bool all = !given_up;
  for (SampledContext* sampled = contexts; sampled; sampled = sampled->next)
    all = all && !sampled->given_up;
  return all;
}

bool switch_to(const SamplingMode& next) {
  const bool same = next == mode && samples_all();
  if (same) return true;
  end_all();
  if (next.collection) return begin_all(next);
  set_mode(next);
  return true;
}

uint32_t count_begun() {
  uint32_t count = 0;
  for (SampledContext* sampled = contexts; sampled; sampled = sampled->next)
    count += sampled->begun;
  return count;
}

SamplingAnswer refusal(const char* why) {
  SamplingAnswer answer = {};
  snprintf(answer.why, sizeof answer.why, "%s", why);
  return answer;
}

SamplingAnswer switch_all(const SamplingMode& next) {
  std::unique_lock<std::mutex> held = lock_with_timeout();
  if (!held) return refusal("PC samples are just being collected: try again");
  if (!switch_to(next)) return refusal(problem);
  return {true, count_begun(), ""};
}

// On the flush thread, because CUPTI may not come back.

SamplingAnswer switched;

void switch_there(uint64_t packed) {
  calling("switching PC sampling");
  SamplingMode next;
  next.collection = static_cast<CUpti_PCSamplingCollectionMode>(packed >> 32);
  next.period = static_cast<uint32_t>(packed);
  switched = switch_all(next);
}

SamplingAnswer switch_apart(const SamplingMode& next) {
  switch (do_apart(switch_there, uint64_t(next.collection) << 32 | next.period)) {
    case Apart::kDone: return switched;
    case Apart::kBusy: return refusal("CUPTI is busy, or does not come back: try again");
    default:
      return refusal("CUPTI has not come back from it: what was asked for may be done later, or never");
  }
}

}  // namespace

void want_sampling() {
  SamplingMode asked;
  if (!read_sampling_mode(settings().pc, &asked))
    note("FLAME_PC is not understood: off, continuous or serialized, with :5 to :31 behind it for a "
         "sample every 2^n cycles. Recorded without PC samples");
  std::lock_guard<std::mutex> held(lock);
  set_mode(asked);
}

bool sampling_wanted() { return wanted.load(std::memory_order_relaxed); }

bool sampling_serialized() {
  return wanted.load(std::memory_order_relaxed) ==
         CUPTI_PC_SAMPLING_COLLECTION_MODE_KERNEL_SERIALIZED;
}

SamplingAnswer switch_sampling(std::string_view text) {
  SamplingMode next;
  if (!read_sampling_mode(text, &next))
    return refusal("no such mode: off, continuous or serialized, with :5 to :31 behind it");
  if (!reads_cupti()) return refusal("no GPU work of this process is recorded");
  SamplingAnswer answer = switch_apart(next);
  if (answer.done && next.collection) save_kept_cubins();
  return answer;
}

void sample_context(CUcontext context, uint32_t context_id) {
  std::unique_lock<std::mutex> held = lock_with_timeout();
  SampledContext* sampled = held ? add(context, context_id) : nullptr;
  if (!sampling_wanted()) return;
  if (!sampled) return note("a context is recorded without PC samples: no memory, or too busy");
  if (possible()) begin_or_wait(*sampled);
}

bool see_context(CUcontext context, uint32_t context_id) {
  std::unique_lock<std::mutex> held(lock, std::try_to_lock);
  return held && (find(context) || add(context, context_id));
}

void forget_context(CUcontext context) {
  std::unique_lock<std::mutex> held = lock_with_timeout();
  if (!held) return note("PC samples of a destroyed context may be missing");
  for (SampledContext** link = &contexts; *link; link = &(*link)->next) {
    if ((*link)->context != context) continue;
    std::unique_ptr<SampledContext> sampled(*link);
    *link = sampled->next;
    return sampled->end();
  }
}

void flush_sampling(bool last) {
  uint64_t time = now();
  std::unique_lock<std::mutex> held = lock_with_timeout();
  if (!held || (!last && time < last_flush + kPause)) return;
  last_flush = time;
  if (last) return end_all();
  if (possible()) begin_or_collect_all();
}

void flush_launch(CUcontext context) {
  std::unique_lock<std::mutex> held(lock, std::try_to_lock);
  if (!held || given_up) return;  // they are being collected
  SampledContext* sampled = find(context);
  if (sampled && sampled->begun) sampled->collect();
}

}  // namespace flame
