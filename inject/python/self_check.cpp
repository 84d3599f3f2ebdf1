// The self-check before the first walk without the GIL.
#include "python/self_check.h"

#include <memory>
#include <new>

#include "python/code_text.h"
#include "python/walk.h"

namespace flame::python {
namespace {

struct Stacks {
  Stack none, walked;
  ApiFrame told[kMaxDepth];
  char room[kTextRoom];
};

bool same_name(const Api& api, Object* code, const char* attribute, uint16_t offset,
               const Offsets& offsets, char* room) {
  const Attribute told(api, code, attribute);
  const auto* raw = reinterpret_cast<const char*>(code);
  return !told.known() ||
         told.text().substr(0, kTextRoom - 4) ==
             utf8(load<const char*>(raw, offset), offsets, room).substr(0, kTextRoom - 4);
}

// The code object is compared before anything is read from where it should be.
bool same(const Api& api, const Position& walked, const ApiFrame& told, const Offsets& offsets,
          char* room) {
  const auto* code = reinterpret_cast<const char*>(told.code);
  if (walked.code != code || walked.lasti != told.lasti) return false;
  const auto line = static_cast<int>(line_of(code, walked.lasti, offsets));
  if (line != (told.line < 0 ? 0 : told.line)) return false;
  return same_name(api, told.code, "co_qualname", offsets.code_qualname, offsets, room) &&
         same_name(api, told.code, "co_filename", offsets.code_filename, offsets, room);
}

}  // namespace

Verdict check_walk(const Api& api, ThreadState* own, const Offsets& offsets) {
  const std::unique_ptr<Stacks> stacks(new (std::nothrow) Stacks);
  if (!stacks) return kNothingToCompare;
  const Quiet quiet(api);
  bool cut;
  const uint32_t told = walk_by_api(api, own, stacks->told, &cut);
  Stack& walked = stacks->walked;
  walk(reinterpret_cast<const char*>(own), offsets, stacks->none, &walked);
  if (!told && !walked.depth) return kNothingToCompare;
  if (told != walked.depth || cut != walked.cut) return kDifferent;
  for (uint32_t i = 0; i < told; i++)
    if (!same(api, walked.positions[i], stacks->told[i], offsets, stacks->room)) return kDifferent;
  return kEqual;
}

}  // namespace flame::python
