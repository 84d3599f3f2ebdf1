// Writes records into the chunks of the file, and counts those that found no room.
#include "dump/writer.h"

#include <algorithm>

#include "dump/file.h"
#include "dump/names.h"
#include "dump/recording_state.h"
#include "dump/thread.h"
#include "flame.h"
#include "system/caller_guards.h"
#include "system/clock.h"
#include "system/settings.h"

namespace flame {

std::mutex chunks_lock;

namespace {

uint64_t tail;  // under chunks_lock; the header has a copy for readers

constexpr uint32_t kCauses = kWildTimes + 1;
std::atomic<uint64_t> lost[kCauses][kTypes];
uint64_t reported[kCauses][kTypes];  // helper thread, or whoever ends the dump
std::atomic<uint32_t> full_because;

uint16_t record_size(Type type) {
  switch (type) {
#define FLAME_SIZE(Struct, key, FIELDS, size) \
  case k##Struct:                             \
    return size;
    FLAME_RECORDS(FLAME_SIZE)
#undef FLAME_SIZE
    default:
      return 0;
  }
}

// For good: to look again at every record would cost more than the records.
void latch_full(DropCause why) {
  uint32_t on = kOn;
  full_because.store(why, std::memory_order_relaxed);
  if (!recording_state.compare_exchange_strong(on, kOutOfRoom)) return;
  header()->flags.fetch_or(kFull, std::memory_order_relaxed);
  log("recording stops: %s", why == kSizeLimit ? "size limit" : "disk full");
}

// One chunk is kept for the Drop records that say how it ended.
bool has_room(Type type) {
  uint32_t state = recording_state.load(std::memory_order_relaxed);
  if (type == kDrop) return state == kOn || state == kOutOfRoom;
  if (state != kOn) return false;
  DropCause why;
  if (tail + 2 * kChunkSize <= file_ready() || grow_file(tail + 2 * kChunkSize, &why)) return true;
  latch_full(why);
  return false;
}

Chunk* begin_chunk(Type type) {
  Chunk* chunk = reinterpret_cast<Chunk*>(file_at(tail));
  chunk->type = type;
  chunk->record_size = record_size(type);
  chunk->size = kChunkSize;
  chunk->tid = thread_id();
  chunk->start = now();
  chunk->magic.store(kChunkMagic, std::memory_order_release);
  tail += kChunkSize;
  header()->tail.store(tail, std::memory_order_release);
  return chunk;
}

Chunk* take_chunk(Type type) {
  CallerGuard caller;
  std::unique_lock<std::mutex> guard(chunks_lock);
  if (!has_room(type)) return nullptr;
  // The last chunk of the space that is ready may only be taken for kDrop, and only once.
  if (tail + kChunkSize > file_ready()) return nullptr;
  guard_file();
  Chunk* chunk = begin_chunk(type);
  bool scarce = file_ready() - tail < kSegmentSize / 2;
  guard.unlock();
  if (scarce) wake_helper();
  return chunk;
}

char* room_in_new_chunk(ChunkWriter& writer, Type type) {
  Chunk* chunk = take_chunk(type);
  if (!chunk) return nullptr;
  if (writer.chunks[type]) writer.chunks[type]->sealed.store(1, std::memory_order_release);
  writer.chunks[type] = chunk;
  writer.used[type] = 0;
  return reinterpret_cast<char*>(chunk + 1);
}

char* lose(Type type) {
  dropped(kNoMemory, type, 1);
  return nullptr;
}

char* refuse(Type type) {
  uint32_t state = recording_state.load(std::memory_order_relaxed);
  const auto why = DropCause(full_because.load(std::memory_order_relaxed));
  if (state == kOutOfRoom) dropped(why, type, 1);
  return nullptr;
}

}  // namespace

char* make_room(ChunkWriter& writer, Type type, uint32_t size) {
  Chunk* chunk = writer.chunks[type];
  if (chunk && writer.used[type] + size <= kChunkRoom) {
    return reinterpret_cast<char*>(chunk + 1) + writer.used[type];
  }
  return size <= kChunkRoom ? room_in_new_chunk(writer, type) : nullptr;
}

void advance(ChunkWriter& writer, Type type, uint32_t size) {
  writer.used[type] += size;
  writer.chunks[type]->committed.store(writer.used[type], std::memory_order_release);
}

char* reserve(Type type, uint32_t size) {
  if (recording_state.load(std::memory_order_acquire) != kOn) return refuse(type);
  if (inside) return lose(type);
  inside = true;
  Thread* me = thread();
  char* place = me ? make_room(me->writer, type, size) : lose(type);
  if (place) return place;
  inside = false;
  return me ? refuse(type) : nullptr;
}

void commit(Type type, uint32_t size) {
  advance(this_thread->writer, type, size);
  inside = false;
}

OpenRange* open_ranges(uint32_t* capacity) {
  *capacity = 0;
  if (!recording()) return nullptr;
  Inside guard;
  Thread* me = guard.entered ? thread() : nullptr;
  if (!me) return nullptr;
  if (!me->writer.chunks[kOpenRange] && !room_in_new_chunk(me->writer, kOpenRange)) return nullptr;
  *capacity = kChunkRoom / sizeof(OpenRange);
  return reinterpret_cast<OpenRange*>(me->writer.chunks[kOpenRange] + 1);
}

void set_open(uint32_t depth) {
  Thread* me = this_thread;
  // What was open at the end stays so: the records of ranges that close later are not written.
  uint32_t state = recording_state.load(std::memory_order_acquire);
  if (!me || !me->writer.chunks[kOpenRange] || (state != kOn && state != kOutOfRoom)) return;
  uint32_t size = std::min(depth * uint32_t(sizeof(OpenRange)), kChunkRoom);
  me->writer.chunks[kOpenRange]->committed.store(size, std::memory_order_release);
}

void dropped(DropCause cause, Type type, uint64_t count) {
  uint32_t state = recording_state.load(std::memory_order_acquire);
  if ((state != kOn && state != kOutOfRoom) || cause >= kCauses || type >= kTypes) return;
  lost[cause][type].fetch_add(count, std::memory_order_relaxed);
  header()->dropped.fetch_add(count, std::memory_order_relaxed);
}

void begin_chunks() {
  std::lock_guard<std::mutex> guard(chunks_lock);
  tail = kHeaderSize;
  for (auto& of_cause : lost) {
    for (auto& count : of_cause) count.store(0, std::memory_order_relaxed);
  }
  for (auto& of_cause : reported) std::fill(std::begin(of_cause), std::end(of_cause), 0);
}

uint64_t chunks_tail() {
  std::lock_guard<std::mutex> guard(chunks_lock);
  return tail;
}

void update_end_time() {
  std::lock_guard<std::mutex> guard(chunks_lock);
  if (recording_state.load(std::memory_order_acquire) == kOver) return;
  header()->end_monotonic.store(now(), std::memory_order_relaxed);
}

void close_chunks(uint32_t header_flags) {
  std::lock_guard<std::mutex> guard(chunks_lock);
  recording_state.store(kOver, std::memory_order_release);
  Header* head = header();
  truncate_file(tail);
  head->flags.fetch_or(header_flags, std::memory_order_relaxed);
  head->end_monotonic.store(now(), std::memory_order_relaxed);
  head->state.store(kEnded, std::memory_order_release);
}

// While there is no room their number must stay small: then they wait for the end.
void write_drops(bool last) {
  if (!last && recording_state.load(std::memory_order_acquire) != kOn) return;
  for (uint32_t cause = 0; cause < kCauses; cause++) {
    for (uint32_t type = 0; type < kTypes; type++) {
      uint64_t count = lost[cause][type].load(std::memory_order_relaxed);
      if (count == reported[cause][type]) continue;
      write_shared_drop(Drop{now(), count - reported[cause][type], cause, type});
      reported[cause][type] = count;
    }
  }
}

}  // namespace flame
