// Walks frames as CPython's own PyThreadState_GetFrame and PyFrame_GetBack do, without making
// objects.
#include "python/walk.h"

#include <algorithm>
#include <string_view>

namespace flame::python {
namespace {

constexpr uint32_t kOptimized = 1;  // CO_OPTIMIZED: a function, no module, class or exec'd text

uint64_t mix(uint64_t hash, uint64_t value) { return (hash ^ value) * 0x9e3779b97f4a7c15u; }

// The first and last 64 bytes of `data`.
uint64_t mix_ends(uint64_t hash, const char* data, size_t size) {
  size_t at = 0;
  for (; at + 8 <= size && at < 64; at += 8) hash = mix(hash, load<uint64_t>(data, at));
  for (at = std::max(at, size - std::min<size_t>(size, 64)); at + 8 <= size; at += 8)
    hash = mix(hash, load<uint64_t>(data, at));
  for (; at < size; at++) hash = mix(hash, static_cast<uint8_t>(data[at]));
  return mix(hash ^ hash >> 32, size);
}

// The characters of a name that is plain ASCII, as nearly all are; nothing for another.
std::string_view plain_text(const char* text, const Offsets& offsets) {
  constexpr uint32_t kCompactAscii = 3u << 5;
  if ((load<uint32_t>(text, offsets.text_state) & kCompactAscii) != kCompactAscii) return {};
  return {text + offsets.text_ascii, load<size_t>(text, offsets.text_length)};
}

// Functions of files live as long as their module. Other code comes and goes, often with equal
// names.
bool is_fleeting(const char* code, std::string_view file, const Offsets& offsets) {
  return !(load<uint32_t>(code, offsets.code_flags) & kOptimized) || file.empty() ||
         file[0] == '<';
}

// Where its parts lie, and for fleeting code also what they say of names and lines.
uint64_t stamp_without_version(const char* code, const Offsets& offsets) {
  const char* file = load<const char*>(code, offsets.code_filename);
  const char* lines = load<const char*>(code, offsets.code_linetable);
  uint64_t hash = load<uintptr_t>(code, offsets.code_qualname) * 0xa0761d6478bd642fu +
                  reinterpret_cast<uintptr_t>(file) * 0xe7037ed1a0b428dbu +
                  reinterpret_cast<uintptr_t>(lines) * 0x8ebc6af09c88c6e3u +
                  load<uint32_t>(code, offsets.code_first_line) * uint64_t{0x589965cc75374cc3u};
  const std::string_view name = plain_text(file, offsets);
  if (!is_fleeting(code, name, offsets)) return hash;
  const auto size = load<size_t>(lines, offsets.bytes_size);
  return mix_ends(mix_ends(hash, lines + offsets.bytes_data, size), name.data(), name.size());
}

// From 3.12 on every code object of an interpreter has a number, until 2^32 have been made.
uint64_t stamp_of(const char* code, const Offsets& offsets) {
  const uint32_t version = offsets.code_version ? load<uint32_t>(code, offsets.code_version) : 0;
  if (!version) return stamp_without_version(code, offsets);
  return static_cast<uint64_t>(version) << 32 ^ load<uintptr_t>(code, offsets.code_filename);
}

const char* innermost(const char* thread, const Offsets& offsets) {
  const char* holder = load<const char*>(thread, offsets.thread_frame);
  if (!offsets.through_cframe || !holder) return holder;
  return load<const char*>(holder, offsets.cframe_frame);
}

const char* code_of(const char* frame, const Offsets& offsets) {
  return reinterpret_cast<const char*>(load<uintptr_t>(frame, offsets.frame_code) &
                                       offsets.code_mask);
}

// False for frames that run no Python code (yet): CPython hides them too.
bool position_of(const char* frame, const Offsets& offsets, Position* position) {
  const auto owner = load<uint8_t>(frame, offsets.frame_owner);
  if (owner >= kFirstShim) return false;
  const char* code = code_of(frame, offsets);
  const char* instruction = load<const char*>(frame, offsets.frame_instruction);
  const auto lasti = static_cast<int32_t>(instruction - (code + offsets.code_bytecode));
  const int32_t first = load<int32_t>(code, offsets.code_first_traceable) * 2;
  if (owner != kOwnedByGenerator && lasti < first) return false;
  position->code = code;
  position->stamp = stamp_of(code, offsets);
  position->lasti = lasti;
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

void walk(const char* thread, const Offsets& offsets, const Stack& last, Stack* stack) {
  uint32_t depth = 0, fresh = 0;
  const char* frame = innermost(thread, offsets);
  for (; frame && depth <= kMaxDepth; frame = load<const char*>(frame, offsets.frame_previous)) {
    Position* position = stack->positions + depth;
    if (!position_of(frame, offsets, position)) continue;
    if (!(*position == last.positions[depth++])) fresh = depth;
  }
  stack->cut = depth > kMaxDepth;
  stack->depth = stack->cut ? kMaxDepth : depth;
  const bool aligned = stack->depth == last.depth && stack->cut == last.cut;
  stack->fresh =
      aligned ? std::min(fresh, stack->depth) : stack->depth - common_root(*stack, last);
}

}  // namespace flame::python
