// Starts the library's own threads.
#pragma once
#include <pthread.h>

namespace flame {

// With a small stack, and no signals of the program. false: there can be none.
bool start_quiet_thread(pthread_t* thread, const char* name, void* (*run)(void*));
extern __thread bool is_quiet_thread;
void prepare_condition(pthread_cond_t* condition);  // of CLOCK_MONOTONIC

}  // namespace flame
