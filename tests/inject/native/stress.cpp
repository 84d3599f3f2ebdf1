// Everything at once, for the sanitizers: threads that launch, copy, replay graphs and annotate,
// threads that come and go, forks before that, and an exit in the middle of it.
// Usage: stress THREADS ROUNDS FORKS; prints what the recording must hold exactly. The threads go
// on after so many rounds for as long as standard input is open.
#include <nvtx3/nvToolsExt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "../../../samples/cuda_driver.h"

namespace {

constexpr char kModule[] = "flame-fake 1\nkernel steady 2000\nkernel late 1000\n";
constexpr size_t kBytes = 4096;
constexpr int kLate = 4;  // threads that are still at work when the program ends
// Kernels of each: the program may take long to end, and where CUPTI hoards its buffers they are
// used up at some 65,000 records.
constexpr int kMostLate = 10'000;

CudaDriver cuda;
CUcontext context;
CUfunction steady, late;
CUgraphExec graph;

std::atomic<bool> told_to_end{false};
std::atomic<long> launches{0}, copies{0}, sets{0}, replays{0}, frees{0}, ranges{0}, unloads{0};

void launch(CUfunction kernel, CUstream stream) {
  check(cuda.cuLaunchKernel(kernel, 4, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr), "launch");
}

void set_up() {
  // NVTX finds its library at the first call of any thread, with pointers that are not atomic.
  nvtxInitialize(nullptr);
  cuda = load_cuda();
  context = use_first_gpu(cuda);
  CUmodule module;
  check(cuda.cuModuleLoadData(&module, kModule), "cuModuleLoadData");
  check(cuda.cuModuleGetFunction(&steady, module, "steady"), "steady");
  check(cuda.cuModuleGetFunction(&late, module, "late"), "late");
}

void capture() {
  CUstream stream;
  CUgraph made;
  check(cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  check(cuda.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), "begin capture");
  for (int i = 0; i < 3; i++) launch(late, stream);
  check(cuda.cuStreamEndCapture(stream, &made), "end capture");
  check(cuda.cuGraphInstantiateWithFlags(&graph, made, 0), "instantiate");
}

void annotate(const char* text) {
  nvtxEventAttributes_t event = {};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = text;
  event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  event.payload.ullValue = 7;
  nvtxRangePushEx(&event);
}

void round_of_work(CUstream stream, CUdeviceptr memory, int number) {
  char name[32], host[kBytes] = {};
  std::snprintf(name, sizeof name, "round %d", number % 50);
  annotate(name);
  nvtxRangeId_t crossing = nvtxRangeStartA("crossing");
  launch(steady, stream);
  launch(steady, stream);
  check(cuda.cuMemcpyHtoDAsync(memory, host, kBytes, stream), "copy");
  check(cuda.cuMemsetD8Async(memory, 0, kBytes, stream), "set");
  CUdeviceptr more;
  check(cuda.cuMemAlloc(&more, kBytes), "cuMemAlloc");
  check(cuda.cuMemFree(more), "cuMemFree");
  if (number % 4 == 0) check(cuda.cuGraphLaunch(graph, stream), "replay"), replays++;
  nvtxMarkA("done");
  nvtxRangeEnd(crossing);
  nvtxRangePop();
  launches += 2, copies++, sets++, frees++, ranges += 3;
}

// A thread that lives for one range, one launch, and a module like no other.
void short_life(CUstream stream) {
  static std::atomic<int> loaded{0};
  check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  const std::string image = kModule + ("# " + std::to_string(loaded++));
  CUmodule module;
  check(cuda.cuModuleLoadData(&module, image.c_str()), "cuModuleLoadData");
  nvtxNameOsThreadA(static_cast<uint32_t>(gettid()), "short life");
  nvtxRangePushA("short");
  launch(steady, stream);
  nvtxRangePop();
  check(cuda.cuModuleUnload(module), "cuModuleUnload");
  launches++, ranges++, unloads++;
}

void worker(int rounds) {
  check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  CUstream stream;
  CUdeviceptr memory;
  check(cuda.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  check(cuda.cuMemAlloc(&memory, kBytes), "cuMemAlloc");
  for (int i = 0; i < rounds || !told_to_end; i++) {
    round_of_work(stream, memory, i);
    if (i % 10 == 0) std::thread(short_life, stream).join();
  }
  check(cuda.cuStreamSynchronize(stream), "cuStreamSynchronize");
}

bool only_this_thread_runs() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(gettid())) continue;
    std::ifstream file(task.path() / "stat");
    std::string line;
    std::getline(file, line);
    const size_t name_end = line.rfind(") ");
    if (name_end != std::string::npos && line[name_end + 2] != 'S') return false;
  }
  return true;
}

// CUDA does not work in a forked child, NVTX does. Every other one leaves without clean-up.
void fork_once(int number) {
  // ASan's allocator keeps for ever the locks that another thread has at a fork.
  while (!only_this_thread_runs()) usleep(1000);
  pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 100; i++) {
      nvtxRangePushA("child");
      nvtxRangePop();
    }
    if (number % 2) _exit(0);
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) std::fprintf(stderr, "child ended with status %d\n", status);
}

void never_ending() {
  check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  for (int number = 0;; number++) {
    nvtxRangePushA("late");
    if (number < kMostLate) launch(late, nullptr);
    nvtxRangePop();
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  set_up();
  capture();
  for (int i = 0; i < std::atoi(arguments[3]); i++) fork_once(i);
  std::atexit([] { launch(late, CU_STREAM_PER_THREAD); });  // what is thread-local is gone by then
  std::vector<std::thread> threads;
  for (int i = 0; i < std::atoi(arguments[1]); i++)
    threads.emplace_back(worker, std::atoi(arguments[2]));
  while (std::getchar() != EOF) {
  }
  told_to_end = true;
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kLate; i++) std::thread(never_ending).detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::printf("{\"launches\": %ld, \"copies\": %ld, \"sets\": %ld, \"replays\": %ld, "
              "\"frees\": %ld, \"ranges\": %ld, \"unloads\": %ld}\n",
              launches.load(), copies.load(), sets.load(), replays.load(), frees.load(),
              ranges.load(), unloads.load());
  return 0;
}
