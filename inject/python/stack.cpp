// Records Python stacks as nodes of the dump: finds the interpreter, and keeps what each thread has
// recorded.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <new>

#include "flame.h"
#include "python/api.h"
#include "python/code_text.h"
#include "python/frame_cache.h"
#include "python/self_check.h"
#include "system/own_use.h"
#include "system/settings.h"

namespace flame {
namespace python {
namespace {

enum Mode : int {
  kUnstarted,
  kOff,        // FLAME_PYTHON=0
  kAbsent,     // there is no Python (yet): the helper thread keeps looking
  kUnchecked,  // the walk may be right: to be compared as soon as the GIL is held
  kWalk,       // without the GIL
  kApiOnly,    // with the GIL only
  kNone,       // no way to see frames of this Python
};

constexpr int kTries = 3;  // a comparison may fail in the middle of what the interpreter is doing

// `api` and `offsets` are written once, before `mode` says that there is a Python.
std::atomic<int> mode{kUnstarted};
Api api;
Offsets offsets;
std::atomic<int> tries_left{kTries};
std::atomic<bool> asked{false};    // a pending call is on its way
std::atomic_flag looking = ATOMIC_FLAG_INIT;
std::atomic<uint64_t> described_generation{0};  // of the dump that knows about this Python, plus 1

struct PythonThread : Local {
  bool used = false;
  uint32_t dump = 0;  // generation
  int newest = 0;     // of `stacks`
  Stack stacks[2];
  uint32_t nodes[kMaxDepth];  // of the newest one
  FrameCache cache;
  char function_room[kTextRoom], file_room[kTextRoom];
};

// what the dump says about Python

const char* explanation(int now) {
  switch (now) {
    case kOff: return "no frames: switched off by FLAME_PYTHON=0";
    case kAbsent: return "no Python in this process";
    case kUnchecked: return ": no frames: the GIL was never held when they could be checked";
    case kApiOnly: return ": frames only where the GIL is held";
    case kNone: return ": no frames: this Python cannot be read";
    default: return "";
  }
}

// Once per dump.
void describe(int now) {
  const uint64_t dump = uint64_t{generation()} + 1;
  if (described_generation.load(std::memory_order_relaxed) == dump) return;
  if (described_generation.exchange(dump) == dump) return;
  char text[128];
  if (now == kOff || now == kAbsent)
    snprintf(text, sizeof text, "%s", explanation(now));
  else
    snprintf(text, sizeof text, "%d.%d.%d%s%s", api.major, api.minor, api.micro,
             api.free_threaded ? " (free-threaded)" : "", explanation(now));
  meta("python", text);
}

// the self-check

void settle(int now) {
  int unchecked = kUnchecked;
  if (!mode.compare_exchange_strong(unchecked, now)) return;
  log("python %d.%d.%d%s", api.major, api.minor, api.micro, explanation(now));
  if (now == kApiOnly)
    note(
        "Python's frames were not where they should be: "
        "stacks are read only while the GIL is held");
  describe(now);
}

// With the GIL.
void check(ThreadState* own) {
  const Verdict verdict = check_walk(api, own, offsets);
  if (verdict == kEqual) settle(kWalk);
  if (verdict == kDifferent && tries_left.fetch_sub(1) <= 1) settle(kApiOnly);
}

// A pending call: the interpreter runs it in its main thread, with the GIL.
int check_when_convenient(void*) {
  asked.store(false);
  ThreadState* own = api.own_thread();
  if (mode.load(std::memory_order_acquire) == kUnchecked && own && holds_gil(api, own)) check(own);
  return 0;
}

// finding the interpreter

int choose_mode() {
  if (api.major != 3 || api.minor < 9 || !walks_by_api(api)) return kNone;
  const bool table_fits = api.minor >= 13 || !api.traced_references;
  if (api.free_threaded || !table_fits || !api.frame_lasti) return kApiOnly;
  return find_offsets(api.minor, api.runtime, &offsets) ? kUnchecked : kApiOnly;
}

void ask_for_check() {
  if (!api.add_pending_call || !api.initialized() || asked.exchange(true)) return;
  if (api.add_pending_call(check_when_convenient, nullptr) != 0) asked.store(false);
}

void look() {
  if (looking.test_and_set()) return;
  if (mode.load(std::memory_order_acquire) <= kAbsent)
    mode.store(load_api(&api) ? choose_mode() : int{kAbsent}, std::memory_order_release);
  if (mode.load(std::memory_order_acquire) == kUnchecked) ask_for_check();
  looking.clear();
}

void look_again(bool last) {
  const int now = mode.load(std::memory_order_acquire);
  if (last) return describe(now);
  if (now == kAbsent || now == kUnchecked) look();
}

// The thread that was looking in the parent is not here.
void forget_looking() { looking.clear(); }

// stacks of the calling thread

PythonThread* this_thread_memory() {
  Local*& place = local(kPythonSlot);
  if (!place) place = new (std::nothrow) PythonThread;
  return static_cast<PythonThread*>(place);
}

void forget_other_dumps(PythonThread* memory) {
  const uint32_t dump = generation();
  if (memory->dump == dump) return;
  memory->cache.clear();
  memory->stacks[0].depth = memory->stacks[1].depth = 0;
  memory->dump = dump;
}

uint32_t make_frame(PythonThread* memory, const Position& position) {
  const Trusted there;
  const auto* function = there.load<const char*>(position.code, offsets.code_qualname);
  const auto* file = there.load<const char*>(position.code, offsets.code_filename);
  return frame(utf8(there, function, offsets, memory->function_room),
               utf8(there, file, offsets, memory->file_room),
               line_of(there, position.code, position.lasti, offsets));
}

uint32_t frame_at(PythonThread* memory, const Position& position) {
  uint32_t id = memory->cache.find(position, kFrameItself);
  if (id) return id;
  id = make_frame(memory, position);
  if (id) memory->cache.add(position, kFrameItself, id);
  return id;
}

// `cut`: this is the outermost node of a stack that goes on above.
uint32_t node_at(PythonThread* memory, const Position& position, uint32_t parent, bool cut) {
  const uint32_t known_parent = cut ? kCutParent : parent;
  uint32_t id = memory->cache.find(position, known_parent);
  if (id) return id;
  const uint32_t item = frame_at(memory, position);
  id = item ? node(parent, item, kPythonNode, cut ? kCutAbove : 0) : 0;
  if (id) memory->cache.add(position, known_parent, id);
  return id;
}

// Takes over what is as it was, and names the rest, from the outermost frame on.
uint32_t name_nodes(PythonThread* memory, const Stack& stack, const Stack& last) {
  uint32_t* nodes = memory->nodes;
  const uint32_t known = stack.depth - stack.fresh;
  memmove(nodes + stack.fresh, nodes + (last.depth - known), known * sizeof *nodes);
  uint32_t parent = known ? nodes[stack.fresh] : 0;
  for (uint32_t i = stack.fresh; i-- > 0;) {
    parent = node_at(memory, stack.positions[i], parent, stack.cut && i + 1 == stack.depth);
    if (!parent) return 0;
    nodes[i] = parent;
  }
  return parent;
}

uint32_t walked_stack(ThreadState* own) {
  PythonThread* memory = this_thread_memory();
  if (!memory) return 0;
  const OwnUse use(memory->used);
  if (!use.alone) return 0;  // a handler that launches in the middle of this has no stack
  forget_other_dumps(memory);
  Stack& last = memory->stacks[memory->newest];
  Stack& stack = memory->stacks[1 - memory->newest];
  walk(Trusted(), reinterpret_cast<const char*>(own), offsets, last, &stack);
  if (!stack.depth) return 0;
  if (!stack.fresh && stack.depth == last.depth) return memory->nodes[0];
  memory->newest = 1 - memory->newest;
  const uint32_t id = name_nodes(memory, stack, last);
  if (!id) stack.depth = 0;  // nothing of it can be taken over
  return id;
}

uint32_t api_frame(const ApiFrame& source) {
  const Attribute function(api, source.code, function_attribute(api));
  const Attribute file(api, source.code, "co_filename");
  const auto line = source.line < 0 ? 0 : static_cast<uint32_t>(source.line);
  return frame(function.text(), file.text(), line);
}

uint32_t api_stack(ThreadState* own) {
  const Quiet quiet(api);
  ApiFrame frames[kMaxDepth];
  bool cut;
  const uint32_t depth = walk_by_api(api, own, frames, &cut);
  uint32_t parent = 0;
  for (uint32_t i = depth; i-- > 0;) {
    const uint16_t flags = cut && i + 1 == depth ? kCutAbove : 0;
    const uint32_t item = api_frame(frames[i]);
    parent = item ? node(parent, item, kPythonNode, flags) : 0;
    if (!parent) break;
  }
  return parent;
}

uint32_t stack_with_gil(ThreadState* own) {
  if (!holds_gil(api, own)) return 0;
  if (mode.load(std::memory_order_acquire) == kUnchecked) check(own);
  if (mode.load(std::memory_order_acquire) == kWalk) return walked_stack(own);
  return api_stack(own);
}

}  // namespace
}  // namespace python

void start_python() {
  using namespace python;
  int unstarted = kUnstarted;
  if (!mode.compare_exchange_strong(unstarted, settings().python ? kAbsent : kOff)) return;
  at_flush(look_again);
  at_fork_child(forget_looking);
  if (settings().python) look();
}

bool reads_python() {
  const int now = python::mode.load(std::memory_order_acquire);
  return now == python::kWalk || now == python::kApiOnly;
}

uint32_t python_stack() {
  using namespace python;
  if (mode.load(std::memory_order_acquire) == kUnstarted) start_python();
  const int now = mode.load(std::memory_order_acquire);
  if (now <= kAbsent || !recording() || !api.initialized()) return 0;
  if (now != kUnchecked) describe(now);
  ThreadState* own = now == kNone ? nullptr : api.own_thread();
  if (!own) return 0;
  return now == kWalk ? walked_stack(own) : stack_with_gil(own);
}

}  // namespace flame
