// Records driver calls, from callbacks at their begin and end: stacks at the begin, because a
// kernel may be over before the call that launched it is; the Launch record at the end.
#include "cupti/launches.h"

#include <cuda.h>

#include <atomic>
#include <cstring>
#include <new>

#include "cupti/call_roles.h"
#include "cupti/kernel_names.h"
#include "cupti/takeover/silence.h"
#include "flame.h"
#include "sampling/sampling.h"
#include "system/clock.h"
#include "system/settings.h"

namespace flame {
namespace {

constexpr uint32_t kCallbacks = 2048;  // ids of driver callbacks are below; CUPTI 13.0 has 806
constexpr uint32_t kMaxNesting = 8;
constexpr uint32_t kTimed = 128;  // of so many callbacks of a thread two, which are of one call
constexpr Counter kCounted[] = {kCounters, count_kernel_calls, count_work_calls,  // by role
                                count_graph_copies, count_host_calls, count_work_calls,
                                count_host_calls};
static_assert(sizeof kCounted / sizeof *kCounted == kMemoryCall + 1, "a role has no counter");

// Filled before callbacks are enabled, then only read.
Role roles[kCallbacks];
const char* names[kCallbacks];
bool runs_kernels[kCallbacks], waits_for_all[kCallbacks];
std::atomic<bool> named[kCallbacks];

struct OpenCall {
  uint64_t start;
  uint32_t correlation;
  CUpti_CallbackId id;
  Role role;
  uint32_t context;
  bool captured;   // it made a node of a graph, and did no work
  uint64_t given;  // a wait: for so much work
  Origin origin;
};

// The calls that a thread is in, the innermost last.
struct Calls {
  OpenCall open[kMaxNesting];
  uint32_t depth = 0;
};

struct CuptiThread : Local {
  ~CuptiThread() override { give_back(tally); }

  Calls calls;
  Tally* tally = take_tally();
  uint32_t callbacks = 0;  // of driver calls
  KernelNames kernel_names;
  CUcontext context = nullptr;  // the last that was seen
};

CuptiThread* cupti_thread_if_any() { return static_cast<CuptiThread*>(local(kCuptiSlot)); }

CuptiThread* cupti_thread() {
  Local*& slot = local(kCuptiSlot);
  if (!slot) slot = new (std::nothrow) CuptiThread;
  return static_cast<CuptiThread*>(slot);
}

CuptiThread* named_thread() {
  if (CuptiThread* known = cupti_thread_if_any()) return known;
  CuptiThread* made = cupti_thread();
  if (made) name_thread();
  return made;
}

Calls* calls_if_any() {
  CuptiThread* thread = cupti_thread_if_any();
  return thread ? &thread->calls : nullptr;
}

// More nested than anything known: ends of calls have been missed.
OpenCall& push(Calls& calls) {
  if (calls.depth == kMaxNesting) calls.depth = 0;
  return calls.open[calls.depth++];
}

void enter(CuptiThread& thread, CUpti_CallbackId id, const CUpti_CallbackData& data) {
  Calls& calls = thread.calls;
  Origin origin = calls.depth ? calls.open[calls.depth - 1].origin
                              : Origin{thread_id(), python_stack(), nvtx_path()};
  OpenCall& call = push(calls);
  call.correlation = data.correlationId;
  call.id = id;
  call.role = roles[id];
  call.context = data.contextUid;
  call.captured = false;
  call.origin = origin;
  if (runs_kernels[id]) work_begins(thread.tally, call.context);
  if (waits_for_all[id]) call.given = work_given(call.context);
  const bool works = call.role != kHostCall && call.role != kMemoryCall;
  if (works || settings().memory) remember_origin(data.correlationId, origin);
  call.start = now();  // last: what came before is not the program's time
  if (works) remember_start(data.correlationId, call.start);
}

void see(CuptiThread& thread, const CUpti_CallbackData& data) {
  if (data.context == thread.context || !data.context) return;
  if (see_context(data.context, data.contextUid)) thread.context = data.context;
}

uint32_t result_of(const CUpti_CallbackData& data) {
  auto result = static_cast<const CUresult*>(data.functionReturnValue);
  return result ? *result : CUDA_SUCCESS;
}

// CUPTI nowhere says that it sets the name without a context, or of calls that fail: what stands
// there may be anything.
uint32_t kernel_symbol(CuptiThread& thread, const OpenCall& call, const CUpti_CallbackData& data) {
  const bool named = call.role == kKernelCall && data.context && !result_of(data);
  return named ? thread.kernel_names.text_of(data.symbolName) : 0;
}

// The call in which others lie whose records are written all the same; 0: none.
CUpti_CallbackId host_call(const Calls& calls) {
  for (uint32_t i = 0; i < calls.depth; i++)
    if (calls.open[i].role == kHostCall) return calls.open[i].id;
  return 0;
}

// No record of a call may be in the dump before its name, which may be read at any moment: who
// finds it named has its name written. Two threads may name it at once, and one does.
void name_api(CUpti_CallbackId id) {
  if (named[id].load(std::memory_order_acquire)) return;
  name(kApi, 0, id, names[id]);
  named[id].store(true, std::memory_order_release);
}

void write_launch(CuptiThread& thread, const OpenCall& call, uint64_t end,
                  const CUpti_CallbackData& data) {
  Launch launch{};
  launch.start = call.start;
  launch.end = end;
  launch.correlation = call.correlation;
  launch.tid = call.origin.tid;
  launch.python = call.origin.python;
  launch.nvtx = call.origin.nvtx;
  launch.symbol = kernel_symbol(thread, call, data);
  launch.api = call.id;
  launch.context = data.contextUid;
  const CUpti_CallbackId around = host_call(thread.calls);
  if (around) name_api(around);  // it is written itself when it ends, if it does
  launch.flags = around << kWithin;
  if (uint32_t result = result_of(data)) launch.flags |= kFailed | (result & 0x7fff) << kResult;
  put(launch);
}

void write_call(const OpenCall& open, uint64_t end, const CUpti_CallbackData& data) {
  Call call{};
  call.start = open.start;
  call.end = end;
  call.tid = open.origin.tid;
  call.python = open.origin.python;
  call.nvtx = open.origin.nvtx;
  call.api = open.id;
  call.context = data.contextUid;
  call.result = result_of(data);
  put(call);
}

// The call around those in `calls`, as seen by what looks through all of role `through`, and through
// those that are not written: the innermost that is another, null for none.
const OpenCall* call_around(const Calls& calls, Role through) {
  for (uint32_t i = calls.depth; i-- > 0;)
    if (calls.open[i].role != through && calls.open[i].role != kMemoryCall) return &calls.open[i];
  return nullptr;
}

// A call inside another one is part of it: its work is recorded, the call is not. But launches are
// the same whether or not calls of the host are recorded, in which they may lie.
void write(CuptiThread& thread, const OpenCall& call, uint64_t end,
           const CUpti_CallbackData& data) {
  if (call.role == kGraphCopy || call.role == kMemoryCall) return;
  const bool launches = call.role != kHostCall;
  const OpenCall* around = call_around(thread.calls, launches ? kHostCall : kGraphCopy);
  if (around && (!launches || around->role != kGraphCopy)) return;
  name_api(call.id);
  if (!launches) return write_call(call, end, data);
  write_launch(thread, call, end, data);
  const bool kernels = call.role == kKernelCall || call.role == kKernelsCall;
  if (kernels && sampling_serialized()) flush_launch(data.context);
}

void tell_watch(Tally* tally, const OpenCall& call, bool failed) {
  if (runs_kernels[call.id]) work_ends(tally, call.context, failed || call.captured);
  if (waits_for_all[call.id] && !failed) work_is_over(call.context, call.given);
}

void leave(CuptiThread& thread, const CUpti_CallbackData& data) {
  uint64_t end = now();
  Calls& calls = thread.calls;
  uint32_t depth = calls.depth;
  while (depth && calls.open[depth - 1].correlation != data.correlationId) depth--;
  if (!depth) return;  // recording began within the call
  calls.depth = depth - 1;
  tell_watch(thread.tally, calls.open[calls.depth], result_of(data));
  write(thread, calls.open[calls.depth], end, data);
}

// What is not recorded itself is looked at for the stacks of memory alone.
Role wanted_role(const char* called) {
  const Role role = role_of(called);
  if (role == kMemoryCall) return settings().memory ? role : kOther;
  if (role != kHostCall || settings().calls) return role;
  return settings().memory && !strstr(called, "Synchronize") ? kMemoryCall : kOther;
}

bool enable(CUpti_SubscriberHandle subscriber, uint32_t id) {
  const char* called = nullptr;
  if (cupti()->cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, id, &called) || !called)
    return false;
  const Role role = roles[id] = wanted_role(called);
  names[id] = called;
  runs_kernels[id] = role == kKernelCall || !strncmp(called, "cuGraphLaunch", 13);
  waits_for_all[id] = !strcmp(called, "cuCtxSynchronize");
  return roles[id] != kOther &&
         !cupti()->cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
}

void lose(Role role) {
  const bool writes = role != kGraphCopy && role != kMemoryCall;
  dropped(kNoMemory, role == kHostCall ? kCall : kLaunch, writes);
}

}  // namespace

