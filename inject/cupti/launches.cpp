// Records driver calls, from callbacks at their begin and end: stacks at the begin, because a
// kernel may be over before the call that launched it is; the Launch record at the end.
#include "cupti/launches.h"

#include <cuda.h>

#include <atomic>
#include <cstring>
#include <new>

#include "cupti/kernel_names.h"
#include "flame.h"
#include "sampling/sampling.h"
#include "system/clock.h"
#include "system/settings.h"

namespace flame {
namespace {

constexpr uint32_t kCallbacks = 2048;  // ids of driver callbacks are below; CUPTI 13.0 has 806
constexpr uint32_t kMaxNesting = 8;

enum Role : uint8_t {
  kOther,       // not looked at
  kKernelCall,  // launches one kernel: CUPTI tells its symbol
  kWorkCall,    // other work on a GPU
  kGraphCopy,   // makes graph nodes as copies of others; no launch
};

// Filled before callbacks are enabled, then only read.
Role roles[kCallbacks];
const char* names[kCallbacks];
std::atomic<bool> named[kCallbacks];

struct Rule {
  const char* prefix;
  Role role;
};
// The first that fits decides.
constexpr Rule kRules[] = {
    {"cuLaunchHostFunc", kOther},           {"cuLaunch", kKernelCall},
    {"cuGraphLaunch", kWorkCall},           {"cuMemcpy", kWorkCall},
    {"cu64Memcpy", kWorkCall},              {"cuMemset", kWorkCall},
    {"cu64Memset", kWorkCall},              {"cuMemPrefetch", kWorkCall},
    {"cuMemDiscardAndPrefetch", kWorkCall}, {"cuGraphInstantiate", kGraphCopy},
    {"cuGraphClone", kGraphCopy},           {"cuGraphExecUpdate", kGraphCopy},
    {"cuGraphAddChildGraphNode", kGraphCopy},
};

Role role_of(const char* name) {
  for (const Rule& rule : kRules)
    if (!strncmp(name, rule.prefix, strlen(rule.prefix))) return rule.role;
  return kOther;
}

struct Call {
  uint64_t start;
  uint32_t correlation;
  Role role;
  Origin origin;
};

// The calls that a thread is in, the innermost last.
struct Calls {
  Call open[kMaxNesting];
  uint32_t depth = 0;
};

struct CuptiThread : Local {
  Calls calls;
  KernelNames kernel_names;
  CUcontext context = nullptr;  // the last that was seen
};

CuptiThread* cupti_thread_if_any() { return static_cast<CuptiThread*>(local(kCuptiSlot)); }

CuptiThread* cupti_thread() {
  Local*& slot = local(kCuptiSlot);
  if (!slot) slot = new (std::nothrow) CuptiThread;
  return static_cast<CuptiThread*>(slot);
}

Calls* thread_calls() {
  bool first = !cupti_thread_if_any();
  CuptiThread* thread = cupti_thread();
  if (thread && first) name_thread();
  return thread ? &thread->calls : nullptr;
}

Calls* calls_if_any() {
  CuptiThread* thread = cupti_thread_if_any();
  return thread ? &thread->calls : nullptr;
}

// More nested than anything known: ends of calls have been missed.
Call& push(Calls& calls) {
  if (calls.depth == kMaxNesting) calls.depth = 0;
  return calls.open[calls.depth++];
}

void enter(Calls& calls, CUpti_CallbackId id, const CUpti_CallbackData& data) {
  Origin origin = calls.depth ? calls.open[calls.depth - 1].origin
                              : Origin{thread_id(), python_stack(), nvtx_path()};
  Call& call = push(calls);
  call.correlation = data.correlationId;
  call.role = roles[id];
  call.origin = origin;
  remember_origin(data.correlationId, origin);
  call.start = now();  // last: what came before is not the program's time
}

void see(CuptiThread& thread, const CUpti_CallbackData& data) {
  if (data.context == thread.context || !data.context) return;
  if (see_context(data.context, data.contextUid)) thread.context = data.context;
}

void write_launch(const Call& call, uint64_t end, CUpti_CallbackId id,
                  const CUpti_CallbackData& data) {
  if (!named[id].exchange(true, std::memory_order_relaxed)) name(kApi, 0, id, names[id]);
  auto result = static_cast<const CUresult*>(data.functionReturnValue);
  Launch launch{};
  launch.start = call.start;
  launch.end = end;
  launch.correlation = call.correlation;
  launch.tid = call.origin.tid;
  launch.python = call.origin.python;
  launch.nvtx = call.origin.nvtx;
  launch.symbol = call.role == kKernelCall ? kernel_name_text(data.symbolName) : 0;
  launch.api = id;
  launch.context = data.contextUid;
  if (result && *result != CUDA_SUCCESS) launch.flags |= kFailed;
  put(launch);
}

// A call inside another one is part of it: its work is recorded, the call is not.
void leave(Calls& calls, CUpti_CallbackId id, const CUpti_CallbackData& data) {
  uint64_t end = now();
  uint32_t depth = calls.depth;
  while (depth && calls.open[depth - 1].correlation != data.correlationId) depth--;
  if (!depth) return;  // recording began within the call
  calls.depth = depth - 1;
  const Call& call = calls.open[calls.depth];
  bool outermost = depth == 1 || calls.open[depth - 2].role == kGraphCopy;
  if (!outermost || call.role == kGraphCopy) return;
  write_launch(call, end, id, data);
  if (sampling_serialized()) flush_launch(data.context);
}

bool enable(CUpti_SubscriberHandle subscriber, uint32_t id) {
  const char* called = nullptr;
  if (cupti()->cuptiGetCallbackName(CUPTI_CB_DOMAIN_DRIVER_API, id, &called) || !called)
    return false;
  roles[id] = role_of(called);
  names[id] = called;
  return roles[id] != kOther &&
         !cupti()->cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, id);
}

}  // namespace

bool enable_driver_calls(CUpti_SubscriberHandle subscriber) {
  uint32_t enabled = 0;
  for (uint32_t id = 1; id < kCallbacks; id++) enabled += enable(subscriber, id);
  log("%u driver callbacks", enabled);
  if (!enabled) meta("cupti", "it has no callbacks for launches");
  return enabled;
}

void driver_call(CUpti_CallbackId id, const CUpti_CallbackData& data, bool begin) {
  if (id >= kCallbacks || roles[id] == kOther) return;  // CUPTI was not asked for it
  if (data.callbackSite == CUPTI_API_EXIT) {
    if (Calls* calls = calls_if_any()) leave(*calls, id, data);
  } else if (begin && recording()) {
    Calls* calls = thread_calls();
    if (!calls) return dropped(kNoMemory, kLaunch, roles[id] != kGraphCopy);
    see(*cupti_thread_if_any(), data);
    enter(*calls, id, data);
  }
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

bool copying_graph() {
  Calls* calls = calls_if_any();
  for (uint32_t i = 0; calls && i < calls->depth; i++)
    if (calls->open[i].role == kGraphCopy) return true;
  return false;
}

}  // namespace flame
