// CUPTI's activity records: kept until the work has ended on the simulated GPU, then written into
// the client's buffers and handed over by a worker thread, as the real one does.
#include <algorithm>
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
std::atomic<uint64_t> lost{0}, seen{0};
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
  uint64_t before = now();
  int64_t offset = int64_t((callback ? callback() : real_time()) - before);
  clock_offset = offset < 1'000'000 && offset >= 0 ? 0 : offset;
}

CUpti_ActivityKind kind_of(const Operation& operation) {
  bool kernel = operation.work.kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  if (kernel && kinds[CUPTI_ACTIVITY_KIND_KERNEL]) return CUPTI_ACTIVITY_KIND_KERNEL;
  return operation.work.kind;
}

// What Kernel10, Memcpy6, MemcpyPtoP4 and Memset4 have in common, with the same names.
template <class Record>
void common(Record& record, const Operation& operation) {
  record.kind = kind_of(operation);
  if (operation.end) {
    record.start = operation.start + uint64_t(clock_offset);
    record.end = operation.end + uint64_t(clock_offset);
  }
  record.deviceId = operation.device;
  record.contextId = operation.context;
  record.streamId = operation.stream;
  record.correlationId = operation.correlation;
  record.graphNodeId = operation.graph_node;
  record.graphId = operation.graph;
}

template <class Record>
std::string bytes_of(const Record& record, size_t size = sizeof(Record)) {
  return std::string(reinterpret_cast<const char*>(&record), size);
}

// The records of CUPTI 13.4 (Kernel13, Memcpy7, Memset5) are longer, and end with the source of a
// graph's node, at these offsets of its headers.
constexpr size_t kKernelSource = 240, kCopySource = 104, kSetSource = 96;

std::string with_source(std::string record, size_t offset, const Operation& operation) {
  if (faults().version < 130400) return record;
  record.resize(offset + sizeof operation.graph_source);
  memcpy(&record[offset], &operation.graph_source, sizeof operation.graph_source);
  return record;
}

std::string kernel_record(const Operation& operation) {
  static std::atomic<int64_t> grids{0};
  const Work& work = operation.work;
  CUpti_ActivityKernel10 record = {};
  common(record, operation);
  record.completed = CUPTI_TIMESTAMP_UNKNOWN;
  record.registersPerThread = uint16_t(operation.registers);
  record.gridX = int32_t(work.grid[0]);
  record.gridY = int32_t(work.grid[1]);
  record.gridZ = int32_t(work.grid[2]);
  record.blockX = int32_t(work.block[0]);
  record.blockY = int32_t(work.block[1]);
  record.blockZ = int32_t(work.block[2]);
  record.clusterX = work.cluster[0];
  record.clusterY = work.cluster[1];
  record.clusterZ = work.cluster[2];
  record.staticSharedMemory = int32_t(operation.static_shared);
  record.dynamicSharedMemory = int32_t(work.dynamic_shared);
  record.localMemoryPerThread = operation.local;
  record.gridId = ++grids;
  record.name = operation.name;
  // The record of CUPTI 12 is the beginning of that of 13.
  bool old = faults().version < 130000;
  return with_source(bytes_of(record, old ? sizeof(CUpti_ActivityKernel9) : sizeof record),
                     kKernelSource, operation);
}

template <class Record>
std::string copy_record(Record& record, const Operation& operation) {
  const Work& work = operation.work;
  common(record, operation);
  record.copyKind = work.copy_kind;
  record.srcKind = work.source;
  record.dstKind = work.target;
  record.flags = work.asynchronous ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0;
  record.bytes = work.bytes;
  return bytes_of(record);
}

std::string peer_record(const Operation& operation) {
  CUpti_ActivityMemcpyPtoP4 record = {};
  record.srcDeviceId = operation.device;
  record.srcContextId = operation.context;
  record.dstDeviceId = operation.work.peer_device;
  record.dstContextId = operation.work.peer_context;
  return copy_record(record, operation);
}

