// CUPTI's activity records: kept until the work has ended on the simulated GPU, then written into
// the client's buffers and handed over by a worker thread, as the real one does.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <queue>
#include <thread>

#include "fake/fake.h"

namespace fake {
namespace {

constexpr size_t kWake = 4096;  // pending records at which the worker looks without being asked

struct Later {
  bool operator()(const Operation& a, const Operation& b) const { return a.end > b.end; }
};

struct Buffer {
  uint8_t* data = nullptr;
  size_t size = 0, used = 0, limit = 0, records = 0;
};

struct Queue {
  std::mutex mutex;
  std::condition_variable wake, delivered;
  std::priority_queue<Operation, std::vector<Operation>, Later> pending;
  uint64_t asked = 0, answered = 0;  // flushes
  bool forced = false;
  bool worker = false;
  size_t since_wake = 0;
};
Queue& queue = *new Queue;

std::atomic<CUpti_BuffersCallbackRequestFunc> request{nullptr};
std::atomic<CUpti_BuffersCallbackCompleteFunc> complete{nullptr};
std::atomic<CUpti_TimestampCallbackFunc> timestamp{nullptr};
std::atomic<int64_t> clock_offset{0};  // CUPTI's time minus CLOCK_MONOTONIC
std::atomic<bool> kinds[CUPTI_ACTIVITY_KIND_COUNT];
std::atomic<uint64_t> lost{0}, seen{0}, generation{0};
std::atomic<size_t> pool_limit{250}, pool_used{0};
Buffer current;  // the worker's, like what follows
auto& full = *new std::vector<Buffer>;  // never freed: it may still work when the process ends

uint64_t real_time() {
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return uint64_t(time.tv_sec) * 1'000'000'000 + uint64_t(time.tv_nsec);
}

// The real one converts GPU time to the clock of the callback by interpolation. Here the offset is
// taken once, and no offset at all when the callback's clock is the GPU's own, so that times can be
// compared to the nanosecond.
void take_clock() {
  CUpti_TimestampCallbackFunc callback = timestamp;
  uint64_t before = now(), theirs = callback ? callback() : real_time();
  bool same = before <= theirs && theirs <= now();
  clock_offset = same ? 0 : int64_t(theirs - before);
}

CUpti_ActivityKind kind_of(const Operation& operation) {
  bool kernel = operation.work.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  if (kernel && kinds[CUPTI_ACTIVITY_KIND_KERNEL]) return CUPTI_ACTIVITY_KIND_KERNEL;
  return operation.work.kind;
}

// Another tool of the process: as Kineto does it, without a subscription. [pytorch/kineto 1250]

std::mutex& thief_mutex = *new std::mutex;
std::vector<uint8_t*>& thief_buffers = *new std::vector<uint8_t*>;

bool is_of_thief(uint8_t* buffer) {
  std::lock_guard<std::mutex> lock(thief_mutex);
  return std::count(thief_buffers.begin(), thief_buffers.end(), buffer);
}

void thief_requested(uint8_t** buffer, size_t* size, size_t* max_records) {
  std::lock_guard<std::mutex> lock(thief_mutex);
  *size = 64 * 1024;
  *max_records = 0;
  thief_buffers.push_back(*buffer = static_cast<uint8_t*>(malloc(*size)));
}

void thief_completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t) {
  std::lock_guard<std::mutex> lock(thief_mutex);
  auto own = std::find(thief_buffers.begin(), thief_buffers.end(), buffer);
  if (own == thief_buffers.end()) return;
  free(buffer);
  thief_buffers.erase(own);
}

uint64_t thief_clock() { return now() * 3; }

void steal() {
  request = thief_requested;
  complete = thief_completed;
  if (faults().steal_clock) timestamp = thief_clock;
}

std::atomic<bool> theft_is_over{false};

// Its last buffer stays where it is: it comes back to whoever has registered by then.
void end_theft() {
  theft_is_over = true;
  for (auto& kind : kinds) kind = false;
}

void steal_when_due() {
  static std::atomic<uint32_t> count{0};
  const uint32_t at = ++count, from = faults().steal;
  if (from && at == from) steal();
  if (from && faults().steal_for && at == from + faults().steal_for) end_theft();
}

// The worker's part, without the lock.

void hand_over(const Buffer& buffer) {
  CUpti_BuffersCallbackCompleteFunc callback = complete;
  if (callback) callback(nullptr, 0, buffer.data, buffer.size, buffer.used);
}

// Another tool's buffers are not its own to hand out. Before API 27 CUPTI does not look whether it
// got one. [Kineto: issue 1275]
void renew() {
  CUpti_BuffersCallbackRequestFunc callback = request;
  if (callback) callback(&current.data, &current.size, &current.limit);
  if (callback != thief_requested && is_of_thief(current.data)) abort();
  if (current.data) return;
  current = Buffer();
  if (faults().version < 27) abort();
}

bool keeps_back() {
  std::lock_guard<std::mutex> guard(queue.mutex);
  return faults().hold && !queue.pending.empty();
}

// CUPTI keeps buffers back in which a record is not complete: so it looks to who is asked for more.
void deliver(bool forced) {
  if (theft_is_over && complete == thief_completed) return;
  if (current.data) full.push_back(current);
  current = Buffer();
  if (faults().hoard && !forced) return;
  for (const Buffer& buffer : full) hand_over(buffer);
  full.clear();
}

void answer(bool forced) {
  if (forced || !keeps_back()) return deliver(forced);
  if (!current.data) renew();
}

bool is_full(size_t record) {
  const size_t most = faults().per_buffer;
  return current.used + record > current.size ||
         (current.limit && current.records == current.limit) ||
         (most && current.records == most);
}

void lose(const Operation& operation) {
  ++lost;
  truth_lost("dropped", operation);
}

void write(const Operation& operation) {
  tell_other(operation);
  if (operation.for_other_alone) return;
  if (faults().drop && ++seen % faults().drop == 0) return lose(operation);
  std::string record = record_of(skewed(operation), kind_of(operation), clock_offset);
  if (current.data && is_full(record.size())) deliver(false);
  if (!current.data) renew();
  if (current.used + record.size() > current.size) return lose(operation);
  memcpy(current.data + current.used, record.data(), record.size());
  current.used += record.size();
  ++current.records;
}

// As CUPTI 13.0 does it with replays of graphs: buffers on the GPU are not used again. [parcagpu 23]
bool pool_is_used_up(const Operation& operation) {
  const bool counts = faults().pool && operation.graph_node && operation.work.function;
  return counts && ++pool_used > pool_limit * faults().pool;
}

// What has ended; when forced, also what has not: such records have no times.
std::vector<Operation> take(bool forced) {
  std::vector<Operation> ready;
  uint64_t time = now();
  while (!queue.pending.empty()) {
    const Operation& first = queue.pending.top();
    bool ended = first.end <= time;
    if (!ended && !forced) break;
    ready.push_back(first);
    queue.pending.pop();
    if (ended) continue;
    truth_lost("incomplete", ready.back());
    ready.back().start = ready.back().end = 0;
  }
  return ready;
}

// The program has ended its first thread, and goes on with others or not at all.
bool first_thread_has_ended() {
  char line[512] = "";
  if (FILE* file = fopen("/proc/self/stat", "r")) {
    line[fread(line, 1, sizeof line - 1, file)] = 0;
    fclose(file);
  }
  const char* name_end = strrchr(line, ')');
  return name_end && name_end[1] && name_end[2] == 'Z';
}

bool has_work() { return queue.asked != queue.answered || queue.since_wake >= kWake; }

void work_once(std::unique_lock<std::mutex>& lock) {
  const uint64_t asked = queue.asked;
  const bool flush = asked != queue.answered, forced = flush && queue.forced;
  if (forced) queue.forced = false;
  queue.since_wake = 0;
  std::vector<Operation> ready = take(forced);
  lock.unlock();
  if (faults().shuffle) std::reverse(ready.begin(), ready.end());
  for (const Operation& operation : ready) write(operation);
  if (flush) answer(forced);
  lock.lock();
  if (flush) queue.answered = asked;
  queue.delivered.notify_all();
}

// A program that ends with its last thread would wait for this one. For the driver's own threads it
// does, with flame or without; here there are none. [A choice.]
void work() {
  std::unique_lock<std::mutex> lock(queue.mutex);
  for (;;) {
    if (queue.wake.wait_for(lock, std::chrono::milliseconds(20), has_work))
      work_once(lock);
    else if (first_thread_has_ended())
      break;
  }
  queue.worker = false;
}

void start_worker() {  // with queue.mutex held
  if (queue.worker) return;
  queue.worker = true;
  std::thread(work).detach();
}

}  // namespace

