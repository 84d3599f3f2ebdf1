// Writes Memory records: what was given out and taken back, and what became of pools of memory.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "cupti/activity.h"
#include "cupti/layouts.h"
#include "cupti/state.h"
#include "flame.h"

namespace flame {
namespace {

enum What : uint8_t { kOfMemory = 0, kOfPool = 1 };
constexpr uint32_t kNone = ~uint32_t{0};  // CUPTI_INVALID_CONTEXT_ID and _STREAM_ID

uint8_t byte_of(uint32_t number) { return uint8_t(std::min<uint32_t>(number, 255)); }

// An enumeration of a record: a newer CUPTI may have values that the type here cannot hold.
template <class Record>
uint32_t number_at(const Record& record, size_t offset) {
  uint32_t number;
  memcpy(&number, reinterpret_cast<const char*>(&record) + offset, sizeof number);
  return number;
}

// False, and counted, where CUPTI tells no time, or one that cannot be.
bool has_time(uint64_t theirs, const Memory& to) {
  if (theirs && can_be(to.time, to.time)) return true;
  if (!theirs) count(count_untimed_records);
  dropped(theirs ? kWildTimes : kUntimed, Memory::kType, 1);
  return false;
}

// What records of both kinds have; false where nothing is to be written.
template <class From>
bool fill(const From& from, Memory* to) {
  const Origin origin = origin_of(from.correlationId);
  to->time = from.timestamp ? our_time(from.timestamp) : 0;
  if (is_left_out(to->time, to->time, origin)) return false;
  if (!has_time(from.timestamp, *to)) return false;
  if (!origin.tid && from.correlationId) count(count_records_without_call);
  set_origin(from.correlationId, origin, to);
  to->device = from.deviceId;
  see_device(from.deviceId);
  return true;
}

// Of a pool that another process has made CUPTI knows no sizes.
void set_pool(uint32_t type, uint64_t address, uint64_t size, uint64_t used, Memory* to) {
  const bool local = type == CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
  to->pool_type = byte_of(type);
  to->pool = address;
  to->pool_size = local ? size : 0;
  to->pool_used = local ? used : 0;
}

void write_change(const MemoryRecord& from) {
  Memory to{};
  if (!fill(from, &to)) return;
  to.what = kOfMemory;
  to.operation = byte_of(number_at(from, offsetof(MemoryRecord, memoryOperationType)));
  to.kind = byte_of(number_at(from, offsetof(MemoryRecord, memoryKind)));
  to.address = from.address;
  to.bytes = from.bytes;
  to.context = from.contextId;
  to.stream = from.streamId;
  const auto& pool = from.memoryPoolConfig;
  const uint32_t type = number_at(from, offsetof(MemoryRecord, memoryPoolConfig.memoryPoolType));
  if (type != CUPTI_ACTIVITY_MEMORY_POOL_TYPE_INVALID)
    set_pool(type, pool.address, pool.pool.size, pool.utilizedSize, &to);
  put(to);
}

void write_pool(const PoolRecord& from) {
  Memory to{};
  if (!fill(from, &to)) return;
  to.what = kOfPool;
  to.operation = byte_of(number_at(from, offsetof(PoolRecord, memoryPoolOperationType)));
  to.bytes = from.minBytesToKeep;
  to.context = to.stream = kNone;
  const uint32_t type = number_at(from, offsetof(PoolRecord, memoryPoolType));
  set_pool(type, from.address, from.size, from.utilizedSize, &to);
  put(to);
}

bool enable(CUpti_ActivityKind kind, const char* lacking) {
  const CUptiResult result = enable_activity(kind);
  if (!result) return true;
  char text[160];
  snprintf(text, sizeof text, "CUPTI does not report %s here: %s (%d)", lacking,
           result_name(result), result);
  note(text);
  return false;
}

}  // namespace

// How large pools are is told with what comes out of them, too.
void enable_memory() {
  const bool reported = enable(CUPTI_ACTIVITY_KIND_MEMORY2, "memory that is allocated and freed");
  if (reported) enable(CUPTI_ACTIVITY_KIND_MEMORY_POOL, "pools of memory");
  meta("memory", reported ? "recorded" : "CUPTI does not report it");
}

void disable_memory() {
  disable_activity(CUPTI_ACTIVITY_KIND_MEMORY2);
  disable_activity(CUPTI_ACTIVITY_KIND_MEMORY_POOL);
}

void write_memory(const CUpti_Activity& record) {
  if (record.kind == CUPTI_ACTIVITY_KIND_MEMORY2)
    write_change(reinterpret_cast<const MemoryRecord&>(record));
  else
    write_pool(reinterpret_cast<const PoolRecord&>(record));
}

}  // namespace flame
