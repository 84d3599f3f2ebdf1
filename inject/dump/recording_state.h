// Holds the state of the recording, which every writer looks at first.
#pragma once
#include <atomic>
#include <cstdint>

namespace flame {

enum RecordingState : uint32_t {
  kOff,        // there is no dump and there will be none
  kOn,         // records are written
  kOutOfRoom,  // there is no more room: records are counted, not written
  kIdleChild,  // a forked child that has not recorded anything yet
  kOver,       // the dump has ended
};
// kOff again in a child of a fork that nobody was told of.
extern std::atomic<uint32_t>& recording_state;

}  // namespace flame
