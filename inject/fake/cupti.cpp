// CUPTI's callbacks: one subscriber, told of driver API calls and of resources.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "fake/fake.h"

namespace fake {
namespace {

constexpr size_t kIds = 1024;
std::atomic<bool> enabled[CUPTI_CB_DOMAIN_SIZE][kIds];
std::mutex& subscriber_mutex = *new std::mutex;
std::atomic<CUpti_CallbackFunc> subscriber{nullptr};
std::atomic<void*> subscriber_data{nullptr};
std::atomic<uint32_t> last_correlation{0};
thread_local bool inside = false;  // a callback: what it calls is told to nobody. [A choice.]

void send(CUpti_CallbackDomain domain, uint32_t id, const void* data) {
  CUpti_CallbackFunc callback = subscriber.load(std::memory_order_acquire);
  if (!callback || inside) return;
  inside = true;
  callback(subscriber_data, domain, id, data);
  inside = false;
}

bool copies_graph(uint32_t id) {
  const char* name = api_name(id);
  return name && (!strncmp(name, "cuGraphInstantiate", 18) || !strcmp(name, "cuGraphClone"));
}

bool wanted(CUpti_CallbackDomain domain, uint32_t id) {
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API && faults().unasked) return id < kIds;
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API && faults().quiet_clones && copies_graph(id)) return false;
  return id < kIds && enabled[domain][id].load(std::memory_order_relaxed);
}

uint32_t number_after(std::string_view text, std::string_view key, uint32_t otherwise) {
  size_t at = text.find(key);
  return at == text.npos ? otherwise : uint32_t(atol(text.data() + at + key.size()));
}

Faults read_faults() {
  const char* value = getenv("FAKE_CUPTI");
  std::string text = std::string(",") + (value ? value : "") + ",";
  auto has = [&](const char* word) { return text.find(word) != text.npos; };
  Faults faults;
  faults.no_subscriber = has(",no_subscriber,");
  faults.no_init = has(",no_init,");
  faults.v2_subscriber = has(",v2_subscriber,");
  faults.whole_for_all = has(",whole_for_all,");
  faults.several = has(",several,");
  faults.late_v2 = has(",late_v2,");
  faults.steal_clock = has(",steal_clock,");
  faults.no_pc_permission = has(",no_pc_permission,");
  faults.no_timestamps = has(",no_timestamps,");
  faults.nested = has(",nested,");
  faults.allocating = has(",allocating,");
  faults.pc_hang = has(",pc_hang,");
  faults.pc_later = has(",pc_later,");
  faults.pc_lazy = has(",pc_lazy,");
  faults.shuffle = has(",shuffle,");
  faults.unasked = has(",unasked,");
  faults.wild_names = has(",wild_names,");
  faults.quiet_clones = has(",quiet_clones,");
  faults.no_clones = has(",no_clones,");
  faults.hoard = has(",hoard,");
  faults.hold = has(",hold,");
  faults.flush_hang = has(",flush_hang,");
  faults.forced_hang = has(",forced_hang,");
  faults.disable_deadlock = has(",disable_deadlock,");
  faults.per_buffer = number_after(text, ",per_buffer:", 0);
  faults.pc_reasons = number_after(text, ",pc_reasons:", 0);
  faults.pc_more = number_after(text, ",pc_more:", 0);
  faults.early = number_after(text, ",early:", 0);
  faults.stray = number_after(text, ",stray:", 0);
  faults.drop = number_after(text, ",drop:", 0);
  faults.pc_drop = number_after(text, ",pc_drop:", 0);
  faults.pc_oom = number_after(text, ",pc_oom:", kNever);
  faults.pc_full = number_after(text, ",pc_full:", kNever);
  faults.pc_error = number_after(text, ",pc_error:", 0);
  faults.pc_memory = number_after(text, ",pc_memory:", kNever);
  faults.pc_refused = number_after(text, ",pc_refused:", 0);
  faults.steal = number_after(text, ",steal:", 0);
  faults.steal_for = number_after(text, ",steal_for:", 0);
  faults.no_graph_trace = has(",no_graph_trace,");
  faults.pool = number_after(text, ",pool:", 0);
  faults.backward = number_after(text, ",backward:", 0);
  faults.wild_times = number_after(text, ",wild_times:", 0);
  faults.no_memory = has(",no_memory,");
  faults.unsized = has(",unsized,");
  faults.odd_memory = number_after(text, ",odd_memory:", 0);
  faults.version = number_after(text, ",version:", 130001);
  return faults;
}

// The object that `address` is in.
void* object_of(void* address) {
  Dl_info info;
  return address && dladdr(address, &info) ? info.dli_fbase : nullptr;
}

