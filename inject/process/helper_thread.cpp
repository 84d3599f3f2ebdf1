// Runs the thread that does what need not be done at once: it flushes, makes room in the file,
// gives memory back, and ends the dump.
#include "process/helper_thread.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "dump/dump.h"
#include "dump/file.h"
#include "dump/thread.h"
#include "dump/writer.h"
#include "flame.h"
#include "process/control_socket.h"
#include "process/flush_thread.h"
#include "process/lifecycle.h"
#include "process/patience.h"
#include "process/quiet_thread.h"
#include "system/clock.h"
#include "system/descriptor.h"
#include "system/settings.h"

namespace flame {
namespace {

std::mutex lock;
pthread_cond_t changed;  // any of the following, which `lock` guards
bool running, make_room_now, finish_now, finished, given_up;
pthread_t helper_thread;
Descriptor wakeup[2];  // also under `lock`: a byte sent into the second ends the wait at the first
uint64_t deadline = UINT64_MAX;

void close_wakeup() {
  for (Descriptor& end : wakeup) end.close();
}

timespec time_of(uint64_t time) { return {time_t(time / 1000000000u), long(time % 1000000000u)}; }

// With `lock` held; false: `until` is over.
bool wait_until(uint64_t until) {
  const timespec time = time_of(until);
  return pthread_cond_timedwait(&changed, lock.native_handle(), &time) == 0;
}

// With `lock` held. Of sockets and not of a pipe: should the number belong to a file of the program
// by now, nothing is read from that or written to it.
bool has_wakeup() {
  if (wakeup[0].ours() && wakeup[1].ours()) return true;
  close_wakeup();
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return false;
  const bool first = wakeup[0].take(ends[0]), second = wakeup[1].take(ends[1]);
  return first && second;
}

// With `lock` held: to be done after something has changed.
void wake() {
  pthread_cond_broadcast(&changed);
  if (wakeup[1].ours()) send(wakeup[1].fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// false: not even that can be done (RLIMIT_NOFILE is lower than the number of them).
bool wait_for_any(uint64_t until) {
  pollfd watched[1 + kMostClients + 1] = {{wakeup[0].fd, POLLIN, 0}};
  const uint32_t count = 1 + watch_control(watched + 1);
  const uint64_t begin = now(), end = std::min(until, control_deadline());
  const timespec time = time_of(end > begin ? end - begin : 0);
  const int result = ppoll(watched, count, &time, nullptr);
  char any[64];
  if (result > 0 && watched[0].revents && wakeup[0].ours())
    recv(wakeup[0].fd, any, sizeof any, MSG_DONTWAIT);
  return result >= 0;
}

// Until somebody wakes the helper, a client says something, or `until`; or it only seems so.
void sleep_until(uint64_t until) {
  std::unique_lock<std::mutex> guard(lock);
  if (finish_now || make_room_now || control_is_due()) return;
  if (control_is_open() && has_wakeup()) {
    guard.unlock();
    if (wait_for_any(until)) return;
    guard.lock();
  }
  if (!finish_now && !make_room_now) wait_until(until);
}

// Whether the dump is to be ended; what it is to be woken for from now on is new.
bool take_requests() {
  std::lock_guard<std::mutex> guard(lock);
  make_room_now = false;
  return finish_now;
}

void make_room() {
  uint64_t tail = chunks_tail();
  guard_file();
  grow_ahead(tail);
  touch_ahead(tail);
  give_back_memory(tail);
}

char state_of_first_thread() {
  char line[512];
  int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t size = read(fd, line, sizeof line - 1);
  close(fd);
  line[std::max<ssize_t>(size, 0)] = 0;
  const char* name_end = strrchr(line, ')');
  return name_end && name_end[1] ? name_end[2] : 0;
}

// Whether the program has ended all its threads and waits for ours. The first one stays as a zombie
// until then, and the folder's links are two more than there are threads.
bool is_only_thread() {
  struct stat tasks;
  return stat("/proc/self/task", &tasks) == 0 &&
         tasks.st_nlink == 4u + flush_thread_runs() && state_of_first_thread() == 'Z';
}

struct End {
  uint32_t flags;  // that the dump ends with
  bool is_of_program;  // it has no thread of its own any more
};

End work_to_the_end() {
  const uint64_t interval = settings().flush_ms * kMillisecond;
  for (uint64_t next = now() + interval;;) {
    make_room();
    sleep_until(std::min(next, deadline));
    if (take_requests()) return {};
    if (now() >= deadline || serve_control()) return {kStopped, false};
    if (now() < next) continue;
    flush_now();
    if (is_only_thread()) return {0, true};
    next = now() + interval;
  }
}

void work() {
  open_control();
  const End end = work_to_the_end();
  finish(end.flags);
  close_control(end.flags == kStopped);
  if (end.is_of_program && flush_thread_is_stuck()) exit(0);  // as its last thread would
}

void* run(void*) {
  is_quiet_thread = true;
  work();
  std::lock_guard<std::mutex> guard(lock);
  finished = true;
  pthread_cond_broadcast(&changed);
  return nullptr;
}

// It is held for moments only, unless by the very thread that a signal handler interrupted.
bool lock_soon(std::unique_lock<std::mutex>& guard) {
  for (uint64_t until = now() + kLockTimeout; now() < until; usleep(1000)) {
    if (guard.try_lock()) return true;
  }
  return false;
}

uint64_t work_done() {
  clockid_t clock;
  const bool known = pthread_getcpuclockid(helper_thread, &clock) == 0;
  return (known ? read_clock(clock) : 0) + flush_thread_work();
}

// With `lock` held.
bool wait_for_helper() {
  uint64_t until = now() + kFinishTimeout, worked = work_done();
  while (!finished && now() < until) {
    if (wait_until(now() + kIdleTimeout)) continue;
    uint64_t still_worked = work_done();
    if (still_worked - worked < kLeastWork) break;
    worked = still_worked;
  }
  return finished;
}

}  // namespace

bool flush_now() {
  run_flush_work(false);
  const bool whole = flush_apart(Flush::kNow);
  write_drops(false);
  update_end_time();
  return whole;
}

bool start_helper() {
  if (settings().duration_ms && deadline == UINT64_MAX) {
    deadline = now() + settings().duration_ms * kMillisecond;
  }
  std::lock_guard<std::mutex> guard(lock);
  prepare_condition(&changed);
  make_room_now = finish_now = finished = given_up = false;
  running = start_quiet_thread(&helper_thread, "flame", run);
  if (!running) log("no helper thread: nothing is flushed before the end");
  return running;
}

void wake_helper() {
  std::lock_guard<std::mutex> guard(lock);
  if (!running || make_room_now) return;
  make_room_now = true;
  wake();
}

bool finish_by_helper() {
  Inside guard_against_handlers;
  std::unique_lock<std::mutex> guard(lock, std::defer_lock);
  if (!lock_soon(guard)) return true;
  if (!running) return false;
  finish_now = true;
  hurry_flush_thread();
  if (given_up) return true;
  wake();
  if (is_quiet_thread) return true;
  given_up = !wait_for_helper();
  if (given_up) return true;
  running = false;
  guard.unlock();
  pthread_join(helper_thread, nullptr);
  return true;
}

void lock_helper() {
  lock.lock();
  lock_flush_thread();
}

void unlock_helper() {
  unlock_flush_thread();
  lock.unlock();
}

void forget_helper() {
  forget_flush_thread();
  running = false;
  close_wakeup();
}

}  // namespace flame
