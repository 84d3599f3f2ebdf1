// Entry point and callbacks of the probe.
#include "probe.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace probe {
namespace {

constexpr uint32_t kMostIds = 2048;  // more than any CUPTI has callbacks of a domain
constexpr size_t kCallsBeforeLate = 500;
constexpr const char* kWords[] = {"Launch",        "Memcpy",   "Memset",         "GraphInstantiate",
                                  "GraphClone",    "GraphAdd", "GraphExecUpdate"};

void* library = nullptr;
std::atomic<bool> ended{false};
struct Open {
  const char* name;
  uint32_t correlation;
};
thread_local std::vector<Open> open_calls;

void module_loaded(const CUpti_ModuleResourceData& module) {
  if (!module.pCubin) return;
  CUpti_GetCubinCrcParams crc = {};
  crc.size = CUpti_GetCubinCrcParamsSize;
  crc.cubin = module.pCubin;
  crc.cubinSize = module.cubinSize;
  uint64_t begin = now();
  int code = PROBE_ASK(cuptiGetCubinCrc, &crc);
  uint64_t took = now() - begin, hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < module.cubinSize; ++i) {
    hash = (hash ^ uint8_t(module.pCubin[i])) * 0x100000001b3;
  }
  std::lock_guard<std::mutex> lock(state().mutex);
  state().modules++;
  state().module_bytes += module.cubinSize;
  state().checksum_ns += took;
  if (code == CUPTI_SUCCESS) state().checksums[crc.cubinCrc].insert(hash);
}

uint64_t id_of(CUgraphNode node) {
  uint64_t id = 0;
  return PROBE_ASK(cuptiGetGraphNodeId, node, &id) == CUPTI_SUCCESS ? id : 0;
}

void graph_node(CUpti_CallbackId what, const CUpti_GraphData& graph) {
  bool clone = what == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED;
  uint64_t node = id_of(graph.node), original = clone ? id_of(graph.originalNode) : 0;
  std::lock_guard<std::mutex> lock(state().mutex);
  if (clone) {
    state().cloned[node] = original;
    return;
  }
  state().created.insert(node);
  state().created_in[open_calls.empty() ? "(no call)" : open_calls.back().name]++;
}

void resource(CUpti_CallbackId what, const CUpti_ResourceData& data) {
  if (what == CUPTI_CBID_RESOURCE_CONTEXT_CREATED) {
    if (sampling_wanted() && !sampling_late()) sample(data.context);
  } else if (what == CUPTI_CBID_RESOURCE_MODULE_LOADED) {
    module_loaded(*static_cast<const CUpti_ModuleResourceData*>(data.resourceDescriptor));
  } else {
    graph_node(what, *static_cast<const CUpti_GraphData*>(data.resourceDescriptor));
  }
}

void enter(bool driver, const CUpti_CallbackData& data) {
  bool late;
  {
    std::lock_guard<std::mutex> lock(state().mutex);
    state().calls[std::string(driver ? "driver " : "runtime ") + data.functionName]++;
    Call& call = state().by_correlation[data.correlationId];
    if (!call.enter) call.enter = now();
    (driver ? call.driver : call.runtime) = true;
    if (driver && !open_calls.empty()) {
      bool shared = open_calls.back().correlation == data.correlationId;
      (shared ? state().nested_shared : state().nested_apart)++;
    }
    late = data.context && state().by_correlation.size() > kCallsBeforeLate;
  }
  open_calls.push_back({data.functionName, data.correlationId});
  if (late && sampling_late()) sample(data.context);
}

void CUPTIAPI callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  if (ended) return;
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
    resource(id, *static_cast<const CUpti_ResourceData*>(data));
    return;
  }
  auto& call = *static_cast<const CUpti_CallbackData*>(data);
  bool driver = domain == CUPTI_CB_DOMAIN_DRIVER_API;
  if (call.callbackSite == CUPTI_API_ENTER) {
    enter(driver, call);
    return;
  }
  if (!open_calls.empty()) open_calls.pop_back();
  if (driver && sampling_serialized()) collect(call.context);
}

