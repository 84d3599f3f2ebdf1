// Counts how recording itself fares: each thread for itself, added up at the end.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "dump/thread.h"
#include "flame.h"
#include "system/own_count.h"

namespace flame {
namespace {

constexpr const char* kNames[] = {
#define FLAME_COUNTER(name) #name,
    FLAME_COUNTERS(FLAME_COUNTER)
#undef FLAME_COUNTER
};

Counts of_others;  // of threads that have none of their own: they share it

bool is_maximum(uint32_t counter) {
  return !strncmp(kNames[counter], "most_", 5) || !strncmp(kNames[counter], "longest_", 8);
}

void raise(std::atomic<uint64_t>& most, uint64_t value) {
  uint64_t seen = most.load(std::memory_order_relaxed);
  while (seen < value && !most.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
}

void add(const Counts& counts, uint64_t* totals) {
  for (uint32_t each = 0; each < kCounters; each++) {
    const uint64_t value = counts[each].load(std::memory_order_relaxed);
    totals[each] = is_maximum(each) ? std::max(totals[each], value) : totals[each] + value;
  }
}

}  // namespace

// A thread alone writes to its own: no locked instruction.
void count(Counter counter, uint64_t by) {
  if (!this_thread) {
    of_others[counter].fetch_add(by, std::memory_order_relaxed);
    return;
  }
  add_to_own(this_thread->counts[counter], by);
}

void count_most(Counter counter, uint64_t value) {
  raise(this_thread ? this_thread->counts[counter] : of_others[counter], value);
}

void write_counters() {
  uint64_t totals[kCounters] = {};
  add(of_others, totals);
  for_each_thread([&](const Thread& thread) { add(thread.counts, totals); });
  if (std::all_of(totals, totals + kCounters, [](uint64_t total) { return total == 0; })) return;
  char json[kCounters * 48];
  int size = 0;
  for (uint32_t each = 0; each < kCounters; each++)
    size += snprintf(json + size, sizeof json - size_t(size), "%c\"%s\":%llu", each ? ',' : '{',
                     kNames[each], static_cast<unsigned long long>(totals[each]));
  json[size] = '}';
  meta("counters", std::string_view(json, size_t(size) + 1));
}

void forget_counts() {
  for (auto& count : of_others) count.store(0, std::memory_order_relaxed);
  for_each_thread([](Thread& thread) {
    for (auto& count : thread.counts) count.store(0, std::memory_order_relaxed);
  });
}

}  // namespace flame
