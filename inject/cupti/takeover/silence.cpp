// Judges by two signs. All work is over by the driver's own account, and a flush brings nothing of
// it. Or more has been launched than the queues of a GPU and a buffer hold, and no other buffer was
// asked for. Neither comes of work that merely takes long.
#include "cupti/takeover/silence.h"

#include <algorithm>
#include <atomic>

#include "system/clock.h"

namespace flame {
namespace {

constexpr uint32_t kContexts = 32;
constexpr uint32_t kRounds = 50;  // flushes in a row: 5 s
constexpr uint64_t kMost = 1u << 16;  // launches: twice the 1,024 of each of 32 queues

// At any time over <= given <= begun, and none falls but `begun`, of what was in vain.
struct Work {
  std::atomic<uint32_t> context{0};
  std::atomic<uint64_t> begun{0}, given{0}, over{0};
};
Work works[kContexts + 1];  // the last: of contexts that found no place, it is never over

// How many had begun when CUPTI last gave records, and when it last called at all.
std::atomic<uint64_t> at_completed{0}, at_word{0}, last_word{0};
uint64_t missed = 0;  // launches that were over when a flush brought nothing of them
uint32_t rounds = 0;

Work& work_of(uint32_t context) {
  Work& work = works[context % kContexts];
  uint32_t known = work.context.load(std::memory_order_relaxed);
  if (known == context) return work;
  const bool mine = !known && (work.context.compare_exchange_strong(known, context) ||
                               known == context);
  return mine ? work : works[kContexts];
}

uint64_t all_begun() {
  uint64_t all = 0;
  for (const Work& work : works) all += work.begun.load();
  return all;
}

void hear() {
  at_word.store(all_begun());
  last_word.store(now());
}

// `begun` is read last: where it is no more than was over before, there was nothing in between.
void add(const Work& work, Launches* all) {
  const uint64_t over = work.over.load(), given = work.given.load(), begun = work.begun.load();
  all->begun += begun;
  all->given += given;
  all->over = all->over && begun == over;
}

}  // namespace

void work_begins(uint32_t context) { work_of(context).begun.fetch_add(1); }

void work_ends(uint32_t context, bool in_vain) {
  Work& work = work_of(context);
  in_vain ? work.begun.fetch_sub(1) : work.given.fetch_add(1);
}

uint64_t work_given(uint32_t context) { return work_of(context).given.load(); }

void work_is_over(uint32_t context, uint64_t given) {
  Work& work = work_of(context);
  if (&work == &works[kContexts]) return;
  uint64_t known = work.over.load();
  while (known < given && !work.over.compare_exchange_weak(known, given)) {
  }
}

void buffer_requested() { hear(); }

void buffer_completed() {
  at_completed.store(all_begun());
  hear();
}

Launches launches_so_far() {
  Launches all{0, 0, true};
  for (const Work& work : works) add(work, &all);
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
