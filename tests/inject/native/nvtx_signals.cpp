// A signal handler that annotates in the middle of the annotations of the thread that it interrupts.
// Prints how many ranges and marks there were.
#include <nvtx3/nvToolsExt.h>
#include <sys/time.h>

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

}  // namespace

int main() {
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
  std::printf("%ld\n", said.load());
  return 0;
}
