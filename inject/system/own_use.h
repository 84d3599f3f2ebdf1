// Keeps signal handlers out of what one thread alone uses.
#pragma once
#include <atomic>

namespace flame {

// Around each use of it. A handler of the program that interrupts one and comes here as well is not
// `alone`: what it finds may be half changed, and what it frees may be in use.
class OwnUse {
 public:
  explicit OwnUse(bool& used) : alone(!used), used_(used) {
    used_ = true;
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~OwnUse() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (alone) used_ = false;
  }
  OwnUse(const OwnUse&) = delete;
  OwnUse& operator=(const OwnUse&) = delete;
  const bool alone;

 private:
  bool& used_;
};

}  // namespace flame
