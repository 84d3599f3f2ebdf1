// Keeps what belongs to the calling thread. The objects of ended threads are used again with their
// half full chunks: many short threads cost no more file than one.
#include "dump/thread.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "flame.h"
#include "system/caller_guards.h"

namespace flame {

__thread Thread* this_thread;
__thread bool inside;
std::mutex threads_lock;

namespace {

pthread_key_t key;
Thread* free_threads;
Thread* all_threads;  // so that none is lost when a fork leaves its owner behind

__thread uint32_t own_id;
__thread uint32_t ends;  // how often the destructor ran: late calls bring the object back
__thread Local* unused_locals[kSlots];
constexpr uint32_t kNamedBySystem = 1;  // scope of a name
constexpr uint32_t kMaxEnds = 3;  // below PTHREAD_DESTRUCTOR_ITERATIONS, to leave nothing behind

Thread* take_free() {
  std::lock_guard<std::mutex> guard(threads_lock);
  Thread* result = free_threads;
  if (result) free_threads = result->next_free;
  return result;
}

Thread* make() {
  Thread* result = new (std::nothrow) Thread();
  if (!result) return nullptr;
  std::lock_guard<std::mutex> guard(threads_lock);
  result->next = all_threads;
  all_threads = result;
  return result;
}

void give_free(Thread* thread) {
  std::lock_guard<std::mutex> guard(threads_lock);
  thread->next_free = free_threads;
  free_threads = thread;
}

// A handler of the program would find what is half gone.
void end_thread(void* object) {
  const SignalsHeld signals;
  Thread* me = static_cast<Thread*>(object);
  for (Local*& each : me->locals) {
    Local* ended = each;
    delete ended;  // may still write records
    each = nullptr;
  }
  set_open(0);
  Inside guard;
  this_thread = nullptr;
  ends++;
  give_free(me);
}

Thread* begin_thread() {
  if (ends >= kMaxEnds) return nullptr;
  CallerGuard caller;
  Thread* me = take_free();
  if (!me) me = make();
  if (!me) return nullptr;
  if (pthread_setspecific(key, me) != 0) {
    give_free(me);
    return nullptr;
  }
  return this_thread = me;
}

}  // namespace

Thread* thread() { return this_thread ? this_thread : begin_thread(); }

bool prepare_threads() { return pthread_key_create(&key, end_thread) == 0; }

uint32_t thread_id() {
  if (!own_id) own_id = uint32_t(syscall(SYS_gettid));
  return own_id;
}

Local*& local(Slot slot) {
  Thread* me = this_thread;
  if (!me && !inside) {
    Inside guard;
    me = begin_thread();
  }
  if (!me) return unused_locals[slot];
  // There was no memory for the object of the thread, and now there is.
  if (!me->locals[slot] && unused_locals[slot])
    std::swap(me->locals[slot], unused_locals[slot]);
  return me->locals[slot];
}

// A thread without a name of its own carries that of the process.
void name_thread() {
  CallerGuard caller;
  char own[16] = "", process[16] = "";
  if (prctl(PR_GET_NAME, own) != 0) return;
  int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  ssize_t size = read(fd, process, sizeof process - 1);
  close(fd);
  process[std::max<ssize_t>(size, 0)] = 0;
  process[strcspn(process, "\n")] = 0;
  if (strcmp(own, process) != 0) name(kThread, kNamedBySystem, thread_id(), own);
}

void for_each_thread(const std::function<void(Thread& thread)>& work) {
  std::lock_guard<std::mutex> guard(threads_lock);
  for (Thread* each = all_threads; each; each = each->next) work(*each);
}

void forget_threads() {
  own_id = 0;
  for (Thread* each = free_threads; each; each = each->next_free) each->writer = ChunkWriter();
  if (this_thread) this_thread->writer = ChunkWriter();
}

}  // namespace flame
