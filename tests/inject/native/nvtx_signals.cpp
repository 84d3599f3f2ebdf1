// A signal handler that annotates in the middle of the annotations of the thread that it interrupts,
// and in the middle of a fork, when the library has all its locks.
// Prints how many ranges and marks there were.
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>

namespace {

std::atomic<long> said{0}, handled{0};

void annotate(const char* name) {
  nvtxRangePushA(name);
  const nvtxRangeId_t started = nvtxRangeStartA(name);
  nvtxMarkA(name);
  nvtxRangeEnd(started);
  nvtxRangePop();
  said += 3;
}

void on_alarm(int) {
  const int before = errno;
  annotate("of the handler, and long enough to need memory of its own");
  handled++;
  errno = before;
}

// What is registered before the library does comes after it.
bool forking;
void raise_in_fork() {
  if (forking) raise(SIGALRM);
}

int fork_once() {
  forking = true;
  const pid_t child = fork();
  forking = false;
  if (child == 0) _exit(0);
  int status;
  return waitpid(child, &status, 0) == child ? status : 1;
}

}  // namespace

int main() {
  pthread_atfork(raise_in_fork, nullptr, nullptr);
  nvtxMarkA("begin");
  said++;
  struct sigaction action = {};
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often = {{0, 100}, {0, 100}}, never = {};
  setitimer(ITIMER_REAL, &often, nullptr);
  char name[64];
  for (int i = 0; i < 300000 && handled < 2000; i++) {
    std::snprintf(name, sizeof name, "number %d, and long enough to need memory of its own", i);
    annotate(name);
  }
  setitimer(ITIMER_REAL, &never, nullptr);
  const int failed = fork_once();
  std::printf("%ld\n", said.load());
  return failed;
}
