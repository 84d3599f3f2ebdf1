// Records ranges that are pushed and popped. They nest by thread and domain; the open ranges of all
// domains are one path, in the order in which they were pushed.
#include <algorithm>
#include <new>
#include <vector>

#include "flame.h"
#include "nvtx/nvtx.h"
#include "nvtx/shared/names.h"
#include "system/clock.h"

namespace flame::nvtx {
namespace {

// Open ranges of a thread that are known one by one. A program that never pops must not fill the
// memory: beyond this they are only counted, and dropped.
constexpr size_t kMaxOpen = 16 * 1024;
constexpr size_t kMaxBytes = 16u << 20;  // of their texts

struct Pushed : Span {
  uint32_t node = 0;  // the path that ends with it
  size_t bytes = 0;   // of texts, when it was pushed
};

struct Level {             // of one domain
  uint32_t open = 0;       // ranges, all of them
  uint32_t uncounted = 0;  // the innermost of them, which are not in `pushed`
};

std::atomic<uint64_t> left_open{0};

struct Thread : Local {
  ~Thread() override;

  std::vector<Pushed> pushed;  // the first `open` are; the others keep their strings' memory
  std::vector<Level> levels;   // by domain
  size_t open = 0;
  size_t bytes = 0;      // of the texts of the open ones
  size_t uncounted = 0;  // while there are any, all that is pushed is
  uint32_t shown = 0;    // of the open ones: in the dump's chunk of open ranges
  uint32_t path = 0;
  uint32_t generation = 0;
};

Level& level_of(Thread& thread, uint32_t domain) {
  if (domain >= thread.levels.size()) thread.levels.resize(domain + 1);
  return thread.levels[domain];
}

uint32_t node_of(const Thread& thread, size_t index) {
  const uint32_t parent = index ? thread.pushed[index - 1].node : 0;
  const uint32_t item = thread.pushed[index].name;
  return index < kMaxDepth && item ? node(parent, item, kRangeNode) : parent;
}

// Makes the range at `index` the innermost of those that a reader sees as open.
void show(Thread& thread, size_t index) {
  uint32_t capacity = 0;
  OpenRange* records = index == thread.shown ? open_ranges(&capacity) : nullptr;
  if (!records || index >= capacity) return;
  const Pushed& range = thread.pushed[index];
  records[index] = OpenRange{range.start, range.tid, range.name, range.node, 0};
  set_open(++thread.shown);
}

void hide_from(Thread& thread, size_t index) {
  if (index >= thread.shown) return;
  thread.shown = static_cast<uint32_t>(index);
  set_open(thread.shown);
}

void set_path(Thread& thread) {
  thread.path = thread.open ? thread.pushed[thread.open - 1].node : 0;
}

// The paths from `index` on, after what lies below them has changed.
void rebuild(Thread& thread, size_t index) {
  hide_from(thread, index);
  for (; index < thread.open; ++index) {
    thread.pushed[index].node = node_of(thread, index);
    show(thread, index);
  }
  set_path(thread);
}

// In a new dump, that of a forked child, nothing is known: the thread that forked brings its open
// ranges with it, with the times at which they began.
void renew(Thread& thread) {
  thread.generation = generation();
  thread.shown = 0;
  for (size_t index = 0; index < thread.open; ++index) {
    thread.pushed[index].tid = thread_id();
    intern(&thread.pushed[index]);
  }
  rebuild(thread, 0);
}

Thread* current_thread() {
  const bool on = ready();
  auto* thread = static_cast<Thread*>(local(kNvtxSlot));
  if (thread && on && thread->generation != generation()) renew(*thread);
  return thread;
}

Thread& this_thread() {
  Local*& place = local(kNvtxSlot);
  if (!place) {
    place = new Thread;
    name_thread();
  }
  return *current_thread();
}

Pushed& next_slot(Thread& thread) {
  if (thread.open == thread.pushed.size()) thread.pushed.emplace_back();
  return thread.pushed[thread.open];
}

void open_range(Thread& thread, uint32_t domain, const Event& event) {
  Pushed& range = next_slot(thread);
  remember(&range, domain, event);
  intern(&range);
  thread.bytes += range.bytes = text_bytes(range);
  range.tid = thread_id();
  range.node = node_of(thread, thread.open);
  range.start = now();  // last: what has been done here is not the program's time
  show(thread, thread.open++);
  thread.path = range.node;
}

size_t innermost(const Thread& thread, uint32_t domain) {
  size_t index = thread.open - 1;
  while (thread.pushed[index].domain != domain) --index;
  return index;
}

void close_range(Thread& thread, size_t index, uint64_t end, const Event* at_end) {
  Pushed& range = thread.pushed[index];
  if (at_end) extend(&range, *at_end);
  write(range, end, kPushPop, range.node, thread_id());
  hide_from(thread, index);
  thread.bytes -= range.bytes;
  const auto first = thread.pushed.begin() + static_cast<std::ptrdiff_t>(index);
  const auto last = thread.pushed.begin() + static_cast<std::ptrdiff_t>(thread.open--);
  if (index == thread.open) return set_path(thread);
  std::rotate(first, first + 1, last);
  rebuild(thread, index);
}

// A range of a thread cannot outlast it: what is still open ends with it.
Thread::~Thread() {
  const uint64_t end = now();
  if (ready()) {
    left_open.fetch_add(open + uncounted, std::memory_order_relaxed);
    if (generation != flame::generation()) renew(*this);
  }
  while (open) close_range(*this, open - 1, end, nullptr);
}

}  // namespace

int push(uint32_t domain, const Event& event) {
  Thread& thread = this_thread();
  Level& level = level_of(thread, domain);
  if (thread.uncounted || thread.open == kMaxOpen || thread.bytes > kMaxBytes) {
    ++thread.uncounted;
    ++level.uncounted;
    dropped(kNoMemory, kRange, 1);
  } else {
    open_range(thread, domain, event);
  }
  return static_cast<int>(level.open++);
}

int pop(uint32_t domain, const Event* at_end) {
  const uint64_t end = now();
  Thread& thread = this_thread();
  Level& level = level_of(thread, domain);
  if (!level.open) return -1;
  --level.open;
  if (level.uncounted) {
    --level.uncounted;
    --thread.uncounted;
  } else {
    close_range(thread, innermost(thread, domain), end, at_end);
  }
  return static_cast<int>(level.open);
}

void mark(uint32_t domain, const Event& event) {
  if (!ready()) return;
  Span span;
  span.start = now();
  remember(&span, domain, event);
  intern(&span);
  span.tid = thread_id();
  write(span, span.start, kMark, 0, span.tid);
}

void note_left_open() {
  const uint64_t count = left_open.exchange(0, std::memory_order_relaxed);
  if (count) note("NVTX ranges that were open when their thread ended: " + std::to_string(count));
}

void forget_left_open() { left_open.store(0, std::memory_order_relaxed); }

}  // namespace flame::nvtx

uint32_t flame::nvtx_path() {
  const nvtx::Thread* thread = nvtx::current_thread();
  return thread ? thread->path : 0;
}
