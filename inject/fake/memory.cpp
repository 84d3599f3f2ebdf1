// Copies and sets of memory: they are done at once, their time on the GPU is simulated.
#include <cstring>

#include "fake/fake.h"

namespace fake {
namespace {

constexpr uint64_t kFixed = 1000;       // of every copy and set, ns
constexpr uint64_t kBytesPerNano = 20;  // GB/s

bool on_device(CUpti_ActivityMemoryKind kind) {
  return kind == CUPTI_ACTIVITY_MEMORY_KIND_DEVICE || kind == CUPTI_ACTIVITY_MEMORY_KIND_MANAGED;
}

CUpti_ActivityMemcpyKind direction(CUpti_ActivityMemoryKind source,
                                   CUpti_ActivityMemoryKind target) {
  if (on_device(source)) {
    return on_device(target) ? CUPTI_ACTIVITY_MEMCPY_KIND_DTOD : CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
  }
  return on_device(target) ? CUPTI_ACTIVITY_MEMCPY_KIND_HTOD : CUPTI_ACTIVITY_MEMCPY_KIND_HTOH;
}

struct Api {
  uint32_t cbid;
  bool per_thread, asynchronous;
};

// Runs what has been described; a synchronous call waits for it.
CUresult finish(Call& call, Work& work, const Api& api, CUstream handle) {
  CUcontext context = current_context();
  if (!context) return call.done(CUDA_ERROR_INVALID_CONTEXT);
  work.asynchronous = api.asynchronous;
  uint64_t end = enqueue(stream_of(context, handle, api.per_thread), work, call.correlation());
  if (!api.asynchronous) sleep_until(end);
  return call.done(CUDA_SUCCESS);
}

CUresult copy(const Api& api, void* target, const void* source, size_t bytes, CUstream stream) {
  if (CUresult error = usable()) return error;
  Call call(api.cbid);
  if (!target || !source) return call.done(CUDA_ERROR_INVALID_VALUE);
  if (!bytes) return call.done(CUDA_SUCCESS);
  Work work;
  work.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  work.bytes = bytes;
  work.duration = kFixed + bytes / kBytesPerNano;
  CUpti_ActivityMemoryKind from = memory_kind(source, bytes), to = memory_kind(target, bytes);
  work.source = from;
  work.target = to;
  work.copy_kind = direction(from, to);
  memmove(target, source, bytes);
  return finish(call, work, api, stream);
}

CUresult copy_peer(const Api& api, CUdeviceptr target, CUcontext target_context,
                   CUdeviceptr source, CUcontext source_context, size_t bytes, CUstream stream) {
  if (CUresult error = usable()) return error;
  Call call(api.cbid);
  if (!target || !source || !target_context || !source_context || !bytes) {
    return call.done(CUDA_ERROR_INVALID_VALUE);
  }
  Work work;
  work.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
  work.bytes = bytes;
  work.duration = kFixed + bytes / kBytesPerNano;
  work.source = work.target = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  work.copy_kind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
  work.peer_device = uint32_t(target_context->device);
  work.peer_context = target_context->id;
  memmove(reinterpret_cast<void*>(target), reinterpret_cast<void*>(source), bytes);
  return finish(call, work, api, stream);
}

template <class Value>
CUresult set(const Api& api, CUdeviceptr target, Value value, size_t count, CUstream stream) {
  if (CUresult error = usable()) return error;
  Call call(api.cbid);
  if (!target) return call.done(CUDA_ERROR_INVALID_VALUE);
  if (!count) return call.done(CUDA_SUCCESS);
  auto* values = reinterpret_cast<Value*>(target);
  for (size_t i = 0; i < count; ++i) values[i] = value;
  Work work;
  work.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  work.bytes = count * sizeof value;
  work.duration = kFixed + work.bytes / kBytesPerNano;
  work.value = value;
  work.target = memory_kind(values, work.bytes);
  return finish(call, work, api, stream);
}

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }
void* pointer(void* address) { return address; }
const void* pointer(const void* address) { return address; }

}  // namespace
}  // namespace fake

using namespace fake;

#define FAKE_CBID(name) CUPTI_DRIVER_TRACE_CBID_##name

