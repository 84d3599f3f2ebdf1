// Subscribes to CUPTI, hands its callbacks to those they concern, and flushes it.
#include <cuda.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "cupti/activity.h"
#include "cupti/buffers.h"
#include "cupti/launches.h"
#include "cupti/state.h"
#include "flame.h"
#include "sampling/sampling.h"
#include "system/clock.h"
#include "system/settings.h"

namespace flame {
namespace {

constexpr uint32_t kOldest = 18;  // CUPTI 11.8, the first with today's records
constexpr uint64_t kDrainTime = 1'000'000'000;  // ns
constexpr uint32_t kDrainPause = 10'000;        // us

std::atomic<bool> on{false};       // what begins now is recorded
std::atomic<bool> exiting{false};  // the process ends: CUPTI is left as it is
std::mutex flush_lock;
CUpti_SubscriberHandle subscriber;
uint32_t api_version;  // of the CUPTI that is tried or used

// 0 when CUPTI cannot tell
uint32_t context_id(CUcontext context) {
  uint32_t id = 0;
  auto look = cupti()->cuptiGetContextId;
  return look && !look(context, &id) ? id : 0;
}

void context_created(CUcontext context) {
  sample_context(context, context_id(context));
}

void resource(CUpti_CallbackId id, const CUpti_ResourceData& data) {
  const void* more = data.resourceDescriptor;
  switch (id) {
    case CUPTI_CBID_RESOURCE_CONTEXT_CREATED:
      return context_created(data.context);
    case CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING:
      return forget_context(data.context);
    case CUPTI_CBID_RESOURCE_MODULE_LOADED:
      return module_loaded(data.context, *static_cast<const CUpti_ModuleResourceData*>(more));
    case CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING:
      return module_unloading(data.context, *static_cast<const CUpti_ModuleResourceData*>(more));
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED:
      return graph_node_created(*static_cast<const CUpti_GraphData*>(more));
    case CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED:
      return graph_node_cloned(*static_cast<const CUpti_GraphData*>(more));
    case CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED:
      return graph_instantiated(*static_cast<const CUpti_GraphData*>(more));
    default:
      return;
  }
}

constexpr CUpti_CallbackIdResource kResources[] = {
    CUPTI_CBID_RESOURCE_CONTEXT_CREATED, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING,
    CUPTI_CBID_RESOURCE_MODULE_LOADED, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING,
    CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED,
    CUPTI_CBID_RESOURCE_GRAPHEXEC_CREATED};

void handle(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  bool live = on.load(std::memory_order_acquire);
  if (domain == CUPTI_CB_DOMAIN_DRIVER_API)
    driver_call(id, *static_cast<const CUpti_CallbackData*>(data), live);
  else if (domain == CUPTI_CB_DOMAIN_RESOURCE && live && recording())
    resource(id, *static_cast<const CUpti_ResourceData*>(data));
}

void CUPTIAPI callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  const bool is_call = domain == CUPTI_CB_DOMAIN_DRIVER_API;
  if (!is_call) count(count_resource_callbacks);
  if (is_call && !callback_is_timed()) return handle(domain, id, data);
  const uint64_t begin = now();
  handle(domain, id, data);
  count_most(count_longest_callback_ns, now() - begin);
}

// devices

constexpr uint32_t kDevices = 64;
std::atomic<uint64_t> seen_devices{0};
uint64_t named_devices = 0;  // under flush_lock

// _v2 tells of a MIG instance, the older one of the GPU that it is a part of.
void name_uuid(uint32_t ordinal, CUdevice device) {
  using Get = decltype(&::cuDeviceGetUuid);
  auto get = reinterpret_cast<Get>(driver_function("cuDeviceGetUuid_v2"));
  if (!get) get = reinterpret_cast<Get>(driver_function("cuDeviceGetUuid"));
  CUuuid uuid;
  if (!get || get(&uuid, device)) return;
  char text[40];
  int size = 0;
  for (int each = 0; each < 16; each++) {
    const bool is_new_group = each >= 4 && each <= 10 && each % 2 == 0;
    size += snprintf(text + size, sizeof text - size_t(size), "%s%02x", is_new_group ? "-" : "",
                     static_cast<unsigned char>(uuid.bytes[each]));
  }
  name(kDeviceUuid, 0, ordinal, text);
}

void name_device(uint32_t ordinal) {
  auto get = reinterpret_cast<decltype(&::cuDeviceGet)>(driver_function("cuDeviceGet"));
  auto get_name =
      reinterpret_cast<decltype(&::cuDeviceGetName)>(driver_function("cuDeviceGetName"));
  CUdevice device;
  char called[256] = "";
  if (!get || !get_name || get(&device, static_cast<int>(ordinal))) return;
  if (!get_name(called, sizeof called - 1, device)) name(kDevice, 0, ordinal, called);
  name_uuid(ordinal, device);
}

void name_devices() {
  uint64_t fresh = seen_devices.load(std::memory_order_relaxed) & ~named_devices;
  named_devices |= fresh;
  for (uint32_t ordinal = 0; ordinal < kDevices; ordinal++)
    if (fresh >> ordinal & 1) name_device(ordinal);
}

// flushing

// Work that was begun before the end gets some time to be over: what still runs when records are
// forced out is lost. There may always be more of it, of calls that are not recorded.
void wait_for_work() {
  const uint64_t until = now() + kDrainTime;
  while (buffers_in_use() && now() < until && !exiting.load(std::memory_order_relaxed)) {
    usleep(kDrainPause);
    flush_activity(false);
  }
}

// Disabling may wait for ever [fixed in CUPTI 13.0 U1], and is of no use to a process that ends.
bool takes_leave(Flush why) {
  return why == Flush::kDetach && !exiting.load(std::memory_order_relaxed);
}

// What is over is taken first, what might not come back comes last. CUPTI is not touched after this.
void end(Flush why) {
  name_devices();
  leave_out_work_from(now());
  on.store(false, std::memory_order_relaxed);
  flush_activity(false);
  if (sampling_wanted()) flush_sampling(true);
  if (takes_leave(why)) wait_for_work();
  if (takes_leave(why)) disable_kinds();
  flush_activity(true);
  name_devices();
  if (takes_leave(why)) cupti()->cuptiUnsubscribe(subscriber);
}

void flush_some() {
  const uint64_t begin = now();
  if (sampling_wanted()) flush_sampling(false);
  flush_activity(false);
  name_devices();
  count_most(count_longest_flush_ns, now() - begin);
}

// In a forked child, where the lock may be held for ever, it is off.
void flush(Flush why) {
  if (!on.load(std::memory_order_acquire)) return;
  std::lock_guard<std::mutex> guard(flush_lock);
  if (!on.load(std::memory_order_relaxed)) return;
  count(count_flushes);
  why == Flush::kNow ? flush_some() : end(why);
}

// Registered after CUPTI was loaded, so that it runs before CUPTI takes itself down.
void at_exit() {
  if (!on.load(std::memory_order_relaxed)) return;
  exiting.store(true, std::memory_order_relaxed);
  stop();
}

// CUDA does not work in a forked child.
void leave_to_parent() { on.store(false, std::memory_order_relaxed); }

// start

struct Failure {
  char text[256];
};

Failure failure(const char* function, CUptiResult result) {
  Failure why;
  snprintf(why.text, sizeof why.text, "%s: %s (%d)", function, result_name(result), result);
  return why;
}

struct Release {
  uint32_t number;
  const char* name;
};
constexpr Release kReleases[] = {{18, "11.8"}, {19, "12.0"}, {20, "12.2"}, {21, "12.3"},
                                 {22, "12.4"}, {23, "12.5"}, {24, "12.6"}, {26, "12.8"},
                                 {27, "12.9"}, {28, "12.9.1"}};

void describe_version(uint32_t version) {
  char text[64];
  snprintf(text, sizeof text, "API %u", version);
  for (const Release& release : kReleases)
    if (release.number == version) snprintf(text, sizeof text, "%s", release.name);
  if (version >= 100000)
    snprintf(text, sizeof text, "%u.%u.%u", version / 10000, version / 100 % 100, version % 100);
  meta("cupti", text);
}

// The test double says so of itself when it is loaded, which may be long after the dump began.
void describe_double() {
  const char* value = getenv("FLAME_SYNTHETIC");
  if (value && !strcmp(value, "1")) meta("synthetic", "yes");
}

void describe_driver() {
  auto get = reinterpret_cast<decltype(&::cuDriverGetVersion)>(
      driver_function("cuDriverGetVersion"));
  int version = 0;
  if (!get || get(&version)) return;
  char text[32];
  snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
  meta("driver", text);
}

constexpr char kBeside[] =
    "CUPTI is used by its functions for several subscribers, beside another tool: there are no PC "
    "samples, and work that still runs when the recording ends is missing";
constexpr char kOtherWay[] =
    "another tool uses CUPTI in this process by its newer functions (cuptiSubscribe_v2), beside which "
    "those that flame calls are refused: launches and kernels are not recorded, NVTX ranges are";

void enable_resources() {
  for (CUpti_CallbackIdResource id : kResources)
    if (cupti()->cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, id))
      log("no callback for resource %d", id);
}

