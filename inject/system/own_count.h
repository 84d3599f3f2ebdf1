// Counts what one thread alone counts and others read: without a locked instruction.
#pragma once
#include <atomic>
#include <cstdint>

namespace flame {

// Only by the thread that `count` belongs to. A signal handler of it may count as well: none comes
// in the middle of an instruction.
inline void add_to_own(std::atomic<uint64_t>& count, uint64_t by) {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
  static_assert(sizeof count == sizeof by);
  // Clang takes no object of a class for an operand.
  asm volatile("addq %1, %0" : "+m"(reinterpret_cast<uint64_t&>(count)) : "er"(by) : "memory", "cc");
#else
  count.fetch_add(by, std::memory_order_release);
#endif
}

}  // namespace flame
