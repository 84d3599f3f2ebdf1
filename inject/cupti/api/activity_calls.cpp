// The types and numbers are those of CUPTI 13.5, of which older headers know nothing.
#include "cupti/api/activity_calls.h"

#include <atomic>

namespace flame {
namespace {

constexpr uint32_t kFirst = 130200;          // CUPTI that has them
constexpr uint32_t kFirstWithClock = 130400;  // and of which each subscriber has a clock of its own
constexpr int kTracesWholeGraphs = 20, kClock = 22;  // CUpti_ActivityAttribute

struct SubscriberParams {  // CUpti_SubscriberParams
  size_t size;
  const char* name;
  char* other_name;
  size_t other_size;
  uint8_t allows_several;
  uint8_t padding[7];
};
static_assert(sizeof(SubscriberParams) == 40);

using Handle = CUpti_SubscriberHandle;
using Requested = void (*)(uint8_t**, size_t*, size_t*, void* info);
using Completed = void (*)(uint8_t*, size_t, size_t, void* info);

struct Functions {
  CUptiResult (*subscribe)(Handle*, CUpti_CallbackFunc, void*, SubscriberParams*);
  CUptiResult (*register_buffers)(Handle, Requested, Completed);
  CUptiResult (*enable)(Handle, CUpti_ActivityKind, void* config);
  CUptiResult (*disable)(Handle, CUpti_ActivityKind, void* config);
  CUptiResult (*next)(Handle, uint8_t*, size_t, CUpti_Activity**);
  CUptiResult (*dropped)(Handle, CUcontext, uint32_t, size_t*);
  // Some of these came later.
  CUptiResult (*time)(Handle, uint64_t*);
  CUptiResult (*set)(Handle, int attribute, size_t*, void*);
  CUptiResult (*get)(Handle, int attribute, size_t*, void*);
};
Functions functions;
Handle own = nullptr;  // null: the first functions are used
uint32_t version = 0;

std::atomic<CUpti_BuffersCallbackRequestFunc> requested{nullptr};
std::atomic<CUpti_BuffersCallbackCompleteFunc> completed{nullptr};

template <class Function>
bool find(const char* name, Function*& function) {
  return (function = reinterpret_cast<Function*>(cupti_function(name)));
}

bool find_all() {
  find("cuptiGetTimestamp_v2", functions.time);
  find("cuptiActivitySetAttribute_v2", functions.set);
  find("cuptiActivityGetAttribute_v2", functions.get);
  return find("cuptiSubscribe_v2", functions.subscribe) &&
         find("cuptiActivityRegisterCallbacks_v2", functions.register_buffers) &&
         find("cuptiActivityEnable_v2", functions.enable) &&
         find("cuptiActivityDisable_v2", functions.disable) &&
         find("cuptiActivityGetNextRecord_v2", functions.next) &&
         find("cuptiActivityGetNumDroppedRecords_v2", functions.dropped);
}

void ask_for_buffer(uint8_t** buffer, size_t* size, size_t* most, void*) {
  requested.load()(buffer, size, most);
}

void give_buffer(uint8_t* buffer, size_t size, size_t valid, void*) {
  completed.load()(nullptr, 0, buffer, size, valid);
}

}  // namespace

CUptiResult subscribe_beside_others(uint32_t api_version, CUpti_CallbackFunc callback,
                                    CUpti_SubscriberHandle* subscriber) {
  if (api_version < kFirst || !find_all()) return CUPTI_ERROR_NOT_SUPPORTED;
  SubscriberParams parameters{};
  parameters.size = sizeof parameters;
  parameters.name = "flame";
  parameters.allows_several = 1;
  CUptiResult result = functions.subscribe(subscriber, callback, nullptr, &parameters);
  if (result) return result;
  own = *subscriber;
  version = api_version;
  return CUPTI_SUCCESS;
}

bool is_beside_others() { return own; }

bool graphs_are_whole_for_all() {
  uint8_t whole = 0;
  size_t size = sizeof whole;
  return own && functions.get && !functions.get(own, kTracesWholeGraphs, &size, &whole) &&
         whole == 1;
}

CUptiResult register_activity_buffers(CUpti_BuffersCallbackRequestFunc on_request,
                                      CUpti_BuffersCallbackCompleteFunc on_complete) {
  if (!own) return cupti()->cuptiActivityRegisterCallbacks(on_request, on_complete);
  requested.store(on_request);
  completed.store(on_complete);
  return functions.register_buffers(own, ask_for_buffer, give_buffer);
}

CUptiResult register_clock(CUpti_TimestampCallbackFunc clock) {
  if (!own) {
    auto take = cupti()->cuptiActivityRegisterTimestampCallback;
    return take ? take(clock) : CUPTI_ERROR_NOT_SUPPORTED;
  }
  if (version < kFirstWithClock || !functions.set) return CUPTI_ERROR_NOT_SUPPORTED;
  size_t size = sizeof clock;
  return functions.set(own, kClock, &size, &clock);
}

CUptiResult read_cupti_clock(uint64_t* time) {
  if (own && functions.time) return functions.time(own, time);
  return cupti()->cuptiGetTimestamp(time);
}

CUptiResult enable_activity(CUpti_ActivityKind kind) {
  return own ? functions.enable(own, kind, nullptr) : cupti()->cuptiActivityEnable(kind);
}

CUptiResult disable_activity(CUpti_ActivityKind kind) {
  return own ? functions.disable(own, kind, nullptr) : cupti()->cuptiActivityDisable(kind);
}

CUptiResult next_activity(uint8_t* buffer, size_t valid, CUpti_Activity** record) {
  return own ? functions.next(own, buffer, valid, record)
             : cupti()->cuptiActivityGetNextRecord(buffer, valid, record);
}

CUptiResult dropped_activities(size_t* dropped) {
  return own ? functions.dropped(own, nullptr, 0, dropped)
             : cupti()->cuptiActivityGetNumDroppedRecords(nullptr, 0, dropped);
}

}  // namespace flame
