// Keeps the ids of frames and nodes that a thread has already recorded.
#pragma once
#include <cstdlib>

#include "python/walk.h"

namespace flame::python {

constexpr uint32_t kFrameItself = UINT32_MAX;  // as parent: the Frame, no Node
constexpr uint32_t kCutParent = UINT32_MAX - 1;  // as parent: the outermost kept one of a cut stack

// (position, parent) -> id. Grows to a limit, then forgets everything.
class FrameCache {
 public:
  FrameCache() = default;
  FrameCache(const FrameCache&) = delete;
  FrameCache& operator=(const FrameCache&) = delete;
  ~FrameCache() { free(entries_); }

  uint32_t find(const Position& position, uint32_t parent) const {
    if (!size_) return 0;
    return place(position, parent)->id;
  }

  void add(const Position& position, uint32_t parent, uint32_t id) {
    if (2 * (used_ + 1) > size_) grow();
    if (!size_) return;
    *place(position, parent) = Entry{position, parent, id};
    used_++;
  }

  void clear() {
    if (size_) memset(static_cast<void*>(entries_), 0, size_ * sizeof(Entry));
    used_ = 0;
  }

 private:
  struct Entry {
    Position position;
    uint32_t parent;
    uint32_t id;  // 0: empty
  };
  static constexpr uint32_t kFirstSize = 1024, kLastSize = 16384;  // 32 and 512 KiB

  Entry* place(const Position& position, uint32_t parent) const {
    uint64_t hash = position.stamp ^ reinterpret_cast<uintptr_t>(position.code);
    hash ^= static_cast<uint64_t>(parent) << 32 | static_cast<uint32_t>(position.lasti);
    hash *= 0x9e3779b97f4a7c15u;
    uint32_t at = static_cast<uint32_t>(hash >> 40) & (size_ - 1);
    while (entries_[at].id && !(entries_[at].parent == parent && entries_[at].position == position))
      at = (at + 1) & (size_ - 1);
    return entries_ + at;
  }

  void grow() {
    const uint32_t size = size_ ? size_ * 2 : kFirstSize;
    auto* entries = size > kLastSize ? nullptr
                                     : static_cast<Entry*>(calloc(size, sizeof(Entry)));
    if (!entries) return clear();
    Entry* old = entries_;
    const uint32_t old_size = size_;
    entries_ = entries;
    size_ = size;
    for (Entry* each = old; each != old + old_size; each++)
      if (each->id) *place(each->position, each->parent) = *each;
    free(old);
  }

  Entry* entries_ = nullptr;
  uint32_t size_ = 0, used_ = 0;
};

}  // namespace flame::python
