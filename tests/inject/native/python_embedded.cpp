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

template <class Result, class... Arguments>
Result call(const char* name, Arguments... arguments) {
  return reinterpret_cast<Result (*)(Arguments...)>(dlsym(python, name))(arguments...);
}

void say(const char* when) { printf("%s %u\n", when, stack()); }

void* capture(void*, void*) {
  node = stack();
  return call<void*>("PyLong_FromLong", 0L);
}

// PyMethodDef of the stable ABI. No ctypes: CPython 3.12.1 dies when that is imported once more
// after Py_Finalize.
struct Method {
  const char* name = "capture";
  void* (*function)(void*, void*) = capture;
  int flags = 4;  // METH_NOARGS
  const char* doc = nullptr;
} method;

void define_capture() {
  auto* main = call<void*>("PyImport_AddModule", "__main__");
  auto* function = call<void*>("PyCFunction_NewEx", &method, nullptr, nullptr);
  call<int>("PyObject_SetAttrString", main, "capture", function);
}

// The helper thread of the library looks for Python again and again.
void run_until_found(const char* script) {
  call<void>("Py_Initialize");
  define_capture();
  for (int tries = 0; tries < 250 && !node; tries++) {
    usleep(20000);
    call<int>("PyRun_SimpleString", script);
  }
  printf("inside %u\n", node);
  say("outside");
  call<void>("Py_Finalize");
  node = 0;
}

constexpr char kScript[] = R"(
def embedded():
    capture()
embedded()
)";

}  // namespace

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