bool is_taken(CUptiResult result) {
  return result == CUPTI_ERROR_NOT_COMPATIBLE ||
         result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
}

// Only where nothing else works: whoever calls the first functions is refused from then on, as
// released versions of torch.profiler do.
bool subscribe_beside() {
  if (!strcmp(settings().subscribers, "one")) return false;
  if (subscribe_beside_others(api_version, callback, &subscriber)) return false;
  note(kBeside);
  return true;
}

bool enable_all(uint32_t version) {
  CUptiResult registered = register_buffers(version);
  if (registered == CUPTI_ERROR_NOT_COMPATIBLE && !is_beside_others()) {
    cupti()->cuptiUnsubscribe(subscriber);
    subscriber = nullptr;
    if (subscribe_beside()) registered = register_buffers(version);
  }
  if (registered == CUPTI_ERROR_NOT_COMPATIBLE) note(kOtherWay);
  if (refused("cuptiActivityRegisterCallbacks", registered)) return false;
  if (!enable_driver_calls(subscriber)) return false;
  enable_kinds();
  enable_resources();
  return true;
}

// What a CUPTI says that does not suit the driver: 15 by CUDA 12's, 999 by CUDA 13's.
bool unsuitable(CUptiResult result) {
  return result == CUPTI_ERROR_NOT_INITIALIZED || result == CUPTI_ERROR_UNKNOWN;
}

