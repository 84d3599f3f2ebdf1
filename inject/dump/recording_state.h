// Holds the state of the recording, which every writer looks at first.
#pragma once
#include <atomic>
#include <cstdint>

namespace flame {

enum Life : uint32_t {
  kOff,      // there is no dump and there will be none
  kOn,       // records are written
  kFullUp,   // there is no more room: records are counted, not written
  kAsleep,   // a forked child that has not recorded anything yet
  kOver,     // the dump has ended
};
extern std::atomic<uint32_t>& life;  // kOff again in a child of a fork that nobody was told of

}  // namespace flame
