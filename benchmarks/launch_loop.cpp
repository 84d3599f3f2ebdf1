// Calls of the driver and of NVTX in a loop, for bench_inject.py: Python's own cost stays outside.
#include <nvtx3/nvToolsExt.h>
#include <time.h>

#include <cstdint>

#include "../samples/cuda_driver.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constexpr char kModule[] = "flame-fake 1\nkernel short_kernel 50\n";

CudaDriver cuda;
CUfunction kernel;

// CPU time of this thread: the time of day would measure what else the machine does.
double now() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

}  // namespace

EXPORTED void set_up() {
  CUdevice device;
  CUcontext context;
  CUmodule module;
  cuda = load_cuda();
  check(cuda.cuInit(0), "cuInit");
  check(cuda.cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuda.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  check(cuda.cuModuleLoadData(&module, kModule), "cuModuleLoadData");
  check(cuda.cuModuleGetFunction(&kernel, module, "short_kernel"), "short_kernel");
}

// Each returns the ns that it took.

EXPORTED double launches(int64_t count) {
  double begin = now();
  for (int64_t i = 0; i < count; i++)
    check(cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr), "launch");
  return now() - begin;
}

EXPORTED double frees(int64_t count) {
  double begin = now();
  for (int64_t i = 0; i < count; i++) check(cuda.cuMemFree(0), "free");
  return now() - begin;
}

// So many events of memory: each that is allocated is freed.
EXPORTED double allocations(int64_t count) {
  double begin = now();
  for (int64_t i = 0; i < count / 2; i++) {
    CUdeviceptr memory;
    check(cuda.cuMemAlloc(&memory, 64), "allocate");
    check(cuda.cuMemFree(memory), "free");
  }
  return now() - begin;
}

EXPORTED double ranges(int64_t count) {
  double begin = now();
  for (int64_t i = 0; i < count; i++) {
    nvtxRangePushA("a range");
    nvtxRangePop();
  }
  return now() - begin;
}