bool enable_driver_calls(CUpti_SubscriberHandle subscriber) {
  uint32_t enabled = 0;
  for (uint32_t id = 1; id < kCallbacks; id++) enabled += enable(subscriber, id);
  log("%u driver callbacks", enabled);
  meta("calls", settings().calls ? "recorded" : "switched off by FLAME_CALLS=0");
  if (!enabled) meta("cupti", "it has no callbacks for launches");
  return enabled;
}

void driver_call(CUpti_CallbackId id, const CUpti_CallbackData& data, bool begin) {
  if (id >= kCallbacks || roles[id] == kOther) return;  // CUPTI was not asked for it
  if (data.callbackSite == CUPTI_API_EXIT) {
    if (CuptiThread* thread = cupti_thread_if_any()) leave(*thread, data);
  } else if (begin && recording()) {
    count(kCounted[roles[id]]);
    CuptiThread* thread = named_thread();
    if (!thread) return lose(roles[id]);
    see(*thread, data);
    enter(*thread, id, data);
  }
}

bool callback_is_timed() {
  CuptiThread* thread = cupti_thread_if_any();
  return thread && thread->callbacks++ % kTimed < 2;
}

uint32_t kernel_name_text(const char* symbol) {
  CuptiThread* thread = cupti_thread();
  return thread ? thread->kernel_names.text_of(symbol) : 0;
}

Origin origin_here() {
  Calls* calls = calls_if_any();
  if (calls && calls->depth) return calls->open[calls->depth - 1].origin;
  return {thread_id(), python_stack(), nvtx_path()};
}

void work_was_captured() {
  Calls* calls = calls_if_any();
  for (uint32_t i = 0; calls && i < calls->depth; i++) calls->open[i].captured = true;
}

bool copying_graph() {
  Calls* calls = calls_if_any();
  for (uint32_t i = 0; calls && i < calls->depth; i++)
    if (calls->open[i].role == kGraphCopy) return true;
  return false;
}

}  // namespace flame
