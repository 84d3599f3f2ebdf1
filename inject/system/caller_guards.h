// Keeps what belongs to the calling thread of the program as it is, while the library works on it.
#pragma once
#include <pthread.h>

#include <cerrno>

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

// Around what uses files: the program does not expect that a push or a launch changes errno, or that
// a thread ends in it.
struct CallerGuard {
  const int value = errno;
  const Uncancelled uncancelled;
  ~CallerGuard() { errno = value; }
};

}  // namespace flame
