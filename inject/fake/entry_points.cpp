// cuGetProcAddress, and what else programs ask the driver for by name; and the names of the calls that
// the double can tell of, with CUPTI's own numbers.
#include <dlfcn.h>

#include "fake/fake.h"

#define FAKE_PLAIN_NAMES(N)                                                                       \
  N(cuCtxCreate_v2) N(cuCtxCreate_v4) N(cuCtxDestroy_v2) N(cuCtxSynchronize)                      \
  N(cuDevicePrimaryCtxRetain) N(cuModuleLoadData) N(cuModuleLoadDataEx) N(cuModuleUnload)         \
  N(cuModuleGetFunction) N(cuLibraryLoadData) N(cuLibraryUnload) N(cuLibraryGetKernel)            \
  N(cuMemAlloc_v2) N(cuMemFree_v2) N(cuMemAllocHost_v2) N(cuMemHostAlloc) N(cuMemFreeHost)        \
  N(cuMemAllocManaged) N(cuStreamCreate) N(cuStreamCreateWithPriority) N(cuStreamDestroy_v2)      \
  N(cuEventCreate) N(cuEventDestroy_v2) N(cuEventSynchronize) N(cuGraphCreate) N(cuGraphDestroy)  \
  N(cuGraphAddKernelNode_v2) N(cuGraphAddMemsetNode) N(cuGraphAddMemcpyNode)                      \
  N(cuGraphAddEmptyNode) N(cuGraphInstantiate_v2) N(cuGraphInstantiateWithFlags)                  \
  N(cuGraphExecDestroy) N(cuGraphAddChildGraphNode) N(cuGraphClone) N(cuGraphExecUpdate_v2)       \
  N(cuMemPoolCreate) N(cuMemPoolDestroy) N(cuMemPoolTrimTo)

#define FAKE_STREAM_NAMES(N)                                                                      \
  N(cuLaunchKernel) N(cuLaunchKernelEx) N(cuLaunchCooperativeKernel) N(cuGraphLaunch)             \
  N(cuGraphInstantiateWithParams)                                                                 \
  N(cuMemcpyHtoDAsync_v2) N(cuMemcpyDtoHAsync_v2) N(cuMemcpyDtoDAsync_v2) N(cuMemcpyAsync)        \
  N(cuMemcpyPeerAsync) N(cuMemsetD8Async) N(cuMemsetD16Async) N(cuMemsetD32Async)                 \
  N(cuMemAllocAsync) N(cuMemAllocFromPoolAsync) N(cuMemFreeAsync) N(cuStreamSynchronize)          \
  N(cuStreamQuery) N(cuStreamWaitEvent) N(cuStreamBeginCapture_v2) N(cuStreamEndCapture)          \
  N(cuStreamIsCapturing) N(cuEventRecord)

#define FAKE_DEFAULT_STREAM_NAMES(N)                                                              \
  N(cuMemcpyHtoD_v2) N(cuMemcpyDtoH_v2) N(cuMemcpyDtoD_v2) N(cuMemcpy) N(cuMemcpyPeer)            \
  N(cuMemsetD8_v2) N(cuMemsetD16_v2) N(cuMemsetD32_v2)

namespace fake {

const char* api_name(uint32_t cbid) {
  switch (cbid) {
#define FAKE_ONE(name) \
  case CUPTI_DRIVER_TRACE_CBID_##name: return #name;
#define FAKE_PTSZ(name) FAKE_ONE(name) FAKE_ONE(name##_ptsz)
#define FAKE_PTDS(name) FAKE_ONE(name) FAKE_ONE(name##_ptds)
    FAKE_PLAIN_NAMES(FAKE_ONE)
    FAKE_STREAM_NAMES(FAKE_PTSZ)
    FAKE_DEFAULT_STREAM_NAMES(FAKE_PTDS)
    default: return nullptr;
  }
}

}  // namespace fake

using namespace fake;

namespace {

void* own(const std::string& name) {
  static void* self = [] {
    Dl_info info;
    bool known = dladdr(reinterpret_cast<void*>(&intern), &info);
    return known ? dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD) : nullptr;
  }();
  return self ? dlsym(self, name.c_str()) : nullptr;
}

// The newest version, as programs that ask with a new cudaVersion get it.
void* newest(const std::string& name, bool per_thread) {
  for (const char* version : {"_v4", "_v3", "_v2", ""}) {
    for (const char* suffix : {"_ptsz", "_ptds"}) {
      void* found = per_thread ? own(name + version + suffix) : nullptr;
      if (found) return found;
    }
    if (void* found = own(name + version)) return found;
  }
  return nullptr;
}

}  // namespace

FAKE_API CUresult cuGetProcAddress_v2(const char* name, void** function, int, cuuint64_t flags,
                                      CUdriverProcAddressQueryResult* status) {
  if (!name || !function) return CUDA_ERROR_INVALID_VALUE;
  *function = newest(name, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  if (status) {
    *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

FAKE_API CUresult cuGetErrorName(CUresult error, const char** name) {
  switch (error) {
    case CUDA_SUCCESS: *name = "CUDA_SUCCESS"; break;
    case CUDA_ERROR_INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; break;
    case CUDA_ERROR_NOT_INITIALIZED: *name = "CUDA_ERROR_NOT_INITIALIZED"; break;
    case CUDA_ERROR_INVALID_CONTEXT: *name = "CUDA_ERROR_INVALID_CONTEXT"; break;
    case CUDA_ERROR_NOT_FOUND: *name = "CUDA_ERROR_NOT_FOUND"; break;
    case CUDA_ERROR_LAUNCH_FAILED: *name = "CUDA_ERROR_LAUNCH_FAILED"; break;
    default: *name = "CUDA_ERROR_UNKNOWN";
  }
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuGetErrorString(CUresult error, const char** text) {
  return cuGetErrorName(error, text);
}