bool graphs_are_whole() {
  return kinds[CUPTI_ACTIVITY_KIND_GRAPH_TRACE] || faults().whole_for_all;
}

bool is_of_memory(CUpti_ActivityKind kind) {
  return kind == CUPTI_ACTIVITY_KIND_MEMORY2 || kind == CUPTI_ACTIVITY_KIND_MEMORY_POOL;
}

uint64_t memory_generation() { return generation; }

void activity(Operation operation) {
  if (!is_of_memory(operation.work.kind)) steal_when_due();
  operation.for_other_alone = !kinds[kind_of(operation)];
  if (operation.for_other_alone && !faults().several) return;
  operation.untimed = pool_is_used_up(operation);
  if (operation.untimed) truth_lost("untimed", operation);
  std::lock_guard<std::mutex> lock(queue.mutex);
  queue.pending.push(operation);
  if (++queue.since_wake < kWake) return;
  start_worker();
  queue.wake.notify_one();
}

}  // namespace fake

using namespace fake;

FAKE_API CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                                    CUpti_BuffersCallbackCompleteFunc completed) {
  if (!requested || !completed) return CUPTI_ERROR_INVALID_PARAMETER;
  if (is_refused(faults().late_v2)) return CUPTI_ERROR_NOT_COMPATIBLE;
  request = requested;
  complete = completed;
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc callback) {
  if (!callback) return CUPTI_ERROR_INVALID_PARAMETER;
  if (is_refused()) return CUPTI_ERROR_NOT_COMPATIBLE;
  if (faults().no_timestamps) return CUPTI_ERROR_NOT_SUPPORTED;
  timestamp = callback;
  take_clock();
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiGetTimestamp(uint64_t* time) {
  if (!time) return CUPTI_ERROR_INVALID_PARAMETER;
  CUpti_TimestampCallbackFunc callback = timestamp;
  *time = callback ? callback() : real_time();
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= CUPTI_ACTIVITY_KIND_COUNT) {
    return CUPTI_ERROR_INVALID_KIND;
  }
  if (is_refused()) return CUPTI_ERROR_NOT_COMPATIBLE;
  if (kind == CUPTI_ACTIVITY_KIND_GRAPH_TRACE && faults().no_graph_trace)
    return CUPTI_ERROR_NOT_SUPPORTED;
  if (is_of_memory(kind) && faults().no_memory) return CUPTI_ERROR_NOT_SUPPORTED;
  if (kind == CUPTI_ACTIVITY_KIND_MEMORY2 && !kinds[kind]) ++generation;
  bool serial = kind == CUPTI_ACTIVITY_KIND_KERNEL;
  auto other = serial ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL : CUPTI_ACTIVITY_KIND_KERNEL;
  if ((serial || kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) && kinds[other]) {
    return CUPTI_ERROR_NOT_COMPATIBLE;
  }
  if (!timestamp) take_clock();
  if (serial) serialize_kernels(kKernelKind, true);
  kinds[kind] = true;
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  if (kind <= CUPTI_ACTIVITY_KIND_INVALID || kind >= CUPTI_ACTIVITY_KIND_COUNT) {
    return CUPTI_ERROR_INVALID_KIND;
  }
  if (faults().disable_deadlock) wait_for_ever();
  kinds[kind] = false;
  if (kind == CUPTI_ACTIVITY_KIND_KERNEL) serialize_kernels(kKernelKind, false);
  return CUPTI_SUCCESS;
}

