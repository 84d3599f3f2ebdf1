// Bus errors: of a dump that is cut off, and the program's own, with handlers of its own.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include "scenes.h"

namespace {

void shorten_dumps() {
  for (auto& each : std::filesystem::directory_iterator(getenv("FLAME_DIR")))
    if (each.is_regular_file()) std::filesystem::resize_file(each.path(), 0);
}

// Somebody shortens the dump while it is written to.
int cut_off() {
  put_all(0, 1000);
  while (recording()) {  // the helper may grow the file again before a write finds the cut
    shorten_dumps();
    put_all(1, 1000);
    in_threads(4, [](uint32_t writer) { put_all(writer, 100000); });
  }
  return 0;
}

void note_bus_error(int) { _exit(42); }

// The program's own bus errors are still its own.
int own_bus_error() {
  signal(SIGBUS, note_bus_error);
  put_all(0, 10);
  raise(SIGBUS);
  return 1;
}

int usual_bus_error() {
  put_all(0, 10);
  pid_t child = fork();
  if (child == 0) raise(SIGBUS);
  int status;
  return waitpid(child, &status, 0) == child && WTERMSIG(status) == SIGBUS ? 0 : 1;
}

// As Python's faulthandler: says what happened, then leaves it to the handler before.
struct sigaction before_reporter;
std::atomic<int> reports;

void report(int number) {
  reports++;
  sigaction(number, &before_reporter, nullptr);
  raise(number);
}

void set_reporter(int flags) {
  struct sigaction action = {};
  action.sa_handler = report;
  action.sa_flags = flags;
  sigaction(SIGBUS, &action, &before_reporter);
}

// Until the helper thread has looked at everything again.
void wait_for_helper() {
  static std::atomic<int> flushes;
  static const bool counted = (at_flush([](bool) { flushes++; }), true);
  for (int seen = flushes; counted && flushes < seen + 2;) usleep(1000);
}

// The program enables a handler of its own when recording has begun.
int cut_off_with_handler() {
  put_all(0, 1000);
  set_reporter(SA_NODEFER);
  wait_for_helper();
  cut_off();
  return reports;
}

// No helper thread gets to look: a thread that takes room in the file does.
int cut_off_while_growing() {
  put_all(0, 1000);
  set_reporter(SA_NODEFER);
  for (uint64_t number = 0; number < 3000; number++) put_launch(0, number);
  cut_off();
  return reports;
}

void touch_lost_page() {
  char path[4096];
  snprintf(path, sizeof path, "%s/own.txt", getenv("FLAME_DIR"));
  const int fd = ::open(path, O_RDWR | O_CREAT, 0600);
  auto* page = static_cast<volatile char*>(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0));
  (void)*page;
}

// What is not ours goes to every handler once, in the order in which they were set, and then ends
// the program as it would without us.
int handlers_of_the_program(int flags) {
  put_all(0, 10);
  static auto* const counted = static_cast<std::atomic<int>*>(
      mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    put_all(0, 10);
    set_reporter(flags);
    static struct sigaction below;
    wait_for_helper();
    struct sigaction above = {};
    above.sa_flags = SA_SIGINFO | flags;
    above.sa_sigaction = [](int number, siginfo_t* info, void* context) {
      *counted += 1;
      if (below.sa_flags & SA_SIGINFO) return below.sa_sigaction(number, info, context);
      below.sa_handler(number);
    };
    sigaction(SIGBUS, &above, &below);
    wait_for_helper();
    touch_lost_page();
    _exit(1);
  }
  int status;
  if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) return 1;
  return WTERMSIG(status) == SIGBUS && *counted == 1 ? 0 : 2;
}

int handlers_in_a_row() { return handlers_of_the_program(SA_NODEFER); }
int handlers_that_defer() { return handlers_of_the_program(0); }

// The program sets and resets handlers all the time, and in the end a bus error is its own.
int changing_handlers() {
  put_all(0, 10);
  for (int round = 0; round < 20; round++) {
    signal(SIGBUS, round % 2 ? note_bus_error : SIG_DFL);
    wait_for_helper();
  }
  raise(SIGBUS);
  return 1;
}

// No memory for the program, no room for its dump.
void forbid_growth() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),  // the number of the system call
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 2, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 2, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSPC),
  };
  sock_fprog all = {sizeof program / sizeof *program, program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) exit(4);
  if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &all) != 0) exit(4);
}

// Nothing can be put in the place of the dump: the program ends, and does not fault for ever. Were
// the dump to grow again while the fault is handled, there would be no second one.
int cut_off_without_memory() {
  put_all(0, 1000);
  forbid_growth();
  alarm(20);
  for (;;) {
    shorten_dumps();
    put_all(1, 1000);
  }
}

// A limit on the memory of the program is not one on what takes the place of the dump.
int cut_off_with_little_memory() {
  put_all(0, 1000);
  const rlimit none = {0, 0};
  if (setrlimit(RLIMIT_DATA, &none) != 0) return 1;
  while (recording()) {
    shorten_dumps();
    put_all(1, 1000);
  }
  return 0;
}

}  // namespace

const Scenes bus_error_scenes = {
    {"cut_off", cut_off},
    {"own_bus_error", own_bus_error},
    {"usual_bus_error", usual_bus_error},
    {"cut_off_with_handler", cut_off_with_handler},
    {"cut_off_while_growing", cut_off_while_growing},
    {"handlers_in_a_row", handlers_in_a_row},
    {"handlers_that_defer", handlers_that_defer},
    {"changing_handlers", changing_handlers},
    {"cut_off_without_memory", cut_off_without_memory},
    {"cut_off_with_little_memory", cut_off_with_little_memory},
};
