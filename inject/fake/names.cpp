// The driver API callbacks that the double can tell of, with CUPTI's own numbers and names.
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
  N(cuMemAllocAsync) N(cuMemAllocFromPoolAsync) N(cuMemFreeAsync) N(cuStreamSynchronize) N(cuStreamQuery)                    \
  N(cuStreamWaitEvent) N(cuStreamBeginCapture_v2) N(cuStreamEndCapture) N(cuStreamIsCapturing)    \
  N(cuEventRecord)

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
