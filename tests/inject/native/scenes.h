// What the scenes of writer_test write: numbered records, so that a reader sees whether any is
// missing, doubled or torn.
#pragma once
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "system/clock.h"
#include "flame.h"

using namespace flame;

using Scenes = std::map<std::string, int (*)()>;
extern const Scenes life_scenes, bus_error_scenes, fork_scenes;
extern const Scenes scenes_before_start;
extern void (*in_fallocate)();  // while the library makes room for a dump

inline uint32_t text_of(const char* format, uint64_t number) {
  char value[64];
  int size = snprintf(value, sizeof value, format, number);
  return text({value, size_t(size)});
}

// The fields of one record say the same in different ways: a torn one contradicts itself.
inline void put_launch(uint32_t writer, uint64_t number) {
  put(Launch{number, ~number, uint32_t(number), writer, text_of("sum %lu", number % 100), 0, 0, 0,
             0, 0});
}

inline void put_range(uint32_t writer, uint64_t number) {
  Range range = {};
  range.start = number;
  range.end = ~number;
  range.tid = writer;
  range.name = range_name(text_of("range %lu", number % 1000), 0, 0);
  put(range);
}

inline void put_kernel(uint32_t writer, uint64_t number) {
  Kernel kernel = {};
  kernel.start = number;
  kernel.end = ~number;
  kernel.tid = writer;
  kernel.python = node(node(0, frame("main", "app.py", 1), kPythonNode),
                       frame("step", "app.py", uint32_t(number % 50)), kPythonNode);
  put(kernel);
}

inline void put_all(uint32_t writer, uint64_t count) {
  for (uint64_t number = 0; number < count; number++) {
    put_launch(writer, number);
    put_range(writer, number);
    put_kernel(writer, number);
  }
}

inline void in_threads(uint32_t count, const std::function<void(uint32_t)>& work) {
  std::vector<std::thread> threads;
  for (uint32_t each = 0; each < count; each++) threads.emplace_back(work, each);
  for (auto& each : threads) each.join();
}

inline void wait_for(pid_t child) {
  int status;
  if (waitpid(child, &status, 0) != child || status) exit(3);
}
