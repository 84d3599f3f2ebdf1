// Locks the tables that all threads share, for short looks, and keeps calls within calls out.
#pragma once
#include <cstdint>

#include "flame.h"

namespace flame::nvtx {

class TableLock {
 public:
  TableLock();
  ~TableLock();
  TableLock(const TableLock&) = delete;
  TableLock& operator=(const TableLock&) = delete;
};
bool lock_over_forks();

// One call at a time on each thread: a signal handler may call in the middle of another call, and an
// allocator that is annotated in every one.
class Call {
 public:
  Call();
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  const bool alone;
};

// Without memory there is no profile, but a program that goes on: `lost` ranges are then counted.
template <class Result, class Work>
Result safely(Result failed, Work work, uint32_t lost = 0) noexcept {
  try {
    Call call;
    if (call.alone) return work();
  } catch (...) {
  }
  dropped(kNoMemory, kRange, lost);
  return failed;
}

template <class Work>
void safely(Work work) noexcept {
  safely(0, [&] { return work(), 0; });
}

}  // namespace flame::nvtx