// A copy of the double is the CUPTI of another driver than the process's.
bool suits_driver() {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void* own = object_of(reinterpret_cast<void*>(&suits_driver));
  return !faults().no_init && driver && object_of(dlsym(driver, "cuInit")) == own;
}

CUptiResult set_enabled(uint32_t on, CUpti_SubscriberHandle handle, int domain, uint32_t id) {
  if (!handle || !subscriber || domain <= 0 || domain >= CUPTI_CB_DOMAIN_SIZE || id >= kIds)
    return CUPTI_ERROR_INVALID_PARAMETER;
  enabled[domain][id] = on != 0;
  return CUPTI_SUCCESS;
}

}  // namespace

const Faults& faults() {
  static const Faults& faults = *new Faults(read_faults());
  return faults;
}

bool in_callback() { return inside; }

CUptiResult take_subscriber(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback,
                            void* data) {
  std::lock_guard<std::mutex> lock(subscriber_mutex);
  if (subscriber || faults().no_subscriber) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  subscriber_data = data;
  subscriber.store(callback, std::memory_order_release);
  *handle = reinterpret_cast<CUpti_SubscriberHandle>(&subscriber);
  return CUPTI_SUCCESS;
}

bool is_subscriber(CUpti_SubscriberHandle handle) {
  return subscriber && handle == reinterpret_cast<CUpti_SubscriberHandle>(&subscriber);
}

Call::Call(uint32_t cbid, const void* parameters, const char* symbol) : cbid_(cbid) {
  data_.correlationId = last_correlation.fetch_add(1, std::memory_order_relaxed) + 1;
  data_.functionParams = parameters;
  data_.symbolName = symbol;
  if (truth_wanted()) start_ = now();
  if (!wanted(CUPTI_CB_DOMAIN_DRIVER_API, cbid) && !start_) return;
  data_.functionName = api_name(cbid);
  data_.context = current_context();
  data_.contextUid = data_.context ? data_.context->id : 0;
  data_.correlationData = &shared_;
  data_.callbackSite = CUPTI_API_ENTER;
  if (wanted(CUPTI_CB_DOMAIN_DRIVER_API, cbid)) send(CUPTI_CB_DOMAIN_DRIVER_API, cbid, &data_);
}

CUresult Call::done(CUresult result) {
  if (data_.correlationData && wanted(CUPTI_CB_DOMAIN_DRIVER_API, cbid_)) {
    data_.callbackSite = CUPTI_API_EXIT;
    data_.functionReturnValue = &result;
    const char* symbol = data_.symbolName;
    if (faults().wild_names && result) data_.symbolName = reinterpret_cast<const char*>(1);
    send(CUPTI_CB_DOMAIN_DRIVER_API, cbid_, &data_);
    data_.symbolName = symbol;
  }
  if (start_) truth_call(data_.functionName, data_, cbid_, result != CUDA_SUCCESS, start_, now());
  return result;
}

void tell(CUpti_CallbackIdResource what, CUcontext context, CUstream stream, void* descriptor) {
  if (!wanted(CUPTI_CB_DOMAIN_RESOURCE, what)) return;
  CUpti_ResourceData data = {};
  data.context = context;
  data.resourceHandle.stream = stream;
  data.resourceDescriptor = descriptor;
  send(CUPTI_CB_DOMAIN_RESOURCE, what, &data);
}

// The image is a copy that goes away after the callback, so that a late look is seen by ASan.
void tell_module(CUpti_CallbackIdResource what, CUmodule module) {
  if (!wanted(CUPTI_CB_DOMAIN_RESOURCE, what)) return;
  std::vector<char> image(module->image.begin(), module->image.end());
  CUpti_ModuleResourceData data = {};
  data.moduleId = module->id;
  data.cubinSize = image.size();
  data.pCubin = image.data();
  tell(what, module->context, nullptr, &data);
}

void tell_graph(CUpti_CallbackIdResource what, const CUpti_GraphData& graph) {
  CUpti_GraphData copy = graph;
  tell(what, current_context(), nullptr, &copy);
}

uint64_t hash_of(const void* data, size_t size) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < size; ++i) {
    hash = (hash ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3;
  }
  return hash;
}

// The size and these bytes are all that CUPTI 13.0's checksum tells apart, 32 of 33 to 64 KiB. What
// it makes of them is not public: here it is another 32-bit hash.
uint64_t checksum_of(const void* cubin, size_t size) {
  auto bytes = static_cast<const char*>(cubin);
  size_t count = 0;
  while (size > size_t{1} << count / 2) count += 2;
  std::string seen(reinterpret_cast<const char*>(&size), sizeof size);
  for (size_t i = 0; i < count; ++i) seen += bytes[i * size / count];
  const uint64_t hash = hash_of(seen.data(), seen.size());
  return (hash ^ hash >> 32) & 0xffffffff;
}

}  // namespace fake

