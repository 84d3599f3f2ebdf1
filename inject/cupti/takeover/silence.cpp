// Judges by two signs. All work is over by the driver's own account, and a flush brings nothing of
// it. Or more has been launched than the queues of a GPU and a buffer hold, and no other buffer was
// asked for. Neither comes of work that merely takes long.
#include "cupti/takeover/silence.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "system/clock.h"
#include "system/own_count.h"

namespace flame {
namespace {

constexpr uint32_t kContexts = 32;
constexpr uint32_t kRounds = 50;  // flushes in a row: 5 s
constexpr uint64_t kMost = 1u << 16;  // launches: twice the 1,024 of each of 32 queues

// So much of the work of a context is over, by its place: its number by kContexts, the last for
// contexts that found none, of which it is never known.
struct Context {
  std::atomic<uint32_t> number{0};
  std::atomic<uint64_t> over{0};
};
constexpr uint32_t kPlaces = kContexts + 1;
Context contexts[kPlaces];

uint32_t place_of(uint32_t context) {
  Context& place = contexts[context % kContexts];
  uint32_t known = place.number.load(std::memory_order_relaxed);
  if (known == context) return context % kContexts;
  const bool mine = !known && (place.number.compare_exchange_strong(known, context) ||
                               known == context);
  return mine ? context % kContexts : kContexts;
}

}  // namespace

// Two locked instructions with every launch would cost more than all else that is counted of it.
// Added up over threads, of each place over <= given <= begun holds at any time, where they are read
// in this order; none falls but `begun`, of what was in vain.
struct alignas(64) Tally {
  std::atomic<uint64_t> all_begun{0};
  std::atomic<uint64_t> begun[kPlaces] = {}, given[kPlaces] = {};
  std::atomic<bool> taken{true};
  Tally* next = nullptr;
};

namespace {

Tally shared;  // of threads for which there was no memory, and the last of all
std::atomic<Tally*> tallies{&shared};

void add(Tally* tally, std::atomic<uint64_t>& count, uint64_t by) {
  if (tally == &shared)
    count.fetch_add(by);
  else
    add_to_own(count, by);
}

template <class Each>
void for_each_tally(Each each) {
  for (Tally* one = tallies.load(std::memory_order_acquire); one; one = one->next) each(*one);
}

uint64_t sum(std::atomic<uint64_t> (Tally::*counts)[kPlaces], uint32_t place) {
  uint64_t all = 0;
  for_each_tally([&](Tally& one) { all += (one.*counts)[place].load(std::memory_order_acquire); });
  return all;
}

// How many had begun when CUPTI last gave records, and when it last called at all.
std::atomic<uint64_t> at_completed{0}, at_word{0}, last_word{0};
uint64_t missed = 0;  // launches that were over when a flush brought nothing of them
uint32_t rounds = 0;

uint64_t all_begun() {
  uint64_t all = 0;
  for_each_tally([&](Tally& one) { all += one.all_begun.load(std::memory_order_acquire); });
  return all;
}

void hear() {
  at_word.store(all_begun());
  last_word.store(now());
}

// Context 0 is one that CUPTI did not tell.
bool is_unused(uint32_t place) {
  return place && place < kContexts && !contexts[place].number.load(std::memory_order_acquire);
}

// `begun` is read last: where it is no more than was over before, there was nothing in between.
void add(uint32_t place, Launches* all) {
  if (is_unused(place)) return;
  const uint64_t over = contexts[place].over.load(), given = sum(&Tally::given, place);
  const uint64_t begun = sum(&Tally::begun, place);
  all->begun += begun;
  all->given += given;
  all->over = all->over && begun == over;
}

Tally* take_free() {
  for (Tally* one = tallies.load(std::memory_order_acquire); one != &shared; one = one->next)
    if (!one->taken.load(std::memory_order_relaxed) && !one->taken.exchange(true)) return one;
  return nullptr;
}

}  // namespace

// Without a lock: a forked child may be left with any.
Tally* take_tally() {
  if (Tally* known = take_free()) return known;
  auto* made = new (std::nothrow) Tally;
  if (!made) return &shared;
  made->next = tallies.load(std::memory_order_relaxed);
  while (!tallies.compare_exchange_weak(made->next, made)) {
  }
  return made;
}

void give_back(Tally* tally) {
  if (tally != &shared) tally->taken.store(false, std::memory_order_release);
}

void work_begins(Tally* tally, uint32_t context) {
  add(tally, tally->begun[place_of(context)], 1);
  add(tally, tally->all_begun, 1);
}

void work_ends(Tally* tally, uint32_t context, bool in_vain) {
  const uint32_t place = place_of(context);
  if (!in_vain) return add(tally, tally->given[place], 1);
  add(tally, tally->begun[place], ~uint64_t{0});
  add(tally, tally->all_begun, ~uint64_t{0});
}

uint64_t work_given(uint32_t context) { return sum(&Tally::given, place_of(context)); }

void work_is_over(uint32_t context, uint64_t given) {
  const uint32_t place = place_of(context);
  if (place == kContexts) return;
  std::atomic<uint64_t>& over = contexts[place].over;
  uint64_t known = over.load();
  while (known < given && !over.compare_exchange_weak(known, given)) {
  }
}

void buffer_requested() { hear(); }

void buffer_completed() {
  at_completed.store(all_begun());
  hear();
}

Launches launches_so_far() {
  Launches all{0, 0, true};
  for (uint32_t place = 0; place < kPlaces; place++) add(place, &all);
  return all;
}

// What comes while launches go on may lack the last of them: only those are missed that have begun
// after it.
bool records_are_missing(const Launches& before, bool last) {
  const uint64_t completed = at_completed.load(), word = at_word.load();
  if (last) return before.given > completed;
  if (before.over && before.begun > completed) missed = before.begun;
  const bool in_vain = missed > std::max(completed, word);
  const bool too_many = before.begun > word && before.begun - word >= kMost;
  rounds = in_vain || too_many ? rounds + 1 : 0;
  return rounds == kRounds;
}

Silence silence() {
  const uint64_t word = at_word.load();
  return {last_word.load(), std::max(all_begun(), word) - word, word == 0};
}

}  // namespace flame
