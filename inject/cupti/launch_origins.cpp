// Keeps the latest driver calls in a ring. Every word of an entry carries the call's whole
// correlation id, so that a reader takes all of one call or nothing, without locks and without
// waiting.
#include "cupti/launch_origins.h"

#include <atomic>

namespace flame {
namespace {

// Correlation ids count all API calls, and a kernel may wait in its stream while many others run.
constexpr uint32_t kCalls = 1u << 18;

struct Entry {
  std::atomic<uint64_t> tid, python, nvtx, start;  // each below the correlation id
};
Entry ring[kCalls];

uint64_t tagged(uint32_t correlation, uint32_t value) {
  return uint64_t{correlation} << 32 | value;
}

bool untag(const std::atomic<uint64_t>& word, uint32_t correlation, uint32_t* value) {
  uint64_t bits = word.load(std::memory_order_relaxed);
  *value = static_cast<uint32_t>(bits);
  return bits >> 32 == correlation;
}

constexpr uint32_t kStartUnit = 6;  // log2 of ns: 32 bits of them are 4.5 minutes

}  // namespace

void remember_start(uint32_t correlation, uint64_t time) {
  const uint64_t start = tagged(correlation, static_cast<uint32_t>(time >> kStartUnit));
  ring[correlation % kCalls].start.store(start, std::memory_order_relaxed);
}

bool started_before_call(uint32_t correlation, uint64_t time) {
  uint32_t start;
  if (!untag(ring[correlation % kCalls].start, correlation, &start)) return false;
  return static_cast<int32_t>(static_cast<uint32_t>(time >> kStartUnit) - start) < 0;
}

void remember_origin(uint32_t correlation, const Origin& origin) {
  Entry& entry = ring[correlation % kCalls];
  entry.tid.store(tagged(correlation, origin.tid), std::memory_order_relaxed);
  entry.python.store(tagged(correlation, origin.python), std::memory_order_relaxed);
  entry.nvtx.store(tagged(correlation, origin.nvtx), std::memory_order_relaxed);
}

Origin origin_of(uint32_t correlation) {
  const Entry& entry = ring[correlation % kCalls];
  Origin origin;
  bool whole = untag(entry.tid, correlation, &origin.tid) &&
               untag(entry.python, correlation, &origin.python) &&
               untag(entry.nvtx, correlation, &origin.nvtx);
  return whole ? origin : Origin{};
}

}  // namespace flame
