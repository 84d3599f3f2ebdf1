// Uses the base of the library as its other parts do: `writer_test SCENE`.
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "scenes.h"

// The other parts, which are not there.
namespace flame {
bool start_cupti() { return false; }
void start_python() {}
bool reads_python() { return false; }
bool reads_cupti() { return false; }
SamplingAnswer switch_sampling(std::string_view) { return {}; }
}  // namespace flame

void (*in_fallocate)();

// In the place of the C library's: some file systems cannot.
extern "C" int fallocate(int fd, int mode, off_t offset, off_t size) {
  if (in_fallocate) in_fallocate();
  if (!getenv("NO_FALLOCATE")) return int(syscall(SYS_fallocate, fd, mode, offset, size));
  errno = EOPNOTSUPP;
  return -1;
}

namespace {

int threads() {
  in_threads(32, [](uint32_t writer) { put_all(writer, 5000); });
  return 0;
}

// 10,000 short threads of at most four at a time.
int churn() {
  for (uint32_t round = 0; round < 2500; round++) {
    in_threads(4, [&](uint32_t each) {
      put_all(round * 4 + each, 2);
      uint32_t capacity;
      OpenRange* open = open_ranges(&capacity);
      open[0] = OpenRange{1, thread_id(), 1, 0, 0};
      set_open(1);
    });
  }
  return 0;
}

// More than there is room for; how many were tried is for the test to compare.
int flood() {
  for (uint64_t number = 0; number < 200000; number++) put_launch(0, number);
  printf("200000\n");
  return 0;
}

int flood_in_threads() {
  in_threads(8, [](uint32_t writer) {
    for (uint64_t number = 0; number < 50000; number++) put_launch(writer, number);
  });
  printf("400000\n");
  return 0;
}

int limited_flood() {
  rlimit limit = {4u << 20, 4u << 20};
  setrlimit(RLIMIT_FSIZE, &limit);
  return flood();
}

int small_address_space() {
  rlimit limit = {1u << 30, 1u << 30};
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
  return start() ? flood() : 1;
}

// Says what has been written up to then, until it is killed.
int endless() {
  std::atomic<uint64_t> done[8] = {};
  for (uint32_t writer = 0; writer < 8; writer++) {
    std::thread([&, writer] {
      for (uint64_t number = 0;; number++) {
        put_launch(writer, number);
        done[writer].store(number + 1, std::memory_order_release);
        if (number % 1000 == 0) usleep(500);
      }
    }).detach();
  }
  for (;;) {
    char line[256];
    int size = 0;
    for (auto& each : done) {
      size += snprintf(line + size, sizeof line - size_t(size), "%lu ", each.load());
    }
    line[size++] = '\n';
    if (write(STDOUT_FILENO, line, size_t(size)) != size) return 1;
    usleep(1000);
  }
}

int open() {
  uint32_t capacity;
  OpenRange* ranges = open_ranges(&capacity);
  for (uint32_t depth = 0; depth < 5; depth++) {
    ranges[depth] = OpenRange{depth, thread_id(), depth + 1, 0, 0};
    set_open(depth + 1);
  }
  set_open(3);
  std::thread([] {
    uint32_t room;
    open_ranges(&room)[0] = OpenRange{9, thread_id(), 9, 0, 0};
    set_open(1);
  }).join();
  return capacity > 2000 && open_ranges(&capacity) == ranges ? 0 : 1;
}

int texts() {
  std::string longest(kMaxText - 1, 'x');
  uint32_t cut = text(longest + "\xc3\xa9" + "more");
  bool same = cut == text(longest) && text("a") == text("a") && text("a") != text("b");
  bool none = text("") == 0;
  note("once");
  note("once");
  name(kThread, 0, 7, "worker");
  name(kThread, 0, 7, "worker");
  name(kThread, 0, 7, "renamed");
  meta("key", "value");
  for (uint32_t size = 1; size <= 100; size++) text(longest.substr(0, size));
  text(longest + "y");
  return same && none ? 0 : 1;
}

int same_names_in_threads() {
  std::atomic<uint32_t> ids[200] = {};
  std::atomic<int> wrong{0};
  in_threads(16, [&](uint32_t) {
    for (uint64_t number = 0; number < 20000; number++) {
      uint32_t id = text_of("shared %lu", number % 200), expected = 0;
      if (!ids[number % 200].compare_exchange_strong(expected, id)) wrong += expected != id;
    }
  });
  return wrong;
}

// Of the process, in KiB.
long memory() {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%*d %ld", &pages) != 1) exit(4);
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

// With texts that never come again. Now and then the helper thread gets a chance: how often it runs
// on a busy machine is not what is tested.
int a_million() {
  long most = 0;
  static std::atomic<int> flushes;
  at_flush([](bool) { flushes++; });
  for (uint64_t number = 0; number < 1000000; number++) {
    put_kernel(0, number);
    put(Launch{number, ~number, 0, 0, text_of("aten::mul, op_id = %lu", number), 0, 0, 0, 0, 0});
    if (number % 100000) continue;
    for (int seen = flushes; flushes < seen + 3;) usleep(1000);
    most = std::max(most, memory());
  }
  printf("%ld\n", most);
  return 0;
}

int drops() {
  static std::atomic<int> flushes;
  at_flush([](bool) { flushes++; });
  dropped(kCuptiDropped, kKernel, 5);
  for (int seen = flushes; flushes < seen + 2;) usleep(1000);  // written after the first of them
  dropped(kCuptiDropped, kKernel, 2);
  dropped(kCuptiDropped, kMemop, 1);
  return 0;
}

int nothing() { return 0; }

template <class Work>
void time_of(const char* what, uint32_t count, Work work) {
  uint64_t best = UINT64_MAX, start = now();
  for (uint32_t round = 0; round < count / 50; round++) {
    uint64_t before = now();
    for (int each = 0; each < 50; each++) work(round * 50 + uint32_t(each));
    best = std::min(best, now() - before);
  }
  printf("%-12s %6.1f ns, at best %6.1f\n", what, double(now() - start) / count, double(best) / 50);
}

// As a program that launches a kernel every 2 us: the page faults of the file are included.
void time_at_pace() {
  uint64_t spent = 0, worst = 0, next = now();
  for (uint32_t each = 0; each < 500000; each++) {
    while (now() < next) {
    }
    uint64_t before = now();
    put(Launch{each, each, each, 0, 0, 0, 0, 0, 0, 0});
    uint64_t took = now() - before;
    spent += took;
    worst = std::max(worst, took);
    next += 2000;
  }
  printf("put at pace  %6.1f ns with the clock, at worst %6lu\n", double(spent) / 500000, worst);
}

int times() {
  time_at_pace();
  time_of("put", 2000000, [](uint32_t i) { put(Launch{i, i, i, 0, 0, 0, 0, 0, 0, 0}); });
  time_of("known text", 2000000, [](uint32_t) { text("aten::native_layer_norm_b"); });
  time_of("known node", 2000000, [](uint32_t i) { node(i & 15, 1, kPythonNode); });
  time_of("new text", 500000, [](uint32_t i) { text_of("aten::mul, op_id = %lu", i); });
  return 0;
}

const Scenes scenes = {
    {"threads", threads},
    {"churn", churn},
    {"flood", flood},
    {"flood_in_threads", flood_in_threads},
    {"limited_flood", limited_flood},
    {"endless", endless},
    {"open", open},
    {"texts", texts},
    {"same_names_in_threads", same_names_in_threads},
    {"a_million", a_million},
    {"drops", drops},
    {"nothing", nothing},
    {"times", times},
};

}  // namespace

int main(int, char** arguments) {
  std::string scene = arguments[1];
  if (scene == "small_address_space") return small_address_space();
  if (scenes_before_start.count(scene)) return scenes_before_start.at(scene)();
  if (!start()) {
    printf("no dump\n");
    return 0;
  }
  for (const Scenes* all : {&scenes, &life_scenes, &bus_error_scenes, &fork_scenes})
    if (all->count(scene)) return all->at(scene)();
  return 5;
}