using namespace fake;

FAKE_API CUptiResult cuptiGetVersion(uint32_t* version) {
  if (!version) return CUPTI_ERROR_INVALID_PARAMETER;
  if (faults().version >= 130500 && !suits_driver()) return CUPTI_ERROR_UNKNOWN;
  *version = faults().version;
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiGetResultString(CUptiResult result, const char** text) {
  if (!text) return CUPTI_ERROR_INVALID_PARAMETER;
  switch (result) {
    case CUPTI_SUCCESS: *text = "CUPTI_SUCCESS"; break;
    case CUPTI_ERROR_INVALID_PARAMETER: *text = "CUPTI_ERROR_INVALID_PARAMETER"; break;
    case CUPTI_ERROR_INVALID_OPERATION: *text = "CUPTI_ERROR_INVALID_OPERATION"; break;
    case CUPTI_ERROR_OUT_OF_MEMORY: *text = "CUPTI_ERROR_OUT_OF_MEMORY"; break;
    case CUPTI_ERROR_HARDWARE_BUSY: *text = "CUPTI_ERROR_HARDWARE_BUSY"; break;
    case CUPTI_ERROR_NOT_SUPPORTED: *text = "CUPTI_ERROR_NOT_SUPPORTED"; break;
    case CUPTI_ERROR_NOT_INITIALIZED: *text = "CUPTI_ERROR_NOT_INITIALIZED"; break;
    case CUPTI_ERROR_UNKNOWN: *text = "CUPTI_ERROR_UNKNOWN"; break;
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES: *text = "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"; break;
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
      *text = "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED";
      break;
    default: *text = "CUPTI_ERROR";
  }
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback,
                                    void* data) {
  if (!handle) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!suits_driver())
    return faults().version < 130000 ? CUPTI_ERROR_NOT_INITIALIZED : CUPTI_ERROR_UNKNOWN;
  if (faults().v2_subscriber || faults().several) return CUPTI_ERROR_NOT_COMPATIBLE;
  return take_subscriber(handle, callback, data);
}

FAKE_API CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle handle) {
  std::lock_guard<std::mutex> lock(subscriber_mutex);
  if (!handle || !subscriber) return CUPTI_ERROR_INVALID_PARAMETER;
  subscriber = nullptr;
  for (auto& domain : enabled) {
    for (auto& id : domain) id = false;
  }
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle handle,
                                         CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API && id >= CUPTI_DRIVER_TRACE_CBID_SIZE) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  return set_enabled(on, handle, domain, id);
}

FAKE_API CUptiResult cuptiEnableDomain(uint32_t on, CUpti_SubscriberHandle handle,
                                       CUpti_CallbackDomain domain) {
  for (uint32_t id = 1; id < kIds; ++id) {
    if (CUptiResult error = set_enabled(on, handle, domain, id)) return error;
  }
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiGetCallbackState(uint32_t* on, CUpti_SubscriberHandle handle,
                                           CUpti_CallbackDomain domain, CUpti_CallbackId id) {
  if (!on || !handle || domain >= CUPTI_CB_DOMAIN_SIZE || id >= kIds) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  *on = enabled[domain][id];
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id,
                                          const char** name) {
  if (!name) return CUPTI_ERROR_INVALID_PARAMETER;
  *name = domain == CUPTI_CB_DOMAIN_DRIVER_API ? api_name(id) : nullptr;
  return *name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

FAKE_API CUptiResult cuptiGetContextId(CUcontext context, uint32_t* id) {
  if (!id) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!context) return CUPTI_ERROR_INVALID_CONTEXT;
  *id = context->id;
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiGetDeviceId(CUcontext context, uint32_t* id) {
  if (!id) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!context) context = current_context();
  if (!context) return CUPTI_ERROR_INVALID_DEVICE;
  *id = uint32_t(context->device);
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t per_thread,
                                        uint32_t* id) {
  if (!id) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!context) context = current_context();
  if (!context) return CUPTI_ERROR_INVALID_STREAM;
  *id = stream_of(context, stream, per_thread)->id;
  return CUPTI_SUCCESS;
}

FAKE_API CUptiResult cuptiGetCubinCrc(CUpti_GetCubinCrcParams* parameters) {
  if (!parameters || parameters->size != CUpti_GetCubinCrcParamsSize || !parameters->cubin ||
      !parameters->cubinSize) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  parameters->cubinCrc = checksum_of(parameters->cubin, parameters->cubinSize);
  return CUPTI_SUCCESS;
}
