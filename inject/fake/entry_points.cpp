// cuGetProcAddress, and what else programs ask the driver for by name.
#include <dlfcn.h>

#include "fake/fake.h"

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
