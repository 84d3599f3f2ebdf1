// Forks, ends and signals: what happens to the recording when something happens to the process.
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>

#include "scenes.h"

namespace {

// Children of one thread while 31 others write: one that records, one that does not, one that
// becomes another program, one whose own child records.
int forks() {
  put_all(0, 10);
  in_threads(4, [](uint32_t each) { put_all(32 + each, 10); });  // what they leave is used again
  std::atomic<bool> over{false};
  std::vector<std::thread> writers;
  for (uint32_t writer = 1; writer < 32; writer++) {
    writers.emplace_back([&, writer] {
      for (uint64_t number = 0; !over; number++) {
        put_launch(writer, number);
        if (number % 100 == 0) usleep(500);
      }
    });
  }
  for (int round = 0; round < 8; round++) {
    pid_t child = fork();
    if (child == 0) {
      if (round % 4 == 0) put_all(0, 1000);
      if (round % 4 == 1) _exit(0);
      if (round % 4 == 2) execl("/bin/true", "true", nullptr);
      if (round % 4 == 3) {
        pid_t grandchild = fork();
        if (grandchild == 0) in_threads(4, [](uint32_t writer) { put_all(writer, 500); });
        if (grandchild == 0) exit(0);
        wait_for(grandchild);
      }
      exit(0);
    }
    wait_for(child);
  }
  over = true;
  for (auto& each : writers) each.join();
  return 0;
}

int generations() {
  uint32_t before = generation();
  static uint32_t seen;
  at_fork_child([] { seen = generation(); });
  pid_t child = fork();
  if (child == 0) {
    put_all(0, 1);
    _exit(seen > before && generation() == seen ? 0 : 1);
  }
  wait_for(child);
  return generation() == before ? 0 : 1;
}

// exit() in a thread while others, which nobody joins, go on writing.
int exit_in_thread() {
  for (uint32_t writer = 0; writer < 8; writer++) {
    std::thread([writer] {
      for (uint64_t number = 0;; number++) put_launch(writer, number);
    }).detach();
  }
  std::thread([] {
    usleep(50000);
    exit(0);
  }).join();
  return 1;
}

int exit_twice() {
  atexit([] {
    put_all(0, 10);
    stop();
    put_all(1, 10);
  });
  atexit([] { stop(); });
  put_all(2, 10);
  return 0;
}

int quick_exit_() {
  put_all(0, 100);
  _exit(0);
}

int duration() {
  for (uint64_t number = 0; number < 3000000; number++) {
    put_launch(0, number);
    if (number % 100 == 0) usleep(100);
    if (number > 100 && !recording()) {
      put_all(1, 10);
      return 0;
    }
  }
  return 1;
}

// A program ends with its last thread, which need not be the first one.
int end_by_threads() {
  put_all(0, 10);
  std::thread([] {
    usleep(50000);
    put_all(1, 10);
  }).detach();
  pthread_exit(nullptr);
}

std::atomic<int> flushes, last_flushes;

int flush_work() {
  at_flush([](bool last) {
    put_launch(last ? 2 : 1, uint64_t(last ? last_flushes++ : flushes++));
  });
  while (flushes < 3) usleep(1000);
  return 0;
}

int stop_in_flush_work() {
  put_all(0, 10);
  at_flush([](bool last) {
    if (last) put_launch(1, 0);
    stop();
  });
  while (recording()) usleep(1000);
  put_all(0, 10);
  return 0;
}

// A range that closes after the end has no record: it has to stay among the open ones.
int open_at_stop() {
  uint32_t capacity;
  open_ranges(&capacity)[0] = OpenRange{1, thread_id(), 1, 0, 0};
  set_open(1);
  stop();
  set_open(0);
  return open_ranges(&capacity) ? 1 : 0;
}

struct Late {
  ~Late() { put_launch(1, 0); }
};

pthread_key_t late_key;

// Whatever runs after the base has let go of the thread may still record.
void late_destructor(void* rounds) {
  auto left = reinterpret_cast<uintptr_t>(rounds);
  put_launch(2, 0 + (4 - left));
  if (left > 1) pthread_setspecific(late_key, reinterpret_cast<void*>(left - 1));
}

int late() {
  std::thread([] {
    put_launch(0, 0);
    pthread_key_create(&late_key, late_destructor);
    pthread_setspecific(late_key, reinterpret_cast<void*>(uintptr_t(4)));
    thread_local Late at_end;
    (void)&at_end;
  }).join();
  return 0;
}

struct Closing : Local {
  uint32_t writer;
  explicit Closing(uint32_t number) : writer(number) {}
  ~Closing() override { put_launch(writer, 0); }
};

int locals() {
  in_threads(16, [](uint32_t writer) { local(kNvtxSlot) = new Closing(writer); });
  return 0;
}

// The program's descriptors: those of others are closed, the numbers are used for its own file.
int closed_descriptors() {
  put_all(0, 10);
  for (int fd = 3; fd < 64; fd++) close(fd);
  char path[4096];
  snprintf(path, sizeof path, "%s/own.txt", getenv("FLAME_DIR"));
  for (int copy = 0; copy < 8; copy++) {
    int fd = ::open(path, O_RDWR | O_CREAT, 0600);
    if (copy == 0 && write(fd, "mine", 4) != 4) return 1;
  }
  put_all(1, 100000);
  return 0;
}

std::atomic<uint64_t> handled;

void on_signal(int) { put_launch(1, handled++); }

// Of the kind that programs check after calls of their own.
int errno_is_kept() {
  errno = 0;
  put_all(0, 100000);
  std::thread([] {
    errno = 0;
    put_all(1, 1);
    if (errno) exit(1);
  }).join();
  return errno;
}

int signals() {
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigaction(SIGALRM, &action, nullptr);
  itimerval every = {{0, 50}, {0, 50}};
  setitimer(ITIMER_REAL, &every, nullptr);
  for (uint64_t number = 0; number < 300000; number++) put_launch(0, number);
  itimerval never = {};
  setitimer(ITIMER_REAL, &never, nullptr);
  printf("%lu\n", 300000 + handled.load());
  return 0;
}

void fork_on_signal(int) {
  pid_t child = fork();
  if (child == 0) alarm(10);  // a child that hangs fails the test
  if (child > 0) wait_for(child);
  if (child == 0) put_launch(7, 0);
  if (child == 0) _exit(0);
}

int fork_in_handler() {
  struct sigaction action = {};
  action.sa_handler = fork_on_signal;
  sigaction(SIGUSR1, &action, nullptr);
  std::atomic<bool> over{false};
  pthread_t writer = pthread_self();
  std::thread sender([&] {
    for (int sent = 0; sent < 40; sent++) {
      usleep(2000);
      pthread_kill(writer, SIGUSR1);
    }
    over = true;
  });
  uint64_t number = 0;
  while (!over || !number) put_launch(0, number++);
  sender.join();
  printf("%lu\n", number);
  return 0;
}

// Of such a child nobody is told: it must leave the dump of its parent alone.
int bare_clone() {
  put_all(0, 10);
  uint32_t capacity;
  open_ranges(&capacity)[0] = OpenRange{1, thread_id(), 1, 0, 0};
  set_open(1);
  auto child = pid_t(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (child == 0) {
    put_all(1, 1000);
    set_open(0);
    exit(recording() ? 1 : 0);
  }
  wait_for(child);
  put_all(0, 5);
  return 0;
}

// Daemons close them, and may write to what they think is closed.
int standard_descriptors() {
  put_all(0, 10);
  for (int fd = 0; fd < 1024; fd++) close(fd);
  put_all(1, 100000);
  for (int fd = 0; fd < 3; fd++) {
    if (write(fd, "mine", 4) >= 0) return 1;
  }
  return 0;
}

// The dump of a forked child is made at its first record: by a thread that is to end there.
int cancelled() {
  put_all(0, 10);
  pid_t child = fork();
  if (child != 0) return wait_for(child), 0;
  std::thread thread([] {
    pthread_cancel(pthread_self());
    put_launch(0, 0);
    pthread_testcancel();
    put_launch(0, 1);
  });
  thread.join();
  exit(0);
}

std::mutex never_free;

// As when exit() is called in a handler: the last flush waits for the thread that waits for it.
int stuck_flush() {
  put_all(0, 10);
  at_flush([](bool last) {
    if (last) never_free.lock();
  });
  never_free.lock();
  stop();
  exit(0);
}

}  // namespace

const Scenes life_scenes = {
    {"forks", forks},
    {"generations", generations},
    {"exit_in_thread", exit_in_thread},
    {"exit_twice", exit_twice},
    {"quick_exit", quick_exit_},
    {"duration", duration}, {"end_by_threads", end_by_threads},
    {"flush_work", flush_work},
    {"stop_in_flush_work", stop_in_flush_work},
    {"open_at_stop", open_at_stop},
    {"late", late},
    {"locals", locals},
    {"closed_descriptors", closed_descriptors},
    {"errno_is_kept", errno_is_kept},
    {"signals", signals},
    {"fork_in_handler", fork_in_handler},
    {"bare_clone", bare_clone},
    {"standard_descriptors", standard_descriptors},
    {"cancelled", cancelled},
    {"stuck_flush", stuck_flush},
};
