// Checks the walk, before the first one without the GIL.
#include "python/self_check.h"

#include <memory>
#include <new>

#include "python/code_text.h"
#include "python/walk.h"

namespace flame::python {
namespace {

struct Stacks {
  Stack none, walked;
  ApiFrame expected[kMaxDepth];
  char room[kTextRoom];
};

bool same_name(const Api& api, Object* code, const char* attribute, uint16_t offset,
               const Offsets& offsets, char* room) {
  const Attribute expected(api, code, attribute);
  const auto* raw = reinterpret_cast<const char*>(code);
  return !expected.readable() ||
         expected.text().substr(0, kTextRoom - 4) ==
             utf8(load<const char*>(raw, offset), offsets, room).substr(0, kTextRoom - 4);
}

// The code object is compared before anything is read from where it should be.
bool same(const Api& api, const Position& walked, const ApiFrame& expected, const Offsets& offsets,
          char* room) {
  const auto* code = reinterpret_cast<const char*>(expected.code);
  if (walked.code != code || walked.lasti != expected.lasti) return false;
  const auto line = static_cast<int>(line_of(code, walked.lasti, offsets));
  if (line != (expected.line < 0 ? 0 : expected.line)) return false;
  return same_name(api, expected.code, "co_qualname", offsets.code_qualname, offsets, room) &&
         same_name(api, expected.code, "co_filename", offsets.code_filename, offsets, room);
}

}  // namespace

Verdict check_walk(const Api& api, ThreadState* own, const Offsets& offsets) {
  const std::unique_ptr<Stacks> stacks(new (std::nothrow) Stacks);
  if (!stacks) return kNothingToCompare;
  const Quiet quiet(api);
  bool cut;
  const uint32_t expected = walk_by_api(api, own, stacks->expected, &cut);
  Stack& walked = stacks->walked;
  walk(reinterpret_cast<const char*>(own), offsets, stacks->none, &walked);
  if (!expected && !walked.depth) return kNothingToCompare;
  if (expected != walked.depth || cut != walked.cut) return kDifferent;
  for (uint32_t i = 0; i < expected; i++)
    if (!same(api, walked.positions[i], stacks->expected[i], offsets, stacks->room))
      return kDifferent;
  return kEqual;
}

}  // namespace flame::python
