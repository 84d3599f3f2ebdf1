// The CUDA driver, found at run time: a program with this needs the headers of CUDA and no toolkit.
#pragma once
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

// cuda.h makes of these names those of their newest version, in the type and in the text alike.
#define CUDA_FUNCTIONS(F)                                                              \
  F(cuInit) F(cuDeviceGet) F(cuDevicePrimaryCtxRetain) F(cuCtxSetCurrent)              \
  F(cuCtxSynchronize) F(cuModuleLoadData) F(cuModuleGetFunction) F(cuLaunchKernel)     \
  F(cuMemAlloc) F(cuMemFree) F(cuMemcpyHtoDAsync) F(cuMemcpyDtoHAsync)                 \
  F(cuMemsetD8Async) F(cuStreamCreate) F(cuStreamDestroy) F(cuStreamSynchronize)       \
  F(cuStreamBeginCapture) F(cuStreamEndCapture) F(cuGraphInstantiateWithFlags)         \
  F(cuGraphLaunch) F(cuGraphExecDestroy) F(cuGraphDestroy) F(cuModuleUnload)

struct CudaDriver {
#define CUDA_POINTER(name) decltype(&::name) name;
  CUDA_FUNCTIONS(CUDA_POINTER)
#undef CUDA_POINTER
};

// The driver of this machine; without one the program ends with one line.
inline CudaDriver load_cuda() {
  CudaDriver driver;
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) {
    std::fprintf(stderr, "no CUDA driver here: libcuda.so.1 not found\n");
    std::exit(1);
  }
#define CUDA_TEXT(name) #name
#define CUDA_LOAD(name)                                                            \
  driver.name = reinterpret_cast<decltype(driver.name)>(dlsym(library, CUDA_TEXT(name))); \
  if (!driver.name) {                                                              \
    std::fprintf(stderr, "libcuda.so.1 has no %s\n", CUDA_TEXT(name));             \
    std::exit(1);                                                                  \
  }
  CUDA_FUNCTIONS(CUDA_LOAD)
#undef CUDA_LOAD
#undef CUDA_TEXT
  return driver;
}

// Ends the program when a call of the driver fails.
inline void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s failed with CUDA error %d\n", what, static_cast<int>(result));
  std::exit(1);
}

// Makes the primary context of the first GPU the one of the calling thread, and returns it.
inline CUcontext use_first_gpu(const CudaDriver& cuda) {
  CUdevice device;
  CUcontext context;
  check(cuda.cuInit(0), "cuInit");
  check(cuda.cuDeviceGet(&device, 0), "cuDeviceGet");
  check(cuda.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  return context;
}
