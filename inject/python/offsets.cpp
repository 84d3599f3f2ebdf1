// Finds offsets by version: measured with offsetof for 3.11 and 3.12, read from the process since
// 3.13.
#include "python/offsets.h"

#include <cstring>

#include "python/memory.h"

namespace flame::python {
namespace {

constexpr uintptr_t kPlain = ~uintptr_t{0}, kTagged = ~uintptr_t{3};

constexpr Offsets kPython311 = {
    56, true, 8,              // thread: cframe; cframe: current_frame, behind use_tracing
    32, 48, 56, 69, kPlain,   // frame: f_code, previous, prev_instr, owner
    48, 72, 0, 112, 128,      // code: co_flags, co_firstlineno, no version, filename, qualname
    136, 168, 184,            // code: co_linetable, _co_firsttraceable, co_code_adaptive
    16, 32, 48, 72,           // text: length, state, size of PyASCIIObject, PyCompactUnicodeObject
    16, 32,                   // bytes: ob_size, ob_sval
};

constexpr Offsets kPython312 = {
    56, true, 0,             //
    0, 8, 56, 70, kPlain,    //
    48, 68, 92, 112, 128,    // co_version at 92
    136, 176, 192,           //
    16, 32, 40, 56,          //
    16, 32,
};

// The beginning of _PyRuntime since 3.13: groups of 64-bit numbers, each led by the size of the
// struct that it describes. Which groups there are, and how long they are, depends on the version.
constexpr size_t kGroupsAt = 24;  // behind the cookie, the version and whether it is free-threaded

enum Group {
  kRuntimeState, kInterpreterState, kThreadState, kInterpreterFrame, kCodeObject, kObject,
  kTypeObject, kTuple, kList, kSet, kDict, kFloat, kLong, kBytes, kUnicode, kGroups
};
using Sizes = uint8_t[kGroups];  // in numbers
constexpr Sizes kGroups313 = {3, 13, 9, 6, 10, 2, 4, 3, 3, 0, 3, 2, 3, 3, 4};
constexpr Sizes kGroups314 = {3, 16, 9, 8, 11, 2, 4, 3, 3, 4, 3, 2, 3, 3, 4};

constexpr uint64_t kFarthest = 4096;  // no struct that is read is larger

class DebugOffsets {
 public:
  DebugOffsets(const char* runtime, const Sizes& sizes)
      : groups_(runtime + kGroupsAt), sizes_(sizes) {}

  uint16_t operator()(Group group, size_t index) {
    for (int before = 0; before < group; before++) index += sizes_[before];
    const auto offset = Trusted().load<uint64_t>(groups_, index * 8);
    near_ = near_ && offset <= kFarthest;
    return static_cast<uint16_t>(offset);
  }
  bool all_near() const { return near_; }

 private:
  const char* groups_;
  const Sizes& sizes_;
  bool near_ = true;
};

constexpr uint16_t kBeforeBytecode = 16;

// What the table lacks has kept its place since 3.12: co_flags, co_version, and the first traceable
// instruction, which lies right before `void *co_extra` and the bytecode.
void take(DebugOffsets& at, Offsets* offsets) {
  offsets->through_cframe = false;
  offsets->thread_frame = at(kThreadState, 4);
  offsets->frame_previous = at(kInterpreterFrame, 1);
  offsets->frame_code = at(kInterpreterFrame, 2);
  offsets->frame_instruction = at(kInterpreterFrame, 3);
  offsets->frame_owner = at(kInterpreterFrame, 5);
  offsets->code_filename = at(kCodeObject, 1);
  offsets->code_qualname = at(kCodeObject, 3);
  offsets->code_linetable = at(kCodeObject, 4);
  offsets->code_first_line = at(kCodeObject, 5);
  offsets->code_bytecode = at(kCodeObject, 9);
  offsets->code_first_traceable =
      static_cast<uint16_t>(offsets->code_bytecode - kBeforeBytecode);
  offsets->bytes_size = at(kBytes, 1);
  offsets->bytes_data = at(kBytes, 2);
  offsets->text_state = at(kUnicode, 1);
  offsets->text_length = at(kUnicode, 2);
  offsets->text_ascii = at(kUnicode, 3);
  offsets->text_compact = static_cast<uint16_t>(offsets->text_ascii + 16);
}

bool from_runtime(int minor, const char* runtime, Offsets* offsets) {
  if (!runtime || memcmp(runtime, "xdebugpy", 8) != 0) return false;
  const auto version = Trusted().load<uint64_t>(runtime, 8);
  if (version >> 16 != 0x0300u + static_cast<unsigned>(minor)) return false;
  if (Trusted().load<uint64_t>(runtime, 16)) return false;
  *offsets = kPython312;
  offsets->code_mask = minor >= 14 ? kTagged : kPlain;
  DebugOffsets at(runtime, minor == 13 ? kGroups313 : kGroups314);
  take(at, offsets);
  return at.all_near() && offsets->code_bytecode >= kBeforeBytecode;
}

}  // namespace

bool find_offsets(int minor, const char* runtime, Offsets* offsets) {
  if (minor == 11) *offsets = kPython311;
  if (minor == 12) *offsets = kPython312;
  if (minor == 13 || minor == 14) return from_runtime(minor, runtime, offsets);
  return minor == 11 || minor == 12;
}

}  // namespace flame::python
