// A program that runs Python inside, after the library was started, and ends it again.
// Usage: python_embedded LIBPYTHON; prints the nodes of what it captured, one a line.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>

#include "../../../inject/flame.h"

namespace {

void* python;
uint32_t node;

template <class... Arguments>
void call(const char* name, Arguments... arguments) {
  reinterpret_cast<void (*)(Arguments...)>(dlsym(python, name))(arguments...);
}

void say(const char* when) { printf("%s %u\n", when, flame::python_stack()); }

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

extern "C" __attribute__((visibility("default"))) void capture() { node = flame::python_stack(); }

int main(int, char** arguments) {
  if (!flame::start()) return 2;
  say("before");
  python = dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL);
  if (!python) return 3;
  say("loaded");
  for (int times = 0; times < 2; times++) {
    run_until_found(kScript);
    say("after");
  }
  return 0;
}
