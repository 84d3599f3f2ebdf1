// Runs flush work that calls foreign code on a thread of its own. All by the helper thread, or by
// whoever ends the dump where there is none.
#pragma once
#include <cstdint>

#include "flame.h"

namespace flame {

// false: it is not done yet; then it goes on, and the next of kind kNow is left out until it is.
bool flush_apart(Flush why);
void hurry_flush_thread();  // the recording ends: what do_apart does is not waited for any longer
bool flush_thread_runs();
bool flush_thread_is_stuck();   // the last flush has been given up
uint64_t flush_thread_work();   // grows with what it does, ns
void note_stuck_flush();        // says in what it is stuck
void lock_flush_thread();
void unlock_flush_thread();
void forget_flush_thread();     // in a forked child

}  // namespace flame
