// Looks kernel names up by address: they are long, the same few come again, and hashing them takes
// longer than comparing.
#pragma once
#include <cstdint>

namespace flame {

// Of one thread. An address alone says nothing: another module may have been loaded to it.
class KernelNames {
 public:
  KernelNames() = default;
  KernelNames(const KernelNames&) = delete;
  KernelNames& operator=(const KernelNames&) = delete;
  ~KernelNames();

  uint32_t text_of(const char* symbol);  // id of the text, 0 for null

 private:
  struct Entry {
    const char* address;
    char* copy;
    uint32_t text;
  };
  static constexpr uint32_t kEntries = 64;

  void clear();

  Entry entries_[kEntries] = {};
  bool used_ = false;
  uint32_t generation_ = 0;
};

}  // namespace flame