bool read_version(std::string* why) {
  if (CUptiResult result = cupti()->cuptiGetVersion(&api_version))
    *why = failure("cuptiGetVersion", result).text;
  else if (api_version < kOldest)
    *why = "older than 11.8";
  return why->empty();
}

Attempt subscribe(std::string* why) {
  if (!read_version(why)) return Attempt::kTryNext;
  if (!strcmp(settings().subscribers, "several") && subscribe_beside()) return Attempt::kWorks;
  CUptiResult result = cupti()->cuptiSubscribe(&subscriber, callback, nullptr);
  if (!result || (is_taken(result) && subscribe_beside())) return Attempt::kWorks;
  if (result == CUPTI_ERROR_NOT_COMPATIBLE) note(kOtherWay);
  if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)
    note("another tool uses CUPTI in this process (Nsight Systems, torch.profiler …): "
         "launches and kernels are not recorded, NVTX ranges are");
  *why = failure("cuptiSubscribe", result).text;
  return unsuitable(result) ? Attempt::kTryNext : Attempt::kGiveUp;
}

bool begin() {
  describe_double();
  describe_driver();
  want_sampling();
  if (!choose_cupti(subscribe)) return false;
  if (!enable_all(api_version)) {
    cupti()->cuptiUnsubscribe(subscriber);
    return false;
  }
  describe_version(api_version);
  at_flush_apart(flush, reads_cupti);
  at_fork_child(leave_to_parent);
  atexit(at_exit);
  on.store(true, std::memory_order_release);
  return true;
}

}  // namespace

bool refused(const char* function, CUptiResult result) {
  if (result == CUPTI_SUCCESS) return false;
  const Failure why = failure(function, result);
  log("%s", why.text);
  meta("cupti", why.text);
  return true;
}

void see_device(uint32_t ordinal) {
  if (ordinal >= kDevices) return;
  uint64_t bit = uint64_t{1} << ordinal;
  if (!(seen_devices.load(std::memory_order_relaxed) & bit))
    seen_devices.fetch_or(bit, std::memory_order_relaxed);
}

bool start_cupti() {
  static const bool started = begin();
  return started;
}

bool reads_cupti() { return on.load(std::memory_order_acquire); }

}  // namespace flame
