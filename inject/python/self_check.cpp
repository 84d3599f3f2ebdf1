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
  Checked memory;
};

// Up to where a name that was converted may have been cut.
std::string_view begin_of(std::string_view text) { return text.substr(0, kTextRoom - 4); }

template <class Memory>
class Check {
 public:
  Check(const Api& api, const Offsets& offsets, const Memory& memory, Stacks* stacks)
      : api_(api), offsets_(offsets), memory_(memory), stacks_(*stacks) {}

  Verdict run(ThreadState* own) {
    bool cut;
    const uint32_t expected = walk_by_api(api_, own, stacks_.expected, &cut);
    Stack& walked = stacks_.walked;
    walk(memory_, reinterpret_cast<const char*>(own), offsets_, stacks_.none, &walked);
    if (memory_.failed()) return kDifferent;
    if (!expected && !walked.depth) return kNothingToCompare;
    if (expected != walked.depth || cut != walked.cut) return kDifferent;
    for (uint32_t i = 0; i < expected; i++)
      if (!same(walked.positions[i], stacks_.expected[i])) return kDifferent;
    return memory_.failed() ? kDifferent : kEqual;
  }

 private:
  bool same_name(Object* code, const char* attribute, uint16_t offset) {
    const Attribute expected(api_, code, attribute);
    const auto* text =
        memory_.template load<const char*>(reinterpret_cast<const char*>(code), offset);
    return !expected.readable() ||
           begin_of(expected.text()) == begin_of(utf8(memory_, text, offsets_, stacks_.room));
  }

  // The code object is compared before anything is read from where it should be.
  bool same(const Position& walked, const ApiFrame& expected) {
    const auto* code = reinterpret_cast<const char*>(expected.code);
    if (walked.code != code || walked.lasti != expected.lasti) return false;
    const auto line = static_cast<int>(line_of(memory_, code, walked.lasti, offsets_));
    if (line != (expected.line < 0 ? 0 : expected.line)) return false;
    return same_name(expected.code, "co_qualname", offsets_.code_qualname) &&
           same_name(expected.code, "co_filename", offsets_.code_filename);
  }

  const Api& api_;
  const Offsets& offsets_;
  const Memory& memory_;
  Stacks& stacks_;
};

}  // namespace

Verdict check_walk(const Api& api, ThreadState* own, const Offsets& offsets) {
  const std::unique_ptr<Stacks> stacks(new (std::nothrow) Stacks);
  if (!stacks) return kNothingToCompare;
  const Quiet quiet(api);
  if (Checked::works()) return Check(api, offsets, stacks->memory, stacks.get()).run(own);
  return Check(api, offsets, Trusted(), stacks.get()).run(own);
}

}  // namespace flame::python
