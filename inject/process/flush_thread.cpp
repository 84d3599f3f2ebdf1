// Keeps CUPTI from holding up anything but itself: it may take long, or never come back, and neither
// the helper thread nor the end of the program waits for that without end.
#include "process/flush_thread.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <mutex>

#include "process/patience.h"
#include "process/quiet_thread.h"
#include "system/clock.h"
#include "system/settings.h"

namespace flame {
namespace {

std::atomic<void (*)(Flush)> work{nullptr};
std::atomic<bool (*)()> is_wanted{nullptr};
std::atomic<const char*> current_call{""};
std::atomic<uint64_t> progress{0};

std::mutex lock;
pthread_cond_t changed;  // any of the following, which `lock` guards
bool running, stuck;
pthread_t thread;
Flush asked_for;
void (*asked_work)(uint64_t);  // null: to flush
uint64_t argument;             // of that
uint64_t asked, done;
std::atomic<bool> hurried{false};

void* run(void*) {
  is_quiet_thread = true;
  std::unique_lock<std::mutex> guard(lock);
  for (bool last = false; !last;) {
    while (done == asked) pthread_cond_wait(&changed, lock.native_handle());
    const uint64_t mine = asked;
    const Flush why = asked_for;
    const auto other = asked_work;
    const uint64_t given = argument;
    guard.unlock();
    if (other)
      other(given);
    else
      work.load()(why);
    guard.lock();
    done = mine;
    last = !other && why != Flush::kNow;
    pthread_cond_broadcast(&changed);
  }
  return nullptr;
}

// What follows is done with `lock` held.

bool start_thread() {
  if (running) return true;
  prepare_condition(&changed);
  asked = done = 0;
  stuck = false;
  hurried.store(false, std::memory_order_relaxed);
  running = start_quiet_thread(&thread, "flame-flush", run);
  return running;
}

void wait_until(uint64_t until) {
  const timespec time = {time_t(until / 1000000000u), long(until % 1000000000u)};
  pthread_cond_timedwait(&changed, lock.native_handle(), &time);
}

uint64_t work_done() {
  clockid_t clock;
  const bool known = running && pthread_getcpuclockid(thread, &clock) == 0;
  return (known ? read_clock(clock) : 0) + progress.load(std::memory_order_relaxed) * kLeastWork;
}

bool wait_for(uint64_t mine, uint64_t timeout, uint64_t idle_timeout) {
  const uint64_t until = now() + timeout;
  uint64_t worked = work_done(), active = now();
  while (done < mine && now() < std::min(until, active + idle_timeout)) {
    wait_until(now() + idle_timeout / 20);
    if (work_done() - worked < kLeastWork) continue;
    worked = work_done();
    active = now();
  }
  return done >= mine;
}

bool ask(Flush why) {
  asked_for = why;
  asked_work = nullptr;
  const uint64_t mine = ++asked;
  pthread_cond_broadcast(&changed);
  if (why == Flush::kNow) return wait_for(mine, kFlushTimeout, kFlushTimeout);
  return wait_for(mine, kLastFlushTimeout, kLastFlushIdleTimeout);
}

// Not longer than the recording goes on.
bool wait_for_work(uint64_t mine) {
  const uint64_t until = now() + kWorkIdleTimeout;
  while (done < mine && now() < until && !hurried.load(std::memory_order_relaxed))
    wait_for(mine, kWorkIdleTimeout / 40, kWorkIdleTimeout / 40);
  return done >= mine;
}

bool ask_for_last(std::unique_lock<std::mutex>& guard, Flush why) {
  stuck = !ask(why);
  if (stuck) return false;
  running = false;
  guard.unlock();
  pthread_join(thread, nullptr);
  return true;
}

}  // namespace

void at_flush_apart(void (*each)(Flush why), bool (*wanted)()) {
  work.store(each);
  is_wanted.store(wanted);
}

void calling(const char* function) { current_call.store(function, std::memory_order_relaxed); }

void made_progress() { progress.fetch_add(1, std::memory_order_relaxed); }

bool flush_apart(Flush why) {
  const auto wanted = is_wanted.load();
  if (!wanted || !wanted()) return true;
  std::unique_lock<std::mutex> guard(lock);
  if (!start_thread()) {
    guard.unlock();
    log("no thread to flush on");
    work.load()(why);
    return true;
  }
  if (why != Flush::kNow) return ask_for_last(guard, why);
  return done == asked && ask(why);
}

Apart do_apart(void (*wanted_work)(uint64_t), uint64_t given) {
  std::unique_lock<std::mutex> guard(lock);
  if (!start_thread()) {
    guard.unlock();
    wanted_work(given);
    return Apart::kDone;
  }
  if (!wait_for_work(asked)) return Apart::kBusy;
  asked_for = Flush::kNow;
  asked_work = wanted_work;
  argument = given;
  const uint64_t mine = ++asked;
  pthread_cond_broadcast(&changed);
  return wait_for_work(mine) ? Apart::kDone : Apart::kNotBack;
}

void hurry_flush_thread() { hurried.store(true, std::memory_order_relaxed); }

bool flush_thread_runs() {
  std::lock_guard<std::mutex> guard(lock);
  return running;
}

bool flush_thread_is_stuck() {
  std::lock_guard<std::mutex> guard(lock);
  return stuck;
}

uint64_t flush_thread_work() {
  std::lock_guard<std::mutex> guard(lock);
  return work_done();
}

void note_stuck_flush() {
  char text[160];
  snprintf(text, sizeof text,
           "CUPTI did not come back from %s when the recording ended: what it had not handed over by "
           "then is missing",
           current_call.load(std::memory_order_relaxed));
  note(text);
}

void lock_flush_thread() { lock.lock(); }

void unlock_flush_thread() { lock.unlock(); }

void forget_flush_thread() { running = stuck = false; }

}  // namespace flame
