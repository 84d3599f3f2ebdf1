// Walks the calling thread's Python frames, read from memory without the GIL: nobody else changes
// them while the thread is in here.
#pragma once
#include "dump/dump.h"
#include "python/memory.h"
#include "python/offsets.h"

namespace flame::python {

struct Position {
  const char* code;  // PyCodeObject
  uint64_t stamp;    // tells it from a later code object at the same address
  int32_t lasti;     // bytes from the first instruction
  bool operator==(const Position& other) const {
    return code == other.code && stamp == other.stamp && lasti == other.lasti;
  }
};

// The innermost kMaxDepth frames of a thread, innermost first.
struct Stack {
  Position positions[kMaxDepth + 1] = {};  // the last one only tells that there are more
  uint32_t depth = 0;
  uint32_t fresh = 0;  // so many of the innermost ones are not as they were in the last stack
  bool cut = false;    // there are more
};

// Reads the stack of `thread` (PyThreadState), and compares it with the `last` one. `Memory` is
// Trusted or Checked.
template <class Memory>
void walk(const Memory& memory, const char* thread, const Offsets& offsets, const Stack& last,
          Stack* stack);

}  // namespace flame::python
