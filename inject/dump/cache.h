// Maps keys of 128 bits to ids in a bounded table. Looked up without a lock by any thread; changed
// under the lock of its owner. What does not fit any more is forgotten, set by set.
#pragma once
#include <sys/mman.h>

#include <atomic>
#include <cstdint>

namespace flame {

struct Key {
  uint64_t first, second;
};

inline uint64_t mix(uint64_t a, uint64_t b) {
  unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return uint64_t(product) ^ uint64_t(product >> 64);
}

class Cache {
 public:
  explicit constexpr Cache(uint32_t bits) : set_bits_(bits) {}

  bool prepare() {
    if (sets_) return true;
    void* memory = mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    sets_ = static_cast<Entry*>(memory);
    return true;
  }

  // Zeroes everything without touching it; no other thread may look meanwhile.
  void clear() { madvise(sets_, size(), MADV_DONTNEED); }

  // Ids are never used twice: one that is still there after the key was read belongs to the key.
  uint32_t find(Key key) const {
    Entry* set = set_of(key);
    for (uint32_t way = 0; way < kWays; way++) {
      uint32_t id = set[way].id.load(std::memory_order_acquire);
      bool same = set[way].first.load(std::memory_order_acquire) == key.first &&
                  set[way].second.load(std::memory_order_acquire) == key.second;
      if (same && id && set[way].id.load(std::memory_order_relaxed) == id) return id;
    }
    return 0;
  }

  void insert(Key key, uint32_t id) {
    Entry* entry = set_of(key);
    uint32_t way = 0;
    while (way < kWays && entry[way].id.load(std::memory_order_relaxed)) way++;
    entry += way < kWays ? way : next_victim_++ % kWays;
    entry->id.store(0, std::memory_order_relaxed);
    entry->first.store(key.first, std::memory_order_release);
    entry->second.store(key.second, std::memory_order_release);
    entry->id.store(id, std::memory_order_release);
  }

 private:
  struct Entry {
    std::atomic<uint64_t> first, second;
    std::atomic<uint32_t> id;
    uint32_t reserved;
  };
  static constexpr uint32_t kWays = 4;

  size_t size() const { return (sizeof(Entry) * kWays) << set_bits_; }

  Entry* set_of(Key key) const {
    uint64_t hash = mix(key.first ^ 0x9e3779b97f4a7c15u, key.second ^ 0xe7037ed1a0b428dbu);
    return sets_ + (hash >> (64 - set_bits_)) * kWays;
  }

  uint32_t set_bits_;
  uint32_t next_victim_ = 0;
  Entry* sets_ = nullptr;
};

// What stands for a text in a cache: two independent 64-bit hashes. Two texts of one process are
// mistaken for each other with a chance of 2^-128 per pair.
Key hash_text(const char* text, size_t size);

}  // namespace flame
