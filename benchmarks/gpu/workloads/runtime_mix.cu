// CUDA C++ in the ways that the runtime has to launch, copy and set: runtime_mix ROUNDS. It says as
// JSON how many kernels, copies and sets it has had run.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr int kCount = 1 << 16, kThreads = 256, kHosts = 8, kNodes = 5;
std::atomic<long> kernels{0}, copies{0};

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

__global__ void add_one(float* x) { x[blockIdx.x * blockDim.x + threadIdx.x] += 1; }

__global__ void together(float* x) {
  x[blockIdx.x * blockDim.x + threadIdx.x] += 1;
  cooperative_groups::this_grid().sync();
}

void launch(float* x, cudaStream_t stream) {
  add_one<<<kCount / kThreads, kThreads, 0, stream>>>(x);
  CHECK(cudaGetLastError());
}

void copy_and_set(float* x, std::vector<float>* host) {
  size_t bytes = kCount * sizeof(float);
  CHECK(cudaMemcpy(x, host->data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(host->data(), x, bytes, cudaMemcpyDeviceToHost));
  CHECK(cudaMemset(x, 0, bytes));
  copies += 3;
  float* other = nullptr;
  CHECK(cudaMallocAsync(&other, bytes, cudaStreamPerThread));
  CHECK(cudaMemcpyAsync(other, x, bytes, cudaMemcpyDeviceToDevice, cudaStreamPerThread));
  CHECK(cudaFreeAsync(other, cudaStreamPerThread));
  copies += 1;
}

void cooperate(float* x) {
  void* arguments[] = {&x};
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(together), dim3(4), dim3(kThreads),
                                    arguments));
  kernels += 1;
}

cudaGraph_t captured(float* x, int nodes) {
  cudaStream_t stream;
  cudaGraph_t graph;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < nodes; ++i) launch(x, stream);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaStreamDestroy(stream));
  return graph;
}

// A graph with another one in it, updated from a new capture after every replay.
void replay(float* x, int rounds) {
  cudaGraph_t parent, child = captured(x, kNodes);
  cudaGraphNode_t node;
  cudaGraphExec_t nested, updated;
  CHECK(cudaGraphCreate(&parent, 0));
  CHECK(cudaGraphAddChildGraphNode(&node, parent, nullptr, 0, child));
  CHECK(cudaGraphInstantiate(&nested, parent, 0));
  CHECK(cudaGraphInstantiate(&updated, child, 0));
  for (int i = 0; i < rounds; ++i) {
    CHECK(cudaGraphLaunch(nested, cudaStreamPerThread));
    CHECK(cudaGraphLaunch(updated, cudaStreamPerThread));
    CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    cudaGraph_t again = captured(x, kNodes);
    cudaGraphExecUpdateResultInfo result;
    CHECK(cudaGraphExecUpdate(updated, again, &result));
    CHECK(cudaGraphDestroy(again));
    kernels += 2 * kNodes;
  }
}

void host(int rounds) {
  float* x = nullptr;
  std::vector<float> values(kCount);
  CHECK(cudaMalloc(&x, kCount * sizeof(float)));
  for (int i = 0; i < rounds; ++i) {
    launch(x, nullptr);
    launch(x, cudaStreamPerThread);
    kernels += 2;
    copy_and_set(x, &values);
  }
  cooperate(x);
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(x));
}

}  // namespace

int main(int, char** words) {
  int rounds = std::atoi(words[1]);
  float* x = nullptr;
  CHECK(cudaMalloc(&x, kCount * sizeof(float)));
  std::vector<std::thread> hosts;
  for (int i = 0; i < kHosts; ++i) hosts.emplace_back(host, rounds);
  for (auto& one : hosts) one.join();
  replay(x, rounds);
  CHECK(cudaDeviceSynchronize());
  std::printf("{\"kernels\": %ld, \"copies\": %ld}\n", kernels.load(), copies.load());
}