// Not in the headers that this is compiled with. [CUPTI 13.5]
FAKE_API CUptiResult cuptiActivityGetEnabledKinds(CUpti_SubscriberHandle, CUpti_ActivityKind* found,
                                                  uint32_t* room, uint32_t* count) {
  if (faults().version < 130300) return CUPTI_ERROR_NOT_SUPPORTED;
  if (!count || (found && !room)) return CUPTI_ERROR_INVALID_PARAMETER;
  *count = 0;
  for (int kind = 0; kind < CUPTI_ACTIVITY_KIND_COUNT; ++kind) {
    if (!kinds[kind]) continue;
    if (found && *count < *room) found[*count] = CUpti_ActivityKind(kind);
    ++*count;
  }
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  if (!complete) return CUPTI_ERROR_INVALID_OPERATION;
  if (usable()) return CUPTI_SUCCESS;  // before cuInit nothing can have run
  const bool is_forced = flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED;
  if (faults().flush_hang || (faults().forced_hang && is_forced)) wait_for_ever();
  std::unique_lock<std::mutex> lock(queue.mutex);
  const uint64_t mine = ++queue.asked;
  if (is_forced) queue.forced = true;
  if (!queue.worker && first_thread_has_ended()) return work_once(lock), CUPTI_SUCCESS;
  start_worker();
  queue.wake.notify_one();
  queue.delivered.wait(lock, [&] { return queue.answered >= mine; });
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  if (!dropped) return CUPTI_ERROR_INVALID_PARAMETER;
  *dropped = lost.exchange(0);
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid,
                                                CUpti_Activity** record) {
  if (!buffer || !record) return CUPTI_ERROR_INVALID_PARAMETER;
  uint8_t* next = buffer;
  if (*record) next = reinterpret_cast<uint8_t*>(*record) + record_size(*record);
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  auto* found = reinterpret_cast<CUpti_Activity*>(next);
  size_t size = record_size(found);
  if (!size || next + size > buffer + valid) return CUPTI_ERROR_INVALID_KIND;
  *record = found;
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t* size,
                                               void* value) {
  if (!size || !value) return CUPTI_ERROR_INVALID_PARAMETER;
  if (attribute != CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT) return CUPTI_SUCCESS;
  if (*size != sizeof(size_t)) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  pool_limit = *static_cast<size_t*>(value);
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiActivityFlushPeriod(uint32_t) { return CUPTI_SUCCESS; }
