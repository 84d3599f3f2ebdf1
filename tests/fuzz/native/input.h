// Takes values from the bytes that a fuzzer makes, from the first to the last: what is missing at
// the end is zero, so that every input is one, and short ones can be written by hand.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

// One input. What it gives in memory lies in blocks of exactly its size: a sanitizer sees every
// byte too many.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : at_(data), left_(size) {}

  bool empty() const { return left_ == 0; }

  template <class Value>
  Value take() {
    Value value{};
    const size_t size = left_ < sizeof value ? left_ : sizeof value;
    if (size) memcpy(&value, at_, size);
    skip(size);
    return value;
  }

  uint8_t byte() { return take<uint8_t>(); }
  uint8_t below(unsigned end) { return static_cast<uint8_t>(byte() % end); }
  bool flag() { return byte() & 1; }

  // A number of any size: mostly small, now and then what overflows.
  uint64_t number() {
    const uint8_t kind = byte();
    if (kind < 240) return kind;
    switch (kind & 7) {
      case 0: return UINT64_MAX;
      case 1: return UINT64_MAX / 2;
      case 2: return uint64_t{1} << byte() % 64;
      case 3: return take<uint16_t>();
      case 4: return take<uint32_t>();
      default: return take<uint64_t>();
    }
  }

  // At most `most` bytes, as many as a byte (two where more may come) says.
  std::string bytes(size_t most = 255) {
    size_t size = most > 255 ? take<uint16_t>() : byte();
    size = size % (most + 1);
    size = left_ < size ? left_ : size;
    std::string value(reinterpret_cast<const char*>(at_), size);
    skip(size);
    return value;
  }

  std::string rest() {
    std::string value(reinterpret_cast<const char*>(at_), left_);
    skip(left_);
    return value;
  }

 private:
  void skip(size_t size) {
    at_ += size;
    left_ -= size;
  }

  const uint8_t* at_;
  size_t left_;
};

// Memory of exactly `size` bytes, with `bytes` at its begin.
class Block {
 public:
  explicit Block(const std::string& bytes) : size_(bytes.size()), data_(make(size_)) {
    if (size_) memcpy(data_.get(), bytes.data(), size_);
  }
  char* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(char* data) const { free(data); }
  };
  static char* make(size_t size) { return static_cast<char*>(malloc(size)); }

  size_t size_;
  std::unique_ptr<char, Free> data_;
};

// Text up to its first zero, in memory that ends right behind that.
inline Block c_string(const std::string& bytes) {
  return Block(std::string(bytes.c_str(), strlen(bytes.c_str()) + 1));
}

inline void require(bool true_always, const char* what) {
  if (true_always) return;
  fprintf(stderr, "not true: %s\n", what);
  abort();
}
