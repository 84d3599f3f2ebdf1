// Streams, events and the capture of streams into graphs.
#include <algorithm>
#include <unordered_map>

#include "fake/fake.h"

namespace fake {
namespace {

// One per thread and context, as with cuStreamPerThread; never freed: records name them by id.
CUstream thread_stream(CUcontext context) {
  thread_local std::unordered_map<CUcontext, CUstream> streams;
  CUstream& stream = streams[context];
  if (stream) return stream;
  stream = new CUstream_st;
  stream->context = context;
  std::lock_guard<std::mutex> lock(context->mutex);
  stream->id = context->next_stream++;
  return stream;
}

CUresult create(CUstream* result, unsigned flags, uint32_t cbid) {
  if (CUresult error = usable()) return error;
  Call call(cbid);
  CUcontext context = current_context();
  if (!context) return call.done(CUDA_ERROR_INVALID_CONTEXT);
  auto* stream = new CUstream_st;
  stream->context = context;
  stream->blocking = !(flags & CU_STREAM_NON_BLOCKING);
  {
    std::lock_guard<std::mutex> lock(context->mutex);
    stream->id = context->next_stream++;
  }
  *result = stream;
  tell(CUPTI_CBID_RESOURCE_STREAM_CREATED, context, stream, nullptr);
  return call.done(CUDA_SUCCESS);
}

uint64_t end_of(CUstream stream) {
  std::lock_guard<std::mutex> lock(stream->context->mutex);
  uint64_t end = stream->until;
  if (stream == &stream->context->legacy) end = std::max(end, stream->context->blocking_until);
  return end;
}

CUresult synchronize(CUstream handle, uint32_t cbid, bool per_thread) {
  CUcontext context = current_context();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  Call call(cbid);
  CUstream stream = stream_of(context, handle, per_thread);
  {
    std::lock_guard<std::mutex> lock(context->mutex);
    if (stream->capture) return call.done(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  sleep_until(end_of(stream));
  run_held(stream);
  return call.done(CUDA_SUCCESS);
}

CUresult query(CUstream handle, uint32_t cbid, bool per_thread) {
  CUcontext context = current_context();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  Call call(cbid);
  bool busy = end_of(stream_of(context, handle, per_thread)) > now();
  return call.done(busy ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS);
}

CUresult record(CUevent event, CUstream handle, uint32_t cbid, bool per_thread) {
  CUcontext context = current_context();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  Call call(cbid);
  if (!event) return call.done(CUDA_ERROR_INVALID_HANDLE);
  CUstream stream = stream_of(context, handle, per_thread);
  std::scoped_lock lock(context->mutex, event->mutex);
  event->capture = stream->capture;
  event->frontier = stream->frontier;
  event->time = std::max(now(), stream->until);
  return call.done(CUDA_SUCCESS);
}

// Of a captured event: the stream joins that capture, behind what the event stands for.
void join(CUstream stream, CUevent event) {
  if (!stream->capture) {
    stream->frontier.clear();
    stream->context->capturing.push_back(stream);
  }
  stream->capture = event->capture;
  for (CUgraphNode node : event->frontier) {
    auto& known = stream->frontier;
    if (std::find(known.begin(), known.end(), node) == known.end()) known.push_back(node);
  }
}

CUresult wait(CUstream handle, CUevent event, uint32_t cbid, bool per_thread) {
  CUcontext context = current_context();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  Call call(cbid);
  if (!event) return call.done(CUDA_ERROR_INVALID_HANDLE);
  CUstream stream = stream_of(context, handle, per_thread);
  std::scoped_lock lock(context->mutex, event->mutex);
  if (event->capture) join(stream, event);
  else stream->until = std::max(stream->until, event->time);
  return call.done(CUDA_SUCCESS);
}

CUresult begin_capture(CUstream handle, uint32_t cbid, bool per_thread) {
  CUcontext context = current_context();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  Call call(cbid);
  CUstream stream = stream_of(context, handle, per_thread);
  if (stream == &context->legacy) return call.done(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUgraph graph = new_graph(true);
  std::lock_guard<std::mutex> lock(context->mutex);
  if (stream->capture) return call.done(CUDA_ERROR_ILLEGAL_STATE);
  stream->capture = graph;
  stream->capture_origin = true;
  context->capturing.push_back(stream);
  stream->frontier.clear();
  return call.done(CUDA_SUCCESS);
}

// For all streams that take part. With the context's lock held.
void leave_capture(CUcontext context, CUgraph graph) {
  auto& streams = context->capturing;
  auto leaves = [graph](CUstream stream) {
    if (stream->capture != graph) return false;
    stream->capture = nullptr;
    stream->capture_origin = false;
    stream->frontier.clear();
    return true;
  };
  streams.erase(std::remove_if(streams.begin(), streams.end(), leaves), streams.end());
}

CUresult end_capture(CUstream handle, CUgraph* result, uint32_t cbid, bool per_thread) {
  CUcontext context = current_context();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  Call call(cbid);
  CUstream stream = stream_of(context, handle, per_thread);
  std::lock_guard<std::mutex> lock(context->mutex);
  if (!stream->capture || !stream->capture_origin) return call.done(CUDA_ERROR_ILLEGAL_STATE);
  *result = stream->capture;
  leave_capture(context, *result);
  return call.done(CUDA_SUCCESS);
}

CUresult is_capturing(CUstream handle, CUstreamCaptureStatus* status, uint32_t cbid,
                      bool per_thread) {
  CUcontext context = current_context();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  Call call(cbid);
  CUstream stream = stream_of(context, handle, per_thread);
  std::lock_guard<std::mutex> lock(context->mutex);
  *status = stream->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return call.done(CUDA_SUCCESS);
}

}  // namespace

CUstream stream_of(CUcontext context, CUstream handle, bool per_thread) {
  if (handle == CU_STREAM_PER_THREAD || (!handle && per_thread)) return thread_stream(context);
  if (!handle || handle == CU_STREAM_LEGACY) return &context->legacy;
  return handle;
}

}  // namespace fake

using namespace fake;

#define FAKE_CBID(name) CUPTI_DRIVER_TRACE_CBID_##name
#define FAKE_BOTH(name, parameters, call)                                                        \
  FAKE_API CUresult name parameters {                                                            \
    constexpr auto cbid = FAKE_CBID(name);                                                       \
    constexpr bool per_thread = false;                                                           \
    return call;                                                                                 \
  }                                                                                              \
  FAKE_API CUresult name##_ptsz parameters {                                                     \
    constexpr auto cbid = FAKE_CBID(name##_ptsz);                                                \
    constexpr bool per_thread = true;                                                            \
    return call;                                                                                 \
  }

FAKE_BOTH(cuStreamSynchronize, (CUstream stream), synchronize(stream, cbid, per_thread))
FAKE_BOTH(cuStreamQuery, (CUstream stream), query(stream, cbid, per_thread))
FAKE_BOTH(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned),
          wait(stream, event, cbid, per_thread))
FAKE_BOTH(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode),
          begin_capture(stream, cbid, per_thread))
FAKE_BOTH(cuStreamEndCapture, (CUstream stream, CUgraph* graph),
          end_capture(stream, graph, cbid, per_thread))
FAKE_BOTH(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus* status),
          is_capturing(stream, status, cbid, per_thread))
