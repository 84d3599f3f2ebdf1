// One kernel that waits for memory and one that computes: stalls ROUNDS.
#include <cstdio>
#include <cstdlib>

constexpr int kCount = 1 << 24, kThreads = 256;

__global__ void memory_bound(const float* in, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[(i * 97) % kCount];
}

__global__ void compute_bound(const float* in, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float x = in[i];
  for (int k = 0; k < 500; ++k) x = x * 1.0001f + 0.5f;
  out[i] = x;
}

int main(int, char** words) {
  float *in = nullptr, *out = nullptr;
  cudaMalloc(&in, kCount * sizeof(float));
  cudaMalloc(&out, kCount * sizeof(float));
  cudaMemset(in, 0, kCount * sizeof(float));
  for (int i = 0; i < atoi(words[1]); ++i) {
    memory_bound<<<kCount / kThreads, kThreads>>>(in, out);
    compute_bound<<<kCount / kThreads, kThreads>>>(in, out);
  }
  cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
  return error != cudaSuccess;
}
