// Interrupts the library, for ctypes: a signal handler of the program comes at a chosen point in the
// middle of what one thread alone uses, and uses it as well.
#include <dlfcn.h>
#include <pthread.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "cupti/kernel_names.h"
#include "flame.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))
#define HIDDEN extern "C" __attribute__((visibility("hidden")))

namespace {

enum Point { kNowhere, kCopying, kLocking };
thread_local Point point = kNowhere;  // the next time that the thread comes there
void (*handle)();

void handler(int) { handle(); }

void interrupt_at(Point here) {
  if (point != here) return;
  point = kNowhere;
  raise(SIGUSR1);
}

void interrupt_by(void (*work)(), Point at) {
  struct sigaction action = {};
  action.sa_handler = handler;
  sigaction(SIGUSR1, &action, nullptr);
  handle = work;
  point = at;
}

using Lock = int (*)(pthread_mutex_t*);
const Lock real_lock = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));

flame::KernelNames* kernel_names;
std::vector<std::string> other_names;

uint32_t stack_of_handler;

struct Ended : flame::Local {
  ~Ended() override { raise(SIGUSR1); }
};
const flame::Local* made;
bool found_ended;

}  // namespace

// What the library calls by these names.
HIDDEN char* strdup(const char* text) {
  interrupt_at(kCopying);
  const size_t size = strlen(text) + 1;
  return static_cast<char*>(memcpy(malloc(size), text, size));
}

HIDDEN int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  interrupt_at(kLocking);
  return real_lock(mutex);
}

// Names of kernels while a handler names others, so many that each entry of the table is among them;
// whether those that were interrupted have the ids that they have otherwise.
EXPORTED int interrupted_names() {
  flame::start();
  flame::KernelNames names;
  kernel_names = &names;
  for (int i = 0; i < 512; i++) other_names.push_back("kernel " + std::to_string(i));
  for (const auto& name : other_names) names.text_of(name.c_str());
  interrupt_by([] { for (const auto& name : other_names) kernel_names->text_of(name.c_str()); },
               kCopying);
  bool same = true;
  for (const auto& name : other_names) {
    same = same && names.text_of(name.c_str()) == flame::text(name);
    point = kCopying;
  }
  point = kNowhere;
  return same;
}

// The stack of the caller, of which something is new, and in `within` that of a handler meanwhile.
EXPORTED uint32_t interrupted_stack(uint32_t* within) {
  interrupt_by([] { stack_of_handler = flame::python_stack(); }, kLocking);
  const uint32_t stack = flame::python_stack();
  const bool was_interrupted = point == kNowhere;
  point = kNowhere;
  *within = stack_of_handler;
  return was_interrupted ? stack : 0;
}

// Whether a handler, while a thread ends, finds what that had and what is being deleted.
EXPORTED int finds_ended() {
  flame::start();
  interrupt_by([] { found_ended |= flame::local(flame::kCuptiSlot) == made; }, kNowhere);
  std::thread([] { made = flame::local(flame::kCuptiSlot) = new Ended; }).join();
  return found_ended;
}