#define FAKE_COPY_ONE(name, To, From, per_thread)                                                \
  FAKE_API CUresult name(To target, From source, size_t bytes) {                                 \
    return copy({FAKE_CBID(name), per_thread, false}, pointer(target), pointer(source), bytes,   \
                nullptr);                                                                        \
  }
#define FAKE_COPY_ASYNC_ONE(name, To, From, per_thread)                                          \
  FAKE_API CUresult name(To target, From source, size_t bytes, CUstream stream) {                \
    return copy({FAKE_CBID(name), per_thread, true}, pointer(target), pointer(source), bytes,    \
                stream);                                                                         \
  }
#define FAKE_COPY(name, To, From) \
  FAKE_COPY_ONE(name, To, From, false) FAKE_COPY_ONE(name##_ptds, To, From, true)
#define FAKE_COPY_ASYNC(name, To, From) \
  FAKE_COPY_ASYNC_ONE(name, To, From, false) FAKE_COPY_ASYNC_ONE(name##_ptsz, To, From, true)

FAKE_COPY(cuMemcpy, CUdeviceptr, CUdeviceptr)
FAKE_COPY(cuMemcpyHtoD_v2, CUdeviceptr, const void*)
FAKE_COPY(cuMemcpyDtoH_v2, void*, CUdeviceptr)
FAKE_COPY(cuMemcpyDtoD_v2, CUdeviceptr, CUdeviceptr)
FAKE_COPY_ASYNC(cuMemcpyAsync, CUdeviceptr, CUdeviceptr)
FAKE_COPY_ASYNC(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void*)
FAKE_COPY_ASYNC(cuMemcpyDtoHAsync_v2, void*, CUdeviceptr)
FAKE_COPY_ASYNC(cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr)

#define FAKE_PEER_ONE(name, per_thread)                                                          \
  FAKE_API CUresult name(CUdeviceptr target, CUcontext to, CUdeviceptr source, CUcontext from,   \
                         size_t bytes) {                                                         \
    return copy_peer({FAKE_CBID(name), per_thread, false}, target, to, source, from, bytes,      \
                     nullptr);                                                                   \
  }
#define FAKE_PEER_ASYNC_ONE(name, per_thread)                                                    \
  FAKE_API CUresult name(CUdeviceptr target, CUcontext to, CUdeviceptr source, CUcontext from,   \
                         size_t bytes, CUstream stream) {                                        \
    return copy_peer({FAKE_CBID(name), per_thread, true}, target, to, source, from, bytes,       \
                     stream);                                                                    \
  }
FAKE_PEER_ONE(cuMemcpyPeer, false)
FAKE_PEER_ONE(cuMemcpyPeer_ptds, true)
FAKE_PEER_ASYNC_ONE(cuMemcpyPeerAsync, false)
FAKE_PEER_ASYNC_ONE(cuMemcpyPeerAsync_ptsz, true)

#define FAKE_SET_ONE(name, Value, per_thread)                                                    \
  FAKE_API CUresult name(CUdeviceptr target, Value value, size_t count) {                        \
    return set<Value>({FAKE_CBID(name), per_thread, false}, target, value, count, nullptr);      \
  }
#define FAKE_SET_ASYNC_ONE(name, Value, per_thread)                                              \
  FAKE_API CUresult name(CUdeviceptr target, Value value, size_t count, CUstream stream) {       \
    return set<Value>({FAKE_CBID(name), per_thread, true}, target, value, count, stream);        \
  }
#define FAKE_SET(sync, async, Value)                                                             \
  FAKE_SET_ONE(sync, Value, false) FAKE_SET_ONE(sync##_ptds, Value, true)                        \
  FAKE_SET_ASYNC_ONE(async, Value, false) FAKE_SET_ASYNC_ONE(async##_ptsz, Value, true)
FAKE_SET(cuMemsetD8_v2, cuMemsetD8Async, unsigned char)
FAKE_SET(cuMemsetD16_v2, cuMemsetD16Async, unsigned short)
FAKE_SET(cuMemsetD32_v2, cuMemsetD32Async, unsigned int)

FAKE_API CUresult cuMemGetInfo_v2(size_t* available, size_t* total) {
  if (available) *available = size_t(79) << 30;
  if (total) *total = size_t(80) << 30;
  return usable();
}
