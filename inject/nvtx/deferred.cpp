// Records deferred events: ranges and marks that a program tells after they were, with times of its
// own.
#include "nvtx/deferred.h"

#include <map>

#include "flame.h"
#include "nvtx/nvtx.h"
#include "nvtx/payload/payload.h"
#include "nvtx/shared/lock.h"
#include "nvtx/shared/names.h"
#include "nvtx/shared/table.h"

namespace flame::nvtx {
namespace {

constexpr uint64_t kEventKind = 15 << 3;  // of a schema's flags
constexpr uint64_t kSteadyClock = NVTX_TIMESTAMP_TYPE_CPP_STEADY_CLOCK;
constexpr size_t kMaxTimeDomains = 4096;

struct TimeDomains {
  std::map<uint64_t, uint64_t> types;  // by id: NVTX_TIMESTAMP_TYPE_*
};

std::atomic<uint64_t> untimed{0};

uint64_t type_of(uint64_t time_domain) {
  if (time_domain < NVTX_TIME_DOMAIN_ID_STATIC_START) return time_domain;
  TimeDomains& all = the<TimeDomains>();
  TableLock guard;
  const auto found = all.types.find(time_domain);
  return found == all.types.end() ? NVTX_TIMESTAMP_TYPE_NONE : found->second;
}

// Whether its times are those of our records.
bool is_ours(uint64_t time_domain) {
  const uint64_t type = type_of(time_domain);
  return type == NVTX_TIMESTAMP_TYPE_TOOL_PROVIDED || type == kSteadyClock ||
         type == NVTX_TIMESTAMP_TYPE_CPU_CLOCK_GETTIME_MONOTONIC;
}

bool is_timed(const Times& times) {
  if (!times.has_begin || !is_ours(times.begin_domain)) return false;
  if ((times.flags & kEventKind) == NVTX_PAYLOAD_SCHEMA_FLAG_MARK) return true;
  return times.has_end && is_ours(times.end_domain) && times.end >= times.begin;
}

// What lies behind the offset, within the size that the program gives for the whole.
nvtxPayloadData_t flexible_data(const nvtxEventBatch_t& batch) {
  const size_t offset = batch.flexDataOffset;
  if (!batch.flexData || offset >= batch.flexDataSize)
    return {NVTX_TYPE_PAYLOAD_SCHEMA_REFERENCED, 0, nullptr};
  return {NVTX_TYPE_PAYLOAD_SCHEMA_REFERENCED, batch.flexDataSize - offset,
          static_cast<const char*>(batch.flexData) + offset};
}

}  // namespace

uint64_t register_time_domain(const nvtxTimeDomainAttr_t* given) {
  constexpr int64_t kNanoseconds = 1000000000;
  if (!given) return NVTX_TIME_DOMAIN_ID_NONE;
  const bool other_unit = given->timerResolution && given->timerResolution != kNanoseconds;
  const uint64_t id = given->timeDomainId ? given->timeDomainId : new_dynamic_id();
  TimeDomains& all = the<TimeDomains>();
  TableLock guard;
  if (all.types.size() >= kMaxTimeDomains) return NVTX_TIME_DOMAIN_ID_NONE;
  all.types[id] = other_unit ? NVTX_TIMESTAMP_TYPE_NONE : given->timestampTypeId;
  return id;
}

// The thread that tells of an event is not the one that it belongs to: its tid is 0.
void submit(uint32_t domain, const nvtxPayloadData_t* payloads, size_t count) {
  if (!ready()) return;
  Event event;
  Times times;
  Span span;
  read_payloads(domain, payloads, count, &event, &times);
  if (!is_timed(times)) {
    untimed.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  remember(&span, domain, event);
  intern(&span);
  const bool is_mark = (times.flags & kEventKind) == NVTX_PAYLOAD_SCHEMA_FLAG_MARK;
  span.start = static_cast<uint64_t>(times.begin);
  const uint64_t end = is_mark ? span.start : static_cast<uint64_t>(times.end);
  write(span, end, is_mark ? kMark : kStartEnd, 0, 0);
}

void submit(uint32_t domain, const nvtxEventBatch_t* batch) {
  if (!batch || !batch->events) return;
  const Schema* schema = schema_of(domain, batch->eventSchemaId);
  if (!schema || !schema->size) {
    untimed.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const char* events = static_cast<const char*>(batch->events);
  for (size_t at = 0; batch->size - at >= schema->size; at += schema->size) {
    const nvtxPayloadData_t payloads[] = {{batch->eventSchemaId, schema->size, events + at},
                                          flexible_data(*batch)};
    submit(domain, payloads, 2);
  }
}

void note_untimed() {
  const uint64_t count = untimed.exchange(0, std::memory_order_relaxed);
  if (count) {
    note("Deferred NVTX events left out, as their clock is not known: " + std::to_string(count));
  }
}

void forget_untimed() { untimed.store(0, std::memory_order_relaxed); }

}  // namespace flame::nvtx
