// Loads the libraries that it is given and uses NVTX through all of them: first of all threads at
// once, so that all copies are initialised at the same time, then nested on one thread.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

namespace {

struct Copy {
  int (*push)(const char*, const char*);
  int (*pop)(const char*);
};

Copy load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) puts(dlerror());
  return {reinterpret_cast<int (*)(const char*, const char*)>(dlsym(library, "push")),
          reinterpret_cast<int (*)(const char*)>(dlsym(library, "pop"))};
}

void use_at_once(const std::vector<Copy>& copies) {
  std::atomic<size_t> waiting{copies.size()};
  std::vector<std::thread> threads;
  for (const Copy& copy : copies)
    threads.emplace_back([&, copy] {
      --waiting;
      while (waiting) std::this_thread::yield();
      copy.push("shared", "at once");
      copy.pop("shared");
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int count, char** paths) {
  std::vector<Copy> copies;
  for (int i = 1; i < count; ++i) copies.push_back(load(paths[i]));
  use_at_once(copies);
  for (const Copy& copy : copies) printf("%d\n", copy.push("shared", "nested"));
  for (const Copy& copy : copies) printf("%d\n", copy.pop("shared"));
}
