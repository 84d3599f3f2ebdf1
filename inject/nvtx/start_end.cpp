// Records ranges that are started and ended, on the same thread or on another.
#include <unordered_map>

#include "flame.h"
#include "nvtx/nvtx.h"
#include "nvtx/shared/lock.h"
#include "nvtx/shared/names.h"
#include "nvtx/shared/table.h"
#include "system/clock.h"

namespace flame::nvtx {
namespace {

// A program that never ends what it starts must not fill the memory: more than this are dropped.
constexpr size_t kMaxStarted = 64 * 1024;
constexpr size_t kMaxBytes = 64u << 20;  // of their texts

struct Started {
  std::unordered_map<uint64_t, Span> ranges;  // by id
  size_t bytes = 0;
};

std::atomic<uint64_t> last_id{0};

bool keep(uint64_t id, Span&& span) {
  Started& all = the<Started>();
  const size_t bytes = text_bytes(span);
  TableLock guard;
  if (all.ranges.size() >= kMaxStarted || all.bytes + bytes > kMaxBytes) return false;
  all.ranges.emplace(id, std::move(span));
  all.bytes += bytes;
  return true;
}

bool take(uint64_t id, Span* span) {
  Started& all = the<Started>();
  TableLock guard;
  const auto found = all.ranges.find(id);
  if (found == all.ranges.end()) return false;
  all.bytes -= text_bytes(found->second);
  *span = std::move(found->second);
  all.ranges.erase(found);
  return true;
}

size_t never_ended() {
  Started& all = the<Started>();
  TableLock guard;
  size_t count = 0;  // without those that a forked child has from its parent
  for (const auto& [id, span] : all.ranges) count += span.generation == generation();
  return count;
}

}  // namespace

uint64_t start_range(uint32_t domain, const Event& event) {
  const uint64_t id = last_id.fetch_add(1, std::memory_order_relaxed) + 1;
  if (!ready()) return id;
  Span span;
  remember(&span, domain, event);
  intern(&span);
  span.tid = thread_id();
  span.start = now();
  if (!keep(id, std::move(span))) dropped(kNoMemory, kRange, 1);
  return id;
}

void end_range(uint64_t id, const Event* at_end) {
  const uint64_t end = now();
  Span span;
  if (!ready() || !take(id, &span)) return;
  if (span.generation != generation()) intern(&span);
  if (at_end) extend(&span, *at_end);
  write(span, end, kStartEnd, 0, thread_id());
}

void note_never_ended() {
  const size_t count = never_ended();
  if (count) note("NVTX ranges that were started and not ended: " + std::to_string(count));
}

}  // namespace flame::nvtx
