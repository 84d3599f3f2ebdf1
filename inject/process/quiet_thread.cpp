// Starts threads that the program does not notice: its signals are handled by its own.
#include "process/quiet_thread.h"

#include <csignal>
#include <ctime>

namespace flame {

__thread bool is_quiet_thread;

namespace {

// CUPTI's callbacks run on it; a page that is not touched costs nothing.
constexpr size_t kStackSize = 1u << 20;

bool create_thread(pthread_t* thread, void* (*run)(void*)) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackSize);
  bool made = pthread_create(thread, &attributes, run, nullptr) == 0;
  pthread_attr_destroy(&attributes);
  // Thread-local variables are on the stack too: of some programs more than fits.
  return made || pthread_create(thread, nullptr, run, nullptr) == 0;
}

}  // namespace

// Not so what a dump that was cut off raises here: a fault whose signal is blocked ends the process.
bool start_quiet_thread(pthread_t* thread, const char* name, void* (*run)(void*)) {
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, SIGBUS);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool made = create_thread(thread, run);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (made) pthread_setname_np(*thread, name);
  return made;
}

void prepare_condition(pthread_cond_t* condition) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(condition, &attributes);
  pthread_condattr_destroy(&attributes);
}

}  // namespace flame
