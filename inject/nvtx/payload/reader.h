// Holds an extended payload while it is read.
#pragma once
#include <string>
#include <vector>

#include "nvtx/payload/payload.h"

namespace flame::nvtx {

constexpr unsigned kMaxSteps = 4096;  // entries and elements of one event that are looked at
constexpr uint64_t kUnknown = UINT64_MAX;
constexpr size_t kPointed = 4096;  // bytes read where a pointer leads out of the payloads

struct Memory {
  const char* data;
  uint64_t size;

  Memory from(uint64_t offset) const {
    return offset < size ? Memory{data + offset, size - offset} : Memory{nullptr, 0};
  }
};

struct Reader {
  uint32_t domain;
  const nvtxPayloadData_t* payloads;
  size_t count;
  Event* event;
  Times* times;
  std::string* json;
  unsigned steps = 0;

  bool full() const { return json->size() >= kMaxJson || steps >= kMaxSteps; }
};

// An object while it is read: where its entries lie is known as far as it has been read.
struct Object {
  const Schema& schema;
  Memory memory;
  unsigned nesting;
  std::vector<uint64_t> places;
};

// nvtx/payload/length.cpp

// What the pointer at `at` points at: part of a payload of the event, or memory that is copied.
Memory pointed(const Reader& reader, Memory at, std::string* copy);
// How many values the entry has at `at`, of a string: units. kUnknown: that cannot be told.
uint64_t length(const Reader& reader, const Object& object, const Entry& entry, Memory at);
uint64_t length_by_entry(const Object& object, size_t index);

}  // namespace flame::nvtx
