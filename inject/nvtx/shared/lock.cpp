// Locks the tables of the NVTX parts, also over forks, and finds calls within calls.
#include "nvtx/shared/lock.h"

#include <pthread.h>

#include <mutex>

namespace flame::nvtx {
namespace {

std::mutex lock;
__thread bool in_call;
__thread bool mine;  // set before it is locked: a signal handler may fork at any point

// A handler that forks while its own thread has the lock leaves it to that thread, which goes on in
// the child as it does in the parent.
void before_fork() {
  if (!mine) lock.lock();
}

void after_fork() {
  if (!mine) lock.unlock();
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
