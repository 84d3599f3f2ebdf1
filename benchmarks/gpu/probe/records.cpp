// Activity records: which call each belongs to, and what is odd about its times.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "probe.h"

namespace probe {
namespace {

constexpr size_t kBytes = 1 << 20;
constexpr int kMostSteps = 8;  // of a clone of a clone

struct Record {
  bool kernel = true;
  uint32_t correlation = 0;
  uint64_t start = 0, end = 0, node = 0;
  const char* name = nullptr;
};

// Layouts begin alike in all versions of CUPTI: what is read here has not moved since 12.0.
template <class Activity>
Record read(const CUpti_Activity* activity, bool kernel, const char* name) {
  auto& from = *reinterpret_cast<const Activity*>(activity);
  return {kernel, from.correlationId, from.start, from.end, from.graphNodeId, name};
}

bool understood(const CUpti_Activity* activity, Record* record) {
  switch (activity->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      *record = read<CUpti_ActivityKernel9>(
          activity, true, reinterpret_cast<const CUpti_ActivityKernel9*>(activity)->name);
      return true;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      *record = read<CUpti_ActivityMemcpy5>(activity, false, "[copy]");
      return true;
    case CUPTI_ACTIVITY_KIND_MEMSET:
      *record = read<CUpti_ActivityMemset4>(activity, false, "[set]");
      return true;
    default:
      return false;
  }
}

void count_call(const Record& record, const Call* call) {
  bool none = !call;
  if (record.kernel) {
    state().kernels++;
    state().kernels_of_driver += call && call->driver;
    state().kernels_of_runtime += call && call->runtime;
    state().kernels_of_none += none;
  } else {
    state().others++;
    state().others_of_none += none;
  }
  if (none && state().without_call.size() < kMostNames) {
    state().without_call[record.name ? record.name : "?"]++;
  }
}

void count_times(const Record& record, const Call* call) {
  if (!record.start || !record.end) {
    state().untimed++;
    return;
  }
  state().backwards += record.end < record.start;
  if (!call || record.start >= call->enter) return;
  state().early++;
  state().earliest_ns = std::max(state().earliest_ns, call->enter - record.start);
}

void count_node(uint64_t node) {
  if (!node) return;
  state().of_graphs++;
  for (int i = 0; i < kMostSteps; ++i) {
    auto found = state().cloned.find(node);
    if (found == state().cloned.end()) break;
    node = found->second;
  }
  state().of_known_nodes += state().created.count(node) && !state().cloned.count(node);
}

void CUPTIAPI requested(uint8_t** buffer, size_t* size, size_t* most_records) {
  *buffer = static_cast<uint8_t*>(aligned_alloc(4096, kBytes));
  *size = kBytes;
  *most_records = 0;
  std::lock_guard<std::mutex> lock(state().mutex);
  state().buffers++;
  state().buffers_at_most = std::max(state().buffers_at_most, ++state().buffers_in_use);
}

void CUPTIAPI completed(CUcontext, uint32_t, uint8_t* buffer, size_t, size_t valid) {
  using Next = decltype(&::cuptiActivityGetNextRecord);
  auto next = reinterpret_cast<Next>(function("cuptiActivityGetNextRecord"));
  CUpti_Activity* activity = nullptr;
  while (next && next(buffer, valid, &activity) == CUPTI_SUCCESS) {
    Record record;
    if (!understood(activity, &record)) continue;
    std::lock_guard<std::mutex> lock(state().mutex);
    auto found = state().by_correlation.find(record.correlation);
    const Call* call = found == state().by_correlation.end() ? nullptr : &found->second;
    count_call(record, call);
    count_times(record, call);
    count_node(record.node);
  }
  free(buffer);
  std::lock_guard<std::mutex> lock(state().mutex);
  state().buffers_in_use--;
}

uint64_t CUPTIAPI timestamp() { return now(); }

}  // namespace

// In the order that other tools were seen to use: attribute, clock, callbacks, kinds.
int enable_records() {
  if (size_t pool = number("PROBE_POOL")) {
    size_t size = sizeof pool;
    PROBE_ASK(cuptiActivitySetAttribute, CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, &size,
              static_cast<void*>(&pool));
  }
  PROBE_ASK(cuptiActivityRegisterTimestampCallback, timestamp);
  int code = PROBE_ASK(cuptiActivityRegisterCallbacks, requested, completed);
  PROBE_ASK(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_MEMCPY);
  PROBE_ASK(cuptiActivityEnable, CUPTI_ACTIVITY_KIND_MEMSET);
  bool one_by_one = !strcmp(setting("PROBE_KIND", "concurrent"), "kernel");
  PROBE_ASK(cuptiActivityEnable,
            one_by_one ? CUPTI_ACTIVITY_KIND_KERNEL : CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  return code;
}

}  // namespace probe
