// Keeps what belongs to the calling thread of the program as it is, while the library works on it.
#pragma once
#include <pthread.h>

#include <cerrno>
#include <csignal>

namespace flame {

// A thread that the program cancels ends where it opens or writes a file: not in one of ours, with
// locks held and callers that let no exception out.
class Uncancelled {
 public:
  Uncancelled() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() { pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  int before_;
};

// No handler of the program runs on this thread where it would wait for a lock that the thread has,
// or would fork a child with half a dump. Faults are not held back: one that is blocked is the end.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    sigfillset(&all);
    for (int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

// Around what uses files: the program does not expect that a push or a launch changes errno, or that
// a thread ends in it.
struct CallerGuard {
  const int value = errno;
  const Uncancelled uncancelled;
  ~CallerGuard() { errno = value; }
};

}  // namespace flame
