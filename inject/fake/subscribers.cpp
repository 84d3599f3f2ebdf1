// The functions that name their subscriber, as CUPTI has them from 13.2 on, made from the headers of
// 13.5. The driver's calls have one subscriber here: the other tool takes records alone.
#include <cstring>

#include "fake/fake.h"

namespace fake {
namespace {

constexpr uint32_t kClocks = 130400;  // from then on each subscriber has a clock of its own
constexpr int kClock = 22, kTracesWholeGraphs = 20;

std::atomic<bool> taken{false};
thread_local bool named = false;  // the caller of what names no subscriber is one of these

// As if it named a subscriber.
template <class Function, class... Arguments>
CUptiResult by(CUpti_SubscriberHandle handle, Function function, Arguments... arguments) {
  if (!taken || !is_subscriber(handle)) return CUPTI_ERROR_INVALID_PARAMETER;
  named = true;
  const CUptiResult result = function(arguments...);
  named = false;
  return result;
}

struct Parameters {  // CUpti_SubscriberParams; before 13.2 without the last
  size_t size;
  const char* name;
  char* other_name;
  size_t other_size;
  uint8_t allows_several;
};

using Requested = void (*)(uint8_t**, size_t*, size_t*, void*);
using Completed = void (*)(uint8_t*, size_t, size_t, void*);
std::atomic<Requested> requested{nullptr};
std::atomic<Completed> completed{nullptr};
struct RequestInfo {
  size_t size = sizeof(RequestInfo);
};
struct CompleteInfo {
  size_t size = sizeof(CompleteInfo);
  uint64_t thread = 0;
  void* layouts = nullptr;
  size_t layout_count = 0;
};

void request(uint8_t** buffer, size_t* size, size_t* most) {
  RequestInfo info;
  requested.load()(buffer, size, most, &info);
}

void complete(CUcontext, uint32_t, uint8_t* buffer, size_t size, size_t valid) {
  CompleteInfo info;
  completed.load()(buffer, size, valid, &info);
}

}  // namespace

bool is_refused(bool anyway) { return !named && (taken || anyway); }

// Also what flame has forced out of CUPTI before it was over: it is then without times.
void tell_other(const Operation& operation) {
  if (faults().several) truth_lost(operation.start ? "other" : "other_untimed", operation);
}

}  // namespace fake

using namespace fake;

FAKE_API CUptiResult cuptiSubscribe_v2(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback,
                                       void* data, CUpti_SubscriberParams* given) {
  const auto* parameters = reinterpret_cast<const Parameters*>(given);
  if (!handle || !given || parameters->size < sizeof(Parameters))
    return CUPTI_ERROR_INVALID_PARAMETER;
  const bool alone = faults().v2_subscriber || !parameters->allows_several;
  if (alone || faults().version < 130200) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  const CUptiResult result = take_subscriber(handle, callback, data);
  if (!result) taken = true;
  return result;
}

FAKE_API CUptiResult cuptiActivityRegisterCallbacks_v2(CUpti_SubscriberHandle handle,
                                                       Requested on_request,
                                                       Completed on_complete) {
  requested = on_request;
  completed = on_complete;
  return by(handle, cuptiActivityRegisterCallbacks, request, complete);
}

FAKE_API CUptiResult cuptiActivityEnable_v2(CUpti_SubscriberHandle handle, CUpti_ActivityKind kind,
                                            void*) {
  return by(handle, cuptiActivityEnable, kind);
}

FAKE_API CUptiResult cuptiActivityDisable_v2(CUpti_SubscriberHandle handle,
                                             CUpti_ActivityKind kind, void*) {
  return by(handle, cuptiActivityDisable, kind);
}

FAKE_API CUptiResult cuptiActivityGetNextRecord_v2(CUpti_SubscriberHandle handle, uint8_t* buffer,
                                                   size_t valid, CUpti_Activity** record) {
  return by(handle, cuptiActivityGetNextRecord, buffer, valid, record);
}

FAKE_API CUptiResult cuptiActivityGetNumDroppedRecords_v2(CUpti_SubscriberHandle handle,
                                                          CUcontext context, uint32_t stream,
                                                          size_t* dropped) {
  return by(handle, cuptiActivityGetNumDroppedRecords, context, stream, dropped);
}

FAKE_API CUptiResult cuptiGetTimestamp_v2(CUpti_SubscriberHandle handle, uint64_t* time) {
  return by(handle, cuptiGetTimestamp, time);
}

FAKE_API CUptiResult cuptiActivitySetAttribute_v2(CUpti_SubscriberHandle handle, int attribute,
                                                  size_t* size, void* value) {
  if (attribute != kClock || faults().version < kClocks) return CUPTI_ERROR_INVALID_PARAMETER;
  CUpti_TimestampCallbackFunc clock;
  if (!size || *size != sizeof clock) return CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
  memcpy(&clock, value, sizeof clock);
  return by(handle, cuptiActivityRegisterTimestampCallback, clock);
}

FAKE_API CUptiResult cuptiActivityGetAttribute_v2(CUpti_SubscriberHandle handle, int attribute,
                                                  size_t* size, void* value) {
  if (attribute != kTracesWholeGraphs || !size || *size != 1 || !is_subscriber(handle))
    return CUPTI_ERROR_INVALID_PARAMETER;
  *static_cast<uint8_t*>(value) = faults().whole_for_all;
  return CUPTI_SUCCESS;
}
