// A program that runs Python inside, after the library was started, and ends it again.
// Usage: python_embedded PROBE LIBPYTHON; prints the nodes of what it captured, one a line.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>

namespace {

void* python;
uint32_t (*stack)();
uint32_t node;

template <class... Arguments>
void call(const char* name, Arguments... arguments) {
  reinterpret_cast<void (*)(Arguments...)>(dlsym(python, name))(arguments...);
}

void say(const char* when) { printf("%s %u\n", when, stack()); }

// The helper thread of the library looks for Python again and again.
void run_until_found(const char* script) {
  call("Py_Initialize");
  for (int tries = 0; tries < 250 && !node; tries++) {
    usleep(20000);
    call("PyRun_SimpleString", script);
  }
  printf("inside %u\n", node);
  say("outside");
  call("Py_Finalize");
  node = 0;
}

constexpr char kScript[] = R"(
import ctypes
capture = ctypes.PyDLL(None).capture
def embedded():
    capture()
embedded()
)";

}  // namespace

extern "C" __attribute__((visibility("default"))) void capture() { node = stack(); }

int main(int, char** arguments) {
  void* probe = dlopen(arguments[1], RTLD_NOW);
  if (!probe || !reinterpret_cast<int (*)()>(dlsym(probe, "probe_start"))()) return 2;
  stack = reinterpret_cast<uint32_t (*)()>(dlsym(probe, "probe_stack"));
  say("before");
  python = dlopen(arguments[2], RTLD_NOW | RTLD_GLOBAL);
  if (!python) return 3;
  say("loaded");
  for (int times = 0; times < 2; times++) {
    run_until_found(kScript);
    say("after");
  }
  return 0;
}
