// Writes Kernel, Memop and GraphRun records from CUPTI's activity buffers; memory.cpp those of memory.
#include "cupti/activity.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>

#include "cupti/buffers.h"
#include "cupti/launches.h"
#include "cupti/layouts.h"
#include "cupti/state.h"
#include "cupti/takeover/takeover.h"
#include "flame.h"
#include "system/clock.h"
#include "system/settings.h"

namespace flame {
namespace {

// From 13.4 on records of a graph's work end with the node that its own was made of or last updated
// from: Kernel13, Memcpy7 and Memset5 of headers that are newer than those this is compiled with.
constexpr uint32_t kTellsSources = 130400;
constexpr size_t kKernelSource = 240, kCopySource = 104, kSetSource = 96, kNoSource = 0;
std::atomic<bool> tells_sources{false};

// What CUPTI's clock must be moved by; 0 when it reads ours.
std::atomic<int64_t> shift{0};
std::atomic<bool> own_clock{false};

std::atomic<uint64_t> left_out_from{0};  // 0: recording goes on

uint64_t CUPTIAPI timestamp() { return now(); }

void look_at_clock() {
  uint64_t theirs = 0, before = now();
  if (read_cupti_clock(&theirs)) return;
  uint64_t ours = before + (now() - before) / 2;
  shift.store(static_cast<int64_t>(ours - theirs), std::memory_order_relaxed);
}

// Both ends of an activity by one look, so that it lasts as long as it did.
template <class From, class To>
void set_times(const From& from, To* to) {
  to->start = our_time(from.start);
  to->end = to->start + (from.end - from.start);
}

template <class To, class From>
To clamped(From value) {
  return static_cast<To>(std::clamp<int64_t>(value, 0, static_cast<To>(~To{0})));
}

// The node whose capture tells where the work comes from: its source, where CUPTI tells it.
template <class From>
uint64_t graph_node(const From& from, size_t source_at) {
  uint64_t source = 0;
  if (source_at && from.graphNodeId && tells_sources.load(std::memory_order_relaxed))
    memcpy(&source, reinterpret_cast<const char*>(&from) + source_at, sizeof source);
  return source ? source : from.graphNodeId;
}

// Work that ended now may end a little later by CUPTI's clock, but not by so much.
constexpr uint64_t kMinute = 60'000'000'000;
std::atomic<uint64_t> begin_time{0}, last_time{0};  // the latter of the buffer that is read

// Kernels of graphs.
std::atomic<uint64_t> timed_in_graphs{0}, untimed_in_graphs{0};

void count_in_graphs(const KernelRecord& from) {
  if (!from.graphNodeId) return;
  auto& count = from.start && from.end ? timed_in_graphs : untimed_in_graphs;
  count.fetch_add(1, std::memory_order_relaxed);
}

// False, and counted, when CUPTI could not tell when the work ran, or tells what cannot be.
template <class From, class To>
bool has_times(const From& from, const To& to) {
  if (from.start && from.end && can_be(to.start, to.end)) return true;
  const bool timed = from.start && from.end;
  if (!timed) count(count_untimed_records);
  dropped(timed ? kWildTimes : kUntimed, To::kType, 1);
  return false;
}

// What all records of GPU work have; false when CUPTI could not tell when it ran.
template <class From, class To>
bool fill(const From& from, To* to) {
  const Origin origin = origin_of(from.correlationId);
  if (from.start && from.end) set_times(from, to);
  if (is_left_out(to->start, to->end, origin)) return false;
  if (!origin.tid) count(count_records_without_call);
  if (!has_times(from, *to)) return false;
  if (started_before_call(from.correlationId, to->start)) count(count_starts_before_call);
  set_origin(from.correlationId, origin, to);
  to->device = from.deviceId;
  to->context = from.contextId;
  to->stream = from.streamId;
  to->graph = from.graphId;
  see_device(from.deviceId);
  return true;
}

template <class From, class To>
bool fill(const From& from, size_t source_at, To* to) {
  to->graph_node = graph_node(from, source_at);
  return fill(from, to);
}

void write_kernel(const KernelRecord& from) {
  Kernel to{};
  count_in_graphs(from);
  if (!fill(from, kKernelSource, &to)) return;
  to.symbol = kernel_name_text(from.name);
  to.grid_x = clamped<uint32_t>(from.gridX);
  to.grid_y = clamped<uint16_t>(from.gridY);
  to.grid_z = clamped<uint16_t>(from.gridZ);
  to.block_x = clamped<uint16_t>(from.blockX);
  to.block_y = clamped<uint16_t>(from.blockY);
  to.block_z = clamped<uint16_t>(from.blockZ);
  to.registers = from.registersPerThread;
  to.static_shared = clamped<uint32_t>(from.staticSharedMemory);
  to.dynamic_shared = clamped<uint32_t>(from.dynamicSharedMemory);
  to.local = from.localMemoryPerThread;
  to.cluster_x = clamped<uint8_t>(from.clusterX);
  to.cluster_y = clamped<uint8_t>(from.clusterY);
  to.cluster_z = clamped<uint8_t>(from.clusterZ);
  put(to);
}

enum MemopKind : uint8_t { kCopy = 0, kSet = 1 };

template <class From>
void write_copy(const From& from, size_t source_at) {
  Memop to{};
  if (!fill(from, source_at, &to)) return;
  to.bytes = from.bytes;
  to.kind = kCopy;
  to.copy_kind = from.copyKind;
  to.source = from.srcKind;
  to.target = from.dstKind;
  put(to);
}

void write_set(const SetRecord& from) {
  Memop to{};
  if (!fill(from, kSetSource, &to)) return;
  to.bytes = from.bytes;
  to.kind = kSet;
  to.target = clamped<uint8_t>(from.memoryKind);
  put(to);
}

void write_graph(const GraphRecord& from) {
  GraphRun to{};
  if (fill(from, &to)) put(to);
}

void write(const CUpti_Activity& record) {
  switch (record.kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      count(count_kernel_records);
      return write_kernel(reinterpret_cast<const KernelRecord&>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      count(count_copy_records);
      return write_copy(reinterpret_cast<const CopyRecord&>(record), kCopySource);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      count(count_copy_records);
      return write_copy(reinterpret_cast<const PeerCopyRecord&>(record), kNoSource);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      count(count_set_records);
      return write_set(reinterpret_cast<const SetRecord&>(record));
    case CUPTI_ACTIVITY_KIND_MEMORY2:
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL:
      count(count_memory_records);
      return write_memory(record);
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
      return write_graph(reinterpret_cast<const GraphRecord&>(record));
    default:
      return count(count_other_records);
  }
}

constexpr uint32_t kNullIsRight = 27;  // the API of CUDA 12.9
std::atomic<bool> null_is_right{false};

// Called by CUPTI's own thread or in a flush. Records behind one that is broken cannot be found:
// how many there were is not known.
void CUPTIAPI completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  buffer_completed();
  last_time.store(now(), std::memory_order_relaxed);
  if (keeps_nothing(buffer)) return dropped(kNoMemory, Type{}, valid != 0);
  CUpti_Activity* record = nullptr;
  CUptiResult result = valid ? CUPTI_SUCCESS : CUPTI_ERROR_MAX_LIMIT_REACHED;
  while (result == CUPTI_SUCCESS) {
    result = next_activity(buffer, valid, &record);
    if (result == CUPTI_SUCCESS) write(*record);
  }
  if (result != CUPTI_ERROR_MAX_LIMIT_REACHED) dropped(kCuptiDropped, Type{}, 1);
  give_back_buffer(buffer, valid);
  count(count_completed_buffers);
  made_progress();
}

void CUPTIAPI requested(uint8_t** buffer, size_t* size, size_t* max_records) {
  buffer_requested();
  const ActivityBuffer taken = take_buffer(null_is_right.load(std::memory_order_relaxed));
  if (!taken.data) count(count_null_buffers);
  *buffer = taken.data;
  *size = taken.size;
  *max_records = taken.max_records;
}

void use_our_clock() {
  const bool registered = !register_clock(timestamp);
  own_clock.store(!registered, std::memory_order_relaxed);
  if (registered) return;
  look_at_clock();
  note("CUPTI has a clock of its own here: times of GPU work are converted, and less exact");
}

// Whichever way PCs are sampled: parcagpu does so too, and sampling runs kernels one by one itself
// where it has to. KIND_KERNEL would do it for as long as the recording lasts.
CUpti_ActivityKind kernel_kind() {
  return strcmp(settings().kernel_kind, "kernel") ? CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
                                                  : CUPTI_ACTIVITY_KIND_KERNEL;
}

void describe_kernel_kind() {
  const char* asked = settings().kernel_kind;
  if (kernel_kind() == CUPTI_ACTIVITY_KIND_KERNEL)
    note("kernels were run one by one, as FLAME_KERNEL_KIND=kernel says");
  else if (*asked && strcmp(asked, "concurrent"))
    note("FLAME_KERNEL_KIND is not understood: concurrent or kernel. Recorded as concurrent");
}

constexpr CUpti_ActivityKind kCopyKinds[] = {
    CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};

CUptiResult register_callbacks() { return register_activity_buffers(requested, completed); }

// Either graphs or their nodes: with this kind on CUPTI leaves records of nodes out. [tracy 1330]
void enable_graphs() {
  const bool chosen = graphs_are_whole_for_all();
  if (!settings().whole_graphs && !chosen) return;
  if (chosen) note("CUDA graphs were recorded as a whole: another tool has CUPTI do so for all");
  CUptiResult result = enable_activity(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  if (result) note("CUPTI does not report CUDA graphs as a whole here: their nodes are recorded");
}

void limit_pool() {
  size_t size = sizeof(size_t), limit = settings().pool;
  auto set = cupti()->cuptiActivitySetAttribute;
  if (limit && set)
    refused("cuptiActivitySetAttribute",
            set(CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, &size, &limit));
}

// A few may be without times for other reasons, such as a fault that ended them.
void look_for_untimed() {
  constexpr uint32_t kFew = 16;
  const uint64_t untimed = untimed_in_graphs.load(), timed = timed_in_graphs.load();
  if (untimed <= kFew || untimed <= timed / 1000) return;
  note("CUPTI has no times for kernels of CUDA graphs (a limit of CUPTI 13.0 in long replays: its "
       "buffers on the GPU are used up): they are counted among the records that could not be "
       "written; flame record --graphs whole records such graphs as a whole");
}

// Launches can be recorded without the work that they start.
bool enable_all_kinds() {
  for (CUpti_ActivityKind kind : kCopyKinds)
    if (enable_activity(kind)) note("CUPTI does not report all copies and sets here");
  describe_kernel_kind();
  enable_graphs();
  if (settings().memory) enable_memory();
  CUptiResult result = enable_activity(kernel_kind());
  if (!result) return true;
  char text[160];
  snprintf(text, sizeof text, "CUPTI does not report kernels here: %s (%d)", result_name(result),
           result);
  note(text);
  return false;
}

// What CUPTI has dropped it has reported as well.
void count_dropped() {
  size_t lost = 0;
  if (dropped_activities(&lost) || !lost) return;
  dropped(kCuptiDropped, Type{}, lost);
  buffer_completed();
}

// The clock stays as it is: to register it once more makes CUPTI's times wrong. [pytorch 192021]
bool record_again() {
  if (refused("cuptiActivityRegisterCallbacks", register_callbacks())) return false;
  if (!enable_all_kinds()) return false;
  buffer_completed();
  return true;
}

}  // namespace

uint64_t our_time(uint64_t theirs) {
  return theirs + static_cast<uint64_t>(shift.load(std::memory_order_relaxed));
}

bool can_be(uint64_t start, uint64_t end) {
  return start <= end && start + kMinute >= begin_time.load(std::memory_order_relaxed) &&
         end <= last_time.load(std::memory_order_relaxed) + kMinute;
}

// No call is recorded then, but CUPTI tells of its work until it is told to stop. Without a time it
// has not ended yet.
bool is_left_out(uint64_t start, uint64_t end, const Origin& origin) {
  const uint64_t from = left_out_from.load(std::memory_order_relaxed);
  return from && !origin.tid && (start >= from || !end);
}

CUptiResult register_buffers(uint32_t version) {
  limit_pool();
  begin_time.store(now(), std::memory_order_relaxed);
  null_is_right.store(version >= kNullIsRight, std::memory_order_relaxed);
  tells_sources.store(version >= kTellsSources, std::memory_order_relaxed);
  use_our_clock();
  return register_callbacks();
}

void enable_kinds() {
  if (enable_all_kinds() && !is_beside_others()) watch_records(kernel_kind(), record_again);
}

// What another tool has taken over is left to it.
void disable_kinds() {
  if (records_are_taken()) return;
  calling("cuptiActivityDisable");
  disable_activity(kernel_kind());
  for (CUpti_ActivityKind kind : kCopyKinds) disable_activity(kind);
  if (settings().whole_graphs) disable_activity(CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  if (settings().memory) disable_memory();
}

void leave_out_work_from(uint64_t time) { left_out_from.store(time, std::memory_order_relaxed); }

void flush_activity(bool last) {
  calling(last ? "a forced cuptiActivityFlushAll" : "cuptiActivityFlushAll");
  if (own_clock.load(std::memory_order_relaxed)) look_at_clock();
  const Launches before = launches_so_far();
  // What is forced is so for all subscribers: the others would lose the work that still runs.
  const bool forced = last && !records_are_taken() && !is_beside_others();
  const bool done = !cupti()->cuptiActivityFlushAll(forced ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0);
  count_dropped();
  const bool ends = left_out_from.load(std::memory_order_relaxed);
  if (done && (last || !ends)) look_for_records(before, last);
  if (!last) look_for_untimed();
  if (last) describe_buffers();
}

}  // namespace flame