FAKE_BOTH(cuEventRecord, (CUevent event, CUstream stream), record(event, stream, cbid, per_thread))

FAKE_API CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return create(stream, flags, FAKE_CBID(cuStreamCreate));
}

FAKE_API CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) {
  return create(stream, flags, FAKE_CBID(cuStreamCreateWithPriority));
}

FAKE_API CUresult cuStreamDestroy_v2(CUstream stream) {
  if (CUresult error = usable()) return error;
  Call call(FAKE_CBID(cuStreamDestroy_v2));
  if (!stream) return call.done(CUDA_ERROR_INVALID_HANDLE);
  tell(CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING, stream->context, stream, nullptr);
  {
    std::lock_guard<std::mutex> lock(stream->context->mutex);
    auto& streams = stream->context->capturing;
    streams.erase(std::remove(streams.begin(), streams.end(), stream), streams.end());
  }
  delete stream;
  return call.done(CUDA_SUCCESS);
}

FAKE_API CUresult cuEventCreate(CUevent* event, unsigned) {
  if (CUresult error = usable()) return error;
  Call call(FAKE_CBID(cuEventCreate));
  if (!current_context()) return call.done(CUDA_ERROR_INVALID_CONTEXT);
  *event = new CUevent_st;
  return call.done(CUDA_SUCCESS);
}

FAKE_API CUresult cuEventDestroy_v2(CUevent event) {
  if (CUresult error = usable()) return error;
  Call call(FAKE_CBID(cuEventDestroy_v2));
  delete event;
  return call.done(CUDA_SUCCESS);
}

FAKE_API CUresult cuEventSynchronize(CUevent event) {
  if (CUresult error = usable()) return error;
  Call call(FAKE_CBID(cuEventSynchronize));
  uint64_t time;
  {
    std::lock_guard<std::mutex> lock(event->mutex);
    time = event->time;
  }
  sleep_until(time);
  return call.done(CUDA_SUCCESS);
}

FAKE_API CUresult cuEventQuery(CUevent event) {
  std::lock_guard<std::mutex> lock(event->mutex);
  return event->time > now() ? CUDA_ERROR_NOT_READY : usable();
}

FAKE_API CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent begin, CUevent end) {
  if (begin == end) {
    *milliseconds = 0;
    return usable();
  }
  std::scoped_lock lock(begin->mutex, end->mutex);
  if (!begin->time || !end->time) return CUDA_ERROR_INVALID_HANDLE;
  *milliseconds = float(int64_t(end->time - begin->time)) * 1e-6f;
  return usable();
}
