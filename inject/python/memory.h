// Reads the memory in which CPython's objects lie: as it is, once their layout has been checked, and
// through the kernel before that.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace flame::python {

constexpr size_t kTextRoom = 4096;  // a name that has to be converted is cut to this many bytes

// As it is.
struct Trusted {
  template <class Value>
  Value load(const char* object, size_t offset) const {
    Value value;
    memcpy(&value, object + offset, sizeof value);
    return value;
  }
  std::string_view text(const char* object, size_t offset, size_t size, char*) const {
    return {object + offset, size};
  }
  static constexpr bool failed() { return false; }
};

// What is not there is zero, and from then on it has failed.
class Checked {
 public:
  static bool works();  // false: this kernel does not let a process ask

  template <class Value>
  Value load(const char* object, size_t offset) const {
    Value value;
    read(reinterpret_cast<uintptr_t>(object) + offset, &value, sizeof value);
    return value;
  }
  // In `room`, kTextRoom bytes.
  std::string_view text(const char* object, size_t offset, size_t size, char* room) const {
    size = std::min(size, kTextRoom);
    read(reinterpret_cast<uintptr_t>(object) + offset, room, size);
    return {room, size};
  }
  bool failed() const { return failed_; }

 private:
  static constexpr size_t kPage = 4096, kPages = 16;  // that are remembered: nobody changes them
  struct Page {
    uintptr_t number = 0;  // counted from 1
    char bytes[kPage];
  };

  void read(uintptr_t address, void* to, size_t size) const;
  const char* page_at(uintptr_t address) const;

  mutable Page pages_[kPages];
  mutable bool failed_ = false;
};

}  // namespace flame::python
