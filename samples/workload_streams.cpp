// A workload to record: threads with streams of their own, copies both ways, NVTX ranges, and a
// CUDA graph that is captured once and replayed. It needs the headers of CUDA and NVTX, no toolkit:
//   g++ -std=c++17 -Iinclude workload_streams.cpp -o workload_streams -ldl -lpthread
//   flame record ./workload_streams [BATCHES]
#include <nvtx3/nvToolsExt.h>

#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "cuda_driver.h"

namespace {

constexpr unsigned kSide = 512;  // of the square matrices
constexpr size_t kBytes = sizeof(float) * kSide * kSide;
constexpr int kThreads = 2;
constexpr int kReplays = 4;  // of the graph, per batch

CudaDriver cuda;
CUcontext context;
CUfunction gemm, relu, axpy;

struct Range {
  explicit Range(const std::string& name) { nvtxRangePushA(name.c_str()); }
  ~Range() { nvtxRangePop(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

// Of one thread: two streams, so that copies overlap with kernels, and what they work on.
struct Lane {
  CUstream compute, copy;
  CUdeviceptr input, weight, output;
  std::vector<float> host;
  CUgraphExec graph;
};

std::string kernels() {
  std::string path = __FILE__;
  path = path.substr(0, path.rfind('/') + 1) + "kernels.ptx";
  std::ifstream file(path);
  if (!file) {
    std::fprintf(stderr, "%s not found: it lies beside the source\n", path.c_str());
    std::exit(1);
  }
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void set_up() {
  CUmodule module;
  cuda = load_cuda();
  context = use_first_gpu(cuda);
  check(cuda.cuModuleLoadData(&module, kernels().c_str()), "cuModuleLoadData");
  check(cuda.cuModuleGetFunction(&gemm, module, "gemm_kernel"), "gemm_kernel");
  check(cuda.cuModuleGetFunction(&relu, module, "relu_kernel"), "relu_kernel");
  check(cuda.cuModuleGetFunction(&axpy, module, "axpy_kernel"), "axpy_kernel");
}

void launch(CUfunction kernel, CUstream stream, void** arguments) {
  check(cuda.cuLaunchKernel(kernel, kSide, 1, 1, kSide, 1, 1, 0, stream, arguments, nullptr),
        "cuLaunchKernel");
}

void multiply(Lane& lane) {
  unsigned side = kSide;
  void* arguments[] = {&lane.output, &lane.input, &lane.weight, &side};
  launch(gemm, lane.compute, arguments);
}

void activate(Lane& lane) {
  unsigned count = kSide * kSide;
  void* arguments[] = {&lane.output, &lane.output, &count};
  launch(relu, lane.compute, arguments);
}

void update(Lane& lane) {
  float rate = 0.01f;
  unsigned count = kSide * kSide, rounds = 64;
  void* arguments[] = {&lane.weight, &lane.output, &rate, &count, &rounds};
  launch(axpy, lane.compute, arguments);
}

// A layer as a graph: its kernels keep the ranges that are open here.
void capture(Lane& lane) {
  Range range("capture");
  CUgraph graph;
  check(cuda.cuStreamBeginCapture(lane.compute, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
        "cuStreamBeginCapture");
  {
    Range linear("linear");
    multiply(lane);
  }
  {
    Range activation("activation");
    activate(lane);
  }
  check(cuda.cuStreamEndCapture(lane.compute, &graph), "cuStreamEndCapture");
  check(cuda.cuGraphInstantiateWithFlags(&lane.graph, graph, 0), "cuGraphInstantiate");
  check(cuda.cuGraphDestroy(graph), "cuGraphDestroy");
}

Lane make_lane() {
  Lane lane = {};
  check(cuda.cuStreamCreate(&lane.compute, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  check(cuda.cuStreamCreate(&lane.copy, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  for (CUdeviceptr* memory : {&lane.input, &lane.weight, &lane.output})
    check(cuda.cuMemAlloc(memory, kBytes), "cuMemAlloc");
  check(cuda.cuMemsetD8Async(lane.weight, 0, kBytes, lane.compute), "cuMemsetD8Async");
  lane.host.assign(kSide * kSide, 1.0f);
  capture(lane);
  return lane;
}

void batch(Lane& lane, int number) {
  Range range("batch " + std::to_string(number));
  {
    Range load("load");
    check(cuda.cuMemcpyHtoDAsync(lane.input, lane.host.data(), kBytes, lane.copy), "copy in");
    check(cuda.cuStreamSynchronize(lane.copy), "cuStreamSynchronize");
  }
  {
    Range layers("layers");
    for (int i = 0; i < kReplays; i++)
      check(cuda.cuGraphLaunch(lane.graph, lane.compute), "cuGraphLaunch");
  }
  {
    Range weights("update");
    update(lane);
  }
  check(cuda.cuStreamSynchronize(lane.compute), "cuStreamSynchronize");
  Range store("store");
  check(cuda.cuMemcpyDtoHAsync(lane.host.data(), lane.output, kBytes, lane.copy), "copy out");
  check(cuda.cuStreamSynchronize(lane.copy), "cuStreamSynchronize");
}

void work(int batches) {
  check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  Lane lane = make_lane();
  for (int i = 0; i < batches; i++) batch(lane, i);
  check(cuda.cuGraphExecDestroy(lane.graph), "cuGraphExecDestroy");
}

}  // namespace

int main(int count, char** arguments) {
  int batches = count > 1 ? std::atoi(arguments[1]) : 50;
  set_up();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; i++) threads.emplace_back(work, batches);
  for (std::thread& thread : threads) thread.join();
  check(cuda.cuCtxSynchronize(), "cuCtxSynchronize");
  std::printf("%d batches on %d threads\n", batches, kThreads);
  return 0;
}
