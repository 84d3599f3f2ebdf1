// Walks frames as CPython's own PyThreadState_GetFrame and PyFrame_GetBack do, without making
// objects.
#include "python/walk.h"

#include <algorithm>

namespace flame::python {
namespace {

// Frames with those that are hidden. CPython has at most one of these for each that is not.
constexpr uint32_t kMaxSeen = 16 * kMaxDepth;
constexpr uint32_t kOptimized = 1;  // CO_OPTIMIZED: a function, no module, class or exec'd text

uint64_t mix(uint64_t hash, uint64_t value) { return (hash ^ value) * 0x9e3779b97f4a7c15u; }

// Bytes of an object, from `offset` on.
struct Bytes {
  const char* object;
  size_t offset, size;
};

// The first and last 64 bytes; four words at a time, none of which waits for another.
template <class Memory>
uint64_t mix_ends(const Memory& memory, uint64_t hash, Bytes from) {
  const size_t size = from.size;
  const auto word = [&](size_t at) {
    return memory.template load<uint64_t>(from.object, from.offset + at);
  };
  uint64_t lanes[4] = {hash, hash, hash, hash};
  const auto mix_words = [&](size_t at) {
    for (size_t lane = 0; lane < 4; lane++) lanes[lane] = mix(lanes[lane], word(at + 8 * lane));
  };
  size_t at = 0;
  for (; size - at >= 32 && at < 64; at += 32) mix_words(at);
  for (at = std::max(at, size - std::min<size_t>(size, 64)); size - at >= 32; at += 32)
    mix_words(at);
  for (const uint64_t lane : lanes) hash = mix(hash ^ hash >> 32, lane);
  for (; size - at >= 8; at += 8) hash = mix(hash, word(at));
  for (; at < size; at++)
    hash = mix(hash, memory.template load<uint8_t>(from.object, from.offset + at));
  return mix(hash ^ hash >> 32, size);
}

// The characters of a name that is plain ASCII, as nearly all are; nothing for another.
template <class Memory>
bool is_plain(const Memory& memory, const char* text, const Offsets& offsets) {
  constexpr uint32_t kCompactAscii = 3u << 5;
  const auto state = memory.template load<uint32_t>(text, offsets.text_state);
  return (state & kCompactAscii) == kCompactAscii;
}

template <class Memory>
Bytes plain_text(const Memory& memory, const char* text, const Offsets& offsets) {
  if (!is_plain(memory, text, offsets)) return {text, 0, 0};
  return {text, offsets.text_ascii, memory.template load<size_t>(text, offsets.text_length)};
}

// Functions of files live as long as their module. Other code comes and goes, often with equal
// names.
template <class Memory>
bool is_fleeting(const Memory& memory, const char* code, const char* file,
                 const Offsets& offsets) {
  if (!(memory.template load<uint32_t>(code, offsets.code_flags) & kOptimized)) return true;
  if (!is_plain(memory, file, offsets)) return true;
  const char first = memory.template load<char>(file, offsets.text_ascii);  // 0 behind the last
  return first == '<' || !first;
}

// Where its parts lie, and for fleeting code also what they say of names and lines.
template <class Memory>
uint64_t stamp_without_version(const Memory& memory, const char* code, const Offsets& offsets) {
  const auto* file = memory.template load<const char*>(code, offsets.code_filename);
  const auto* lines = memory.template load<const char*>(code, offsets.code_linetable);
  const uint64_t first = memory.template load<uint32_t>(code, offsets.code_first_line);
  uint64_t hash =
      memory.template load<uintptr_t>(code, offsets.code_qualname) * 0xa0761d6478bd642fu +
      reinterpret_cast<uintptr_t>(file) * 0xe7037ed1a0b428dbu +
      reinterpret_cast<uintptr_t>(lines) * 0x8ebc6af09c88c6e3u + first * 0x589965cc75374cc3u;
  if (!is_fleeting(memory, code, file, offsets)) return hash;
  const auto size = memory.template load<size_t>(lines, offsets.bytes_size);
  return mix_ends(memory, mix_ends(memory, hash, {lines, offsets.bytes_data, size}),
                  plain_text(memory, file, offsets));
}

// From 3.12 on every code object of an interpreter has a number, until 2^32 have been made.
template <class Memory>
uint64_t stamp_of(const Memory& memory, const char* code, const Offsets& offsets) {
  const uint32_t version =
      offsets.code_version ? memory.template load<uint32_t>(code, offsets.code_version) : 0;
  if (!version) return stamp_without_version(memory, code, offsets);
  return static_cast<uint64_t>(version) << 32 ^
         memory.template load<uintptr_t>(code, offsets.code_filename);
}

template <class Memory>
const char* innermost(const Memory& memory, const char* thread, const Offsets& offsets) {
  const auto* holder = memory.template load<const char*>(thread, offsets.thread_frame);
  if (!offsets.through_cframe || !holder) return holder;
  return memory.template load<const char*>(holder, offsets.cframe_frame);
}

// False for frames that run no Python code (yet): CPython hides them too.
template <class Memory>
bool position_of(const Memory& memory, const char* frame, const Offsets& offsets,
                 Position* position) {
  const auto owner = memory.template load<uint8_t>(frame, offsets.frame_owner);
  if (owner >= kFirstShim) return false;
  const uintptr_t code =
      memory.template load<uintptr_t>(frame, offsets.frame_code) & offsets.code_mask;
  const auto instruction = memory.template load<uintptr_t>(frame, offsets.frame_instruction);
  position->code = reinterpret_cast<const char*>(code);
  position->lasti = static_cast<int32_t>(instruction - (code + offsets.code_bytecode));
  const int64_t first =
      memory.template load<int32_t>(position->code, offsets.code_first_traceable);
  if (owner != kOwnedByGenerator && position->lasti < first * 2) return false;
  position->stamp = stamp_of(memory, position->code, offsets);
  return true;
}

// How many of the outermost frames are those of the last stack.
uint32_t common_root(const Stack& stack, const Stack& last) {
  if (stack.cut || last.cut) return 0;
  const uint32_t most = std::min(stack.depth, last.depth);
  const Position* here = stack.positions + stack.depth;
  const Position* there = last.positions + last.depth;
  uint32_t common = 0;
  while (common < most && *--here == *--there) common++;
  return common;
}

}  // namespace

template <class Memory>
void walk(const Memory& memory, const char* thread, const Offsets& offsets, const Stack& last,
          Stack* stack) {
  uint32_t depth = 0, fresh = 0, seen = 0;
  const char* frame = innermost(memory, thread, offsets);
  for (; frame && depth <= kMaxDepth && seen < kMaxSeen && !memory.failed(); seen++) {
    Position position;
    if (position_of(memory, frame, offsets, &position)) {
      stack->positions[depth] = position;
      if (!(position == last.positions[depth++])) fresh = depth;
    }
    frame = memory.template load<const char*>(frame, offsets.frame_previous);
  }
  stack->cut = depth > kMaxDepth;
  stack->depth = stack->cut ? kMaxDepth : depth;
  const bool aligned = stack->depth == last.depth && stack->cut == last.cut;
  stack->fresh =
      aligned ? std::min(fresh, stack->depth) : stack->depth - common_root(*stack, last);
}

template void walk(const Trusted&, const char*, const Offsets&, const Stack&, Stack*);
template void walk(const Checked&, const char*, const Offsets&, const Stack&, Stack*);

}  // namespace flame::python
