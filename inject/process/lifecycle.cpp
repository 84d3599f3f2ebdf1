// Starts and ends the recording: from the first entry point to the end of the process, through
// forks.
#include "process/lifecycle.h"

#include <pthread.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "dump/file.h"
#include "dump/names.h"
#include "dump/recording_state.h"
#include "dump/thread.h"
#include "dump/writer.h"
#include "flame.h"
#include "process/control_socket.h"
#include "process/flush_thread.h"
#include "process/helper_thread.h"
#include "process/process_info.h"
#include "system/caller_guards.h"
#include "system/settings.h"

namespace flame {

std::mutex lifecycle_lock;

namespace {

constexpr uint32_t kMostWork = 8;

template <class... Arguments>
struct WorkList {
  using Work = void (*)(Arguments...);
  std::atomic<uint32_t> size{0};
  std::atomic<Work> work[kMostWork] = {};

  void add(Work each) {
    uint32_t place = size.fetch_add(1);
    if (place < kMostWork) work[place].store(each);
  }

  void run(Arguments... arguments) {
    for (auto& each : work) {
      if (Work now_run = each.load()) now_run(arguments...);
    }
  }
};
WorkList<bool> flush_work;
WorkList<> fork_work;

std::atomic<uint32_t> generations{0};
std::atomic<bool> finishing{false};
std::atomic<bool> attached{false};
std::atomic<bool> cuda_missed{false};  // there was no dump when CUDA began, and no other chance
bool started;  // a dump was made: after its end there will be none
int forked_from;
int forking;
uint32_t state_before_fork;
__thread uint32_t forks_within;  // of signal handlers, while their thread was in the base

// With lifecycle_lock held. Recording is on before the first meta record, which is a record like
// others.
bool begin_dump() {
  if (!open_file()) return false;
  begin_chunks();
  forget_names();
  forget_counts();
  recording_state.store(kOn, std::memory_order_release);
  describe_process(forked_from);
  start_helper();
  return true;
}

bool begin_in_child() {
  CallerGuard caller;
  SignalsHeld signals;
  std::lock_guard<std::mutex> guard(lifecycle_lock);
  const bool is_idle = recording_state.load(std::memory_order_acquire) == kIdleChild;
  if (is_idle && !begin_dump()) recording_state.store(kOff);
  uint32_t state = recording_state.load(std::memory_order_acquire);
  return state == kOn || state == kOutOfRoom;
}

// The locks are held until after_fork: a handler that runs on this thread meanwhile stays outside.
void before_fork() {
  if (inside) {
    forks_within++;
    return;
  }
  inside = true;
  lifecycle_lock.lock();
  forking = getpid();
  state_before_fork = recording_state.load();
  names_lock.lock();
  chunks_lock.lock();
  file_lock.lock();
  threads_lock.lock();
  lock_helper();
}

void after_fork() {
  if (forks_within) {
    forks_within--;
    return;
  }
  unlock_helper();
  threads_lock.unlock();
  file_lock.unlock();
  chunks_lock.unlock();
  names_lock.unlock();
  lifecycle_lock.unlock();
  inside = false;
}

// A signal handler forked while its thread was in the base: there the child has to go on as if
// nothing had happened, without anything that it shares with the parent.
void leave_in_child() {
  recording_state.store(kOff);
  forget_helper();
  forget_control();
  if (header()) detach_file(header());
}

// The dump and the helper thread are the parent's. A new dump is made when there is something to
// record: most children never do, or become another program.
void forget_parent() {
  abandon_file();
  forget_threads();
  forget_helper();
  forget_control();
  uint32_t state = state_before_fork;
  recording_state.store(state == kOn || state == kOutOfRoom ? uint32_t(kIdleChild) : state);
  finishing.store(false);
  forked_from = forking;
}

void after_fork_in_child() {
  if (forks_within) {
    leave_in_child();
  } else {
    forget_parent();
  }
  generations.fetch_add(1);
  after_fork();
  fork_work.run();
}

// Once, whatever becomes of the dump.
bool prepare() {
  static const bool ready =
      !getauxval(AT_SECURE) &&  // else who sets its environment is not who it runs as
      prepare_threads() && prepare_names() &&
      pthread_atfork(before_fork, after_fork, after_fork_in_child) == 0;
  return ready;
}

// What was refused may be tried again: in another folder, or when there is room.
bool start_locked(const char* directory) {
  record_into(directory);
  if (!prepare()) return false;
  read_identity();
  generations.fetch_add(1);
  started = begin_dump();
  if (!started) return false;
  guard_file();
  if (cuda_missed) meta("cupti", "recording could not begin when CUDA did");
  atexit(stop);
  return true;
}

}  // namespace

bool start(const char* directory) {
  CallerGuard caller;
  {
    SignalsHeld signals;
    std::lock_guard<std::mutex> guard(lifecycle_lock);
    if (!started && !start_locked(directory)) return false;
  }
  start_python();
  return recording();
}

bool recording() {
  uint32_t state = recording_state.load(std::memory_order_acquire);
  if (state == kOn || state == kOutOfRoom) return true;
  return state == kIdleChild && begin_in_child();
}

bool began_late() { return attached.load(std::memory_order_relaxed); }

uint32_t generation() { return generations.load(std::memory_order_acquire); }

void run_flush_work(bool last) { flush_work.run(last); }

void finish(uint32_t header_flags) {
  if (finishing.exchange(true)) return;
  if (recording()) {
    run_flush_work(true);
    if (!flush_apart(header_flags & kStopped ? Flush::kDetach : Flush::kExit)) note_stuck_flush();
    write_counters();
    write_drops(true);
    close_chunks(header_flags);
  }
}

void stop() {
  CallerGuard caller;
  uint32_t idle = kIdleChild;
  if (recording_state.compare_exchange_strong(idle, kOver) || idle == kOff) return;
  if (!finish_by_helper() && !inside) finish(0);
}

void at_flush(void (*work)(bool last)) { flush_work.add(work); }

void at_fork_child(void (*work)()) { fork_work.add(work); }

}  // namespace flame

// Called by the CUDA driver while it initialises. The driver is always told that all is well: what
// goes wrong here is no reason for the program to go without CUDA.
extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  flame::Uncancelled uncancelled;
  if (flame::start())
    flame::start_cupti();
  else
    flame::cuda_missed = true;
  return 1;
}

// Called when the library is loaded into a process that runs already; `directory`: null for the
// usual one. 1: from now on it is recorded.
extern "C" __attribute__((visibility("default"))) int flame_attach(const char* directory) {
  flame::Uncancelled uncancelled;
  const bool late = !flame::recording();
  const bool named = directory && *directory;
  if (!flame::start(named ? directory : nullptr)) return 0;
  flame::start_cupti();
  if (!late) return 1;
  flame::attached.store(true, std::memory_order_relaxed);
  flame::note("recording began when flame was attached to the process: what it did before is not "
              "in here, nor are its NVTX ranges");
  return 1;
}
