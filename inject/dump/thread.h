// Holds what each thread needs to write records, and keeps signal handlers out meanwhile.
#pragma once
#include <atomic>
#include <functional>
#include <mutex>

#include "dump/writer.h"
#include "flame.h"

namespace flame {

using Counts = std::atomic<uint64_t>[kCounters];

struct alignas(64) Thread {
  ChunkWriter writer;
  Counts counts;  // its own, and of those that had it before
  Local* locals[kSlots];
  Thread* next_free;
  Thread* next;  // of all
};
// __thread and not thread_local: no check at every use whether it has been initialised.
extern __thread Thread* this_thread;
Thread* thread();  // made at first; null: no memory, or the thread is over; only while `inside`
bool prepare_threads();

// A signal handler that interrupts a writer on its thread must not enter it again: locks are held,
// records half written.
extern __thread bool inside;
struct Inside {
  const bool entered = !inside;
  Inside() { inside = true; }
  ~Inside() {
    if (entered) inside = false;
  }
};
extern std::mutex threads_lock;
void for_each_thread(const std::function<void(Thread& thread)>& work);
void forget_counts();   // for a new dump
void forget_threads();  // in a forked child: only the caller is left

}  // namespace flame
