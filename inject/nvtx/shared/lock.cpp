// Locks the tables of the NVTX parts, also over forks, and finds calls within calls.
#include "nvtx/shared/lock.h"

#include <pthread.h>

#include <mutex>

namespace flame::nvtx {
namespace {

std::mutex lock;
__thread bool in_call;
__thread bool mine;  // set before it is locked: a signal handler may fork at any point
__thread uint32_t forks_within;  // of handlers, while their thread has the lock
__thread bool was_in_call;       // before the fork

// A handler that forks while its own thread has the lock leaves it to that thread, which goes on in
// the child as it does in the parent. One that runs during the fork finds its thread in a call.
void before_fork() {
  if (mine) {
    forks_within++;
    return;
  }
  mine = true;
  was_in_call = in_call;
  in_call = true;
  lock.lock();
}

void after_fork() {
  if (forks_within) {
    forks_within--;
    return;
  }
  lock.unlock();
  in_call = was_in_call;
  mine = false;
}

}  // namespace

TableLock::TableLock() {
  mine = true;
  lock.lock();
}

TableLock::~TableLock() {
  lock.unlock();
  mine = false;
}

Call::Call() : alone(!in_call) { in_call = true; }

Call::~Call() {
  if (alone) in_call = false;
}

bool lock_over_forks() { return pthread_atfork(before_fork, after_fork, after_fork) == 0; }

}  // namespace flame::nvtx
