// Kernels of a small language model, for samples and tests that need real machine code. The cubin
// beside this file was made of it in the folder of the repository, with release 13.0 of the compiler
// and without the folders of the machine:
//   nvcc -arch=sm_90 -lineinfo -ptx -o llm_kernels.ptx samples/llm_kernels.cu
//   sed -i -e 's|"/.*/samples/|"samples/|' -e 's|"/.*/include/|"|' llm_kernels.ptx
//   ptxas -arch=sm_90 -lineinfo -o samples/llm_kernels.cubin llm_kernels.ptx

namespace llm {

// out = left · right, all of them n by n; a block makes one square of kTile by kTile.
template <int kTile>
__global__ void gemm(const float* left, const float* right, float* out, int n) {
  __shared__ float left_tile[kTile][kTile];
  __shared__ float right_tile[kTile][kTile + 1];
  int row = blockIdx.y * kTile + threadIdx.y;
  int column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int tile = 0; tile < n / kTile; ++tile) {
    left_tile[threadIdx.y][threadIdx.x] = left[row * n + tile * kTile + threadIdx.x];
    right_tile[threadIdx.y][threadIdx.x] = right[(tile * kTile + threadIdx.y) * n + column];
    __syncthreads();
#pragma unroll 8
    for (int k = 0; k < kTile; ++k) {
      sum += left_tile[threadIdx.y][k] * right_tile[k][threadIdx.x];
    }
    __syncthreads();
  }
  out[row * n + column] = sum;
}

template __global__ void gemm<16>(const float*, const float*, float*, int);
template __global__ void gemm<32>(const float*, const float*, float*, int);

__device__ float warp_max(float value) {
  for (int step = 16; step > 0; step /= 2) {
    value = fmaxf(value, __shfl_xor_sync(~0u, value, step));
  }
  return value;
}

__device__ float warp_sum(float value) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  return value;
}

// A warp for each row of `size` values.
__global__ void softmax(const float* in, float* out, int size) {
  const float* row = in + size_t(blockIdx.x) * size;
  float* result = out + size_t(blockIdx.x) * size;
  float largest = -INFINITY;
#pragma unroll 1
  for (int i = threadIdx.x; i < size; i += 32) largest = fmaxf(largest, row[i]);
  largest = warp_max(largest);
  float total = 0;
#pragma unroll 1
  for (int i = threadIdx.x; i < size; i += 32) {
    float value = expf(row[i] - largest);
    result[i] = value;
    total += value;
  }
  total = warp_sum(total);
#pragma unroll 1
  for (int i = threadIdx.x; i < size; i += 32) result[i] /= total;
}

// Adds `branch` to the residual stream and normalises it, a warp for each row.
__global__ void add_rms_norm(float* residual, const float* branch, const float* weight, float* out,
                             int size) {
  size_t row = size_t(blockIdx.x) * size;
  float squares = 0;
#pragma unroll 1
  for (int i = threadIdx.x; i < size; i += 32) {
    float value = residual[row + i] + branch[row + i];
    residual[row + i] = value;
    squares += value * value;
  }
  float scale = rsqrtf(warp_sum(squares) / size + 1e-6f);
#pragma unroll 1
  for (int i = threadIdx.x; i < size; i += 32) out[row + i] = residual[row + i] * scale * weight[i];
}

}  // namespace llm
