// What other tools did is only seen by what does not come any more. Ending what they do is not ours:
// records are taken back when the kind of kernels is off, which nobody but they can have done.
#include "cupti/takeover/takeover.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "flame.h"
#include "system/clock.h"

namespace flame {
namespace {

// All of it by one thread at a time.
bool watching = false;
CUpti_ActivityKind kernel_kind;
bool (*register_buffers_again)();
bool can_take_back = false;  // this CUPTI says which kinds are on
uint64_t taken_at = 0;       // 0: they are ours
uint64_t clock_distance = 0;

enum Answer { kOff, kOn, kUnknown };

Answer kernels_are() {
  constexpr uint32_t kKinds = 256;
  CUpti_ActivityKind kinds[kKinds];
  uint32_t room = kKinds, count = 0;
  auto ask = cupti()->cuptiActivityGetEnabledKinds;
  if (!ask || ask(nullptr, kinds, &room, &count) || count > kKinds) return kUnknown;
  return std::find(kinds, kinds + count, kernel_kind) == kinds + count ? kOff : kOn;
}

// How far CUPTI's clock is ahead of ours, modulo 2^64.
bool look_at_distance(uint64_t* distance) {
  uint64_t theirs = 0;
  if (cupti()->cuptiGetTimestamp(&theirs)) return false;
  *distance = theirs - now();
  return true;
}

// A tool may have brought a clock of its own, of which CUPTI cannot be rid: it may not count ns.
bool clock_is_as_before() {
  constexpr uint64_t kSecond = 1'000'000'000;
  uint64_t distance = 0;
  return look_at_distance(&distance) && distance - clock_distance + kSecond < 2 * kSecond;
}

struct TimeOfDay {
  char text[16];

  explicit TimeOfDay(uint64_t time) {
    const time_t seconds = time_t((time + uint64_t(look_at_clocks())) / 1'000'000'000);
    tm parts{};
    localtime_r(&seconds, &parts);
    strftime(text, sizeof text, "%H:%M:%S", &parts);
  }
};

const char* what_next(const Silence& now, bool last) {
  if (now.from_the_start) return ", or CUPTI does not work with this GPU";
  if (last) return "";
  if (can_take_back) return ". They are taken back once it has ended";
  return ". They are not taken back: this CUPTI does not tell when that tool has ended";
}

void tell_of_taking(bool last) {
  const Silence now = silence();
  char text[400];
  snprintf(text, sizeof text,
           "CUPTI has reported no GPU work since %s, though there were %llu launches: another tool "
           "in the process (torch.profiler?) seems to have taken over its records%s",
           TimeOfDay(now.since).text, static_cast<unsigned long long>(now.launches),
           what_next(now, last));
  note(text);
}

void tell_of_return() {
  char text[80];
  snprintf(text, sizeof text, "CUPTI reports GPU work again since %s", TimeOfDay(now()).text);
  note(text);
}

void take_back() {
  if (!can_take_back || kernels_are() != kOff) return;
  can_take_back = clock_is_as_before();
  if (!can_take_back)
    return note("CUPTI's records are not taken back: the other tool has changed its clock");
  if (!register_buffers_again()) return;
  taken_at = 0;
  tell_of_return();
}

}  // namespace

void watch_records(CUpti_ActivityKind kernels, bool (*register_again)()) {
  watching = true;
  kernel_kind = kernels;
  register_buffers_again = register_again;
  can_take_back = look_at_distance(&clock_distance) && kernels_are() == kOn;
  buffer_completed();
}

bool records_are_taken() { return taken_at; }

void look_for_records(const Launches& before, bool last) {
  if (!watching) return;
  if (!taken_at) {
    if (!records_are_missing(before, last)) return;
    tell_of_taking(last);
    taken_at = now();
  } else if (silence().since > taken_at) {
    taken_at = 0;
    tell_of_return();
  } else if (!last) {
    take_back();
  }
}

}  // namespace flame