bool wanted(const char* name) {
  for (const char* word : kWords) {
    if (strstr(name, word)) return true;
  }
  return false;
}

void enable_domain(CUpti_SubscriberHandle subscriber, CUpti_CallbackDomain domain) {
  using Name = decltype(&::cuptiGetCallbackName);
  auto name_of = reinterpret_cast<Name>(function("cuptiGetCallbackName"));
  for (uint32_t id = 1; name_of && id < kMostIds; ++id) {
    const char* name = nullptr;
    if (name_of(domain, id, &name) != CUPTI_SUCCESS || !name || !wanted(name)) continue;
    if (PROBE_ASK(cuptiEnableCallback, 1u, subscriber, domain, id) == CUPTI_SUCCESS) {
      state().enabled[domain]++;
    }
  }
}

void enable_callbacks(CUpti_SubscriberHandle subscriber) {
  const char* domains = setting("PROBE_DOMAINS", "driver");
  if (strcmp(domains, "runtime") != 0) enable_domain(subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
  if (strcmp(domains, "driver") != 0) enable_domain(subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
  for (auto what : {CUPTI_CBID_RESOURCE_CONTEXT_CREATED, CUPTI_CBID_RESOURCE_MODULE_LOADED,
                    CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED}) {
    PROBE_ASK(cuptiEnableCallback, 1u, subscriber, CUPTI_CB_DOMAIN_RESOURCE, uint32_t(what));
  }
}

bool load() {
  const char* names[] = {setting("PROBE_CUPTI", ""), "libcupti.so.13", "libcupti.so.12"};
  for (int flags : {RTLD_NOW | RTLD_NOLOAD, RTLD_NOW}) {
    for (const char* name : names) {
      if (*name && !library) library = dlopen(name, flags);
    }
  }
  return library != nullptr;
}

void at_exit() {
  uint64_t begin = now();
  PROBE_ASK(cuptiActivityFlushAll, 0u);
  PROBE_ASK(cuptiActivityFlushAll, uint32_t(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  state().flush_ms = ms_since(begin);
  begin = now();
  end_sampling();
  state().sampling_end_ms = ms_since(begin);
  ended = true;
  write_report();
}

void start() {
  uint64_t begin = now();
  if (load()) {
    Dl_info where = {};
    if (dladdr(function("cuptiSubscribe"), &where) && where.dli_fname) state().path = where.dli_fname;
    PROBE_ASK(cuptiGetVersion, &state().version);
    CUpti_SubscriberHandle subscriber;
    if (PROBE_ASK(cuptiSubscribe, &subscriber, callback, nullptr) == CUPTI_SUCCESS) {
      enable_callbacks(subscriber);
      enable_records();
    }
  }
  state().set_up_ms = ms_since(begin);
  atexit(at_exit);
}

}  // namespace

State& state() {
  static State& state = *new State;  // threads may still be in callbacks when the process ends
  return state;
}

const char* setting(const char* name, const char* otherwise) {
  const char* value = getenv(name);
  return value && *value ? value : otherwise;
}

size_t number(const char* name) { return strtoull(setting(name, "0"), nullptr, 10); }

uint64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return uint64_t(time.tv_sec) * 1'000'000'000 + uint64_t(time.tv_nsec);
}

double ms_since(uint64_t begin) { return double(now() - begin) / 1e6; }

void* function(const char* name) { return library ? dlsym(library, name) : nullptr; }

void count_result(const char* name, int code) {
  std::lock_guard<std::mutex> lock(state().mutex);
  state().results[std::string(name) + " " + std::to_string(code)]++;
}

}  // namespace probe

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  static std::once_flag once;
  std::call_once(once, probe::start);
  return 1;
}