std::string set_record(const Operation& operation) {
  const Work& work = operation.work;
  CUpti_ActivityMemset4 record = {};
  common(record, operation);
  record.value = work.value;
  record.bytes = work.bytes;
  record.flags = work.asynchronous ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0;
  record.memoryKind = work.target;
  return with_source(bytes_of(record), kSetSource, operation);
}

std::string record_of(const Operation& operation) {
  switch (operation.work.kind) {
    case CUPTI_ACTIVITY_KIND_MEMSET: return set_record(operation);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return peer_record(operation);
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      CUpti_ActivityMemcpy6 record = {};
      return with_source(copy_record(record, operation), kCopySource, operation);
    }
    default: return kernel_record(operation);
  }
}

size_t record_size(const CUpti_Activity* record) {
  Operation operation;
  operation.work.kind = record->kind == CUPTI_ACTIVITY_KIND_KERNEL
                            ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
                            : record->kind;
  static const auto size_of = [](CUpti_ActivityKind kind) {
    Operation one;
    one.work.kind = kind;
    return record_of(one).size();
  };
  static const size_t sizes[] = {
      size_of(CUPTI_ACTIVITY_KIND_MEMSET), size_of(CUPTI_ACTIVITY_KIND_MEMCPY),
      size_of(CUPTI_ACTIVITY_KIND_MEMCPY2), size_of(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)};
  switch (operation.work.kind) {
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizes[0];
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizes[1];
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizes[2];
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizes[3];
    default: return 0;
  }
}

// The worker's part, without the lock.

void hand_over(const Buffer& buffer) {
  CUpti_BuffersCallbackCompleteFunc callback = complete;
  if (callback) callback(nullptr, 0, buffer.data, buffer.size, buffer.used);
}

// Before API 27 CUPTI does not look whether it got one. [Kineto: issue 1275]
void renew() {
  CUpti_BuffersCallbackRequestFunc callback = request;
  if (callback) callback(&current.data, &current.size, &current.limit);
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
  if (faults().drop && ++seen % faults().drop == 0) return lose(operation);
  std::string record = record_of(operation);
  if (current.data && is_full(record.size())) deliver(false);
  if (!current.data) renew();
  if (current.used + record.size() > current.size) return lose(operation);
  memcpy(current.data + current.used, record.data(), record.size());
  current.used += record.size();
  ++current.records;
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

void work() {
  std::unique_lock<std::mutex> lock(queue.mutex);
  for (;;) {
    queue.wake.wait(lock, [] {
      return queue.asked != queue.answered || queue.since_wake >= kWake;
    });
    uint64_t asked = queue.asked;
    bool flush = asked != queue.answered;
    bool forced = flush && queue.forced;
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
}

void start_worker() {  // with queue.mutex held; it lives until the process ends
  if (queue.worker) return;
  queue.worker = true;
  std::thread(work).detach();
}

}  // namespace

void activity(const Operation& operation) {
  if (!kinds[kind_of(operation)]) return;
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
  request = requested;
  complete = completed;
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc callback) {
  if (!callback) return CUPTI_ERROR_INVALID_PARAMETER;
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

FAKE_API CUptiResult cuptiActivityFlushAll(uint32_t flag) {
  if (!complete) return CUPTI_ERROR_INVALID_OPERATION;
  if (usable()) return CUPTI_SUCCESS;  // before cuInit nothing can have run
  const bool is_forced = flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED;
  if (faults().flush_hang || (faults().forced_hang && is_forced)) wait_for_ever();
  std::unique_lock<std::mutex> lock(queue.mutex);
  start_worker();
  uint64_t mine = ++queue.asked;
  if (is_forced) queue.forced = true;
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

FAKE_API CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute, size_t*, void*) {
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiActivityFlushPeriod(uint32_t) { return CUPTI_SUCCESS; }
