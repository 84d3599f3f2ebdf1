// Writes records into chunks of the dump.
#pragma once
#include <cstdint>
#include <mutex>

#include "dump/dump.h"

namespace flame {

constexpr uint32_t kChunkRoom = kChunkSize - sizeof(Chunk);

// The chunks that one writer fills. How far is kept in `used` and not read back from the file,
// which others can change.
struct ChunkWriter {
  Chunk* chunks[kTypes];
  uint32_t used[kTypes];
};
char* make_room(ChunkWriter& writer, Type type, uint32_t size);  // null: full or over, not counted
void advance(ChunkWriter& writer, Type type, uint32_t size);

extern std::mutex chunks_lock;
void begin_chunks();       // of a new dump
uint64_t chunks_tail();    // file offset behind the last chunk
void update_end_time();    // up to this moment; for readers of a dump that is never ended
void close_chunks(uint32_t header_flags);  // no more of them; the dump is ended
void write_drops(bool last);

}  // namespace flame
