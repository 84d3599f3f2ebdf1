// The probe: an injection library that asks CUPTI alone, without flame. What it saw goes as JSON to
// PROBE_OUT when the process ends; nothing is kept before, so a process that is killed tells nothing.
//
// Environment: PROBE_OUT=FILE  PROBE_DOMAINS=driver|runtime|both  PROBE_KIND=concurrent|kernel
//              PROBE_PC=off|continuous|serialized  PROBE_LATE=1: PC sampling begins in the middle
//              PROBE_SCRATCH_MB, PROBE_HW_MB, PROBE_PERIOD, PROBE_POOL: 0 or unset is CUPTI's own
//              PROBE_CUPTI=PATH: that libcupti before others
#pragma once
#include <cupti.h>
#include <cupti_pcsampling.h>
#include <dlfcn.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace probe {

constexpr int kMissing = -1;  // in place of a result: this CUPTI has no such function
constexpr size_t kMostNames = 20;

struct Call {
  bool driver = false, runtime = false;
  uint64_t enter = 0;
};

// All of it belongs to `mutex`. CUPTI is never called with it held.
struct State {
  std::mutex mutex;
  std::map<std::string, uint64_t> results;  // "function code" -> times
  std::map<std::string, uint64_t> calls;    // "driver cuLaunchKernel" -> times
  std::map<int, uint64_t> enabled;          // callbacks by domain
  std::unordered_map<uint32_t, Call> by_correlation;
  uint64_t nested_shared = 0, nested_apart = 0;
  uint64_t kernels = 0, kernels_of_driver = 0, kernels_of_runtime = 0, kernels_of_none = 0;
  uint64_t others = 0, others_of_none = 0;  // copies and sets
  uint64_t untimed = 0, backwards = 0, early = 0, earliest_ns = 0;
  std::map<std::string, uint64_t> without_call;  // names of records, kMostNames of them
  uint64_t of_graphs = 0, of_known_nodes = 0;
  std::set<uint64_t> created;
  std::unordered_map<uint64_t, uint64_t> cloned;  // node -> the one it was made of
  std::map<std::string, uint64_t> created_in;     // innermost open call
  uint64_t modules = 0, module_bytes = 0, checksum_ns = 0;
  std::map<uint64_t, std::set<uint64_t>> checksums;  // CUPTI's -> hashes of whole contents
  uint64_t buffers = 0, buffers_in_use = 0, buffers_at_most = 0;
  uint64_t pcs = 0, samples = 0, samples_with_correlation = 0, looks = 0, failed_looks = 0;
  uint64_t hardware_full = 0, dropped_samples = 0, sampled_contexts = 0;
  double sampling_set_up_ms = 0, sampling_end_ms = 0, flush_ms = 0, set_up_ms = 0;
  uint32_t version = 0;
  std::string path;
};
State& state();

const char* setting(const char* name, const char* otherwise);
size_t number(const char* name);
uint64_t now();  // CLOCK_MONOTONIC, ns
double ms_since(uint64_t begin);

void* function(const char* name);
void count_result(const char* name, int code);

template <class Function, class... Arguments>
int ask(const char* name, Function function, Arguments... arguments) {
  int code = function ? int(function(arguments...)) : kMissing;
  count_result(name, code);
  return code;
}

// Calls a function of CUPTI and counts what it returned.
#define PROBE_ASK(name, ...)                                                                  \
  ::probe::ask(#name, reinterpret_cast<decltype(&::name)>(::probe::function(#name)), __VA_ARGS__)

// records.cpp: activity buffers

int enable_records();

// sampling.cpp

bool sampling_wanted();
bool sampling_late();
bool sampling_serialized();
void sample(CUcontext context);  // begins it, once
void collect(CUcontext context);
void end_sampling();

// report.cpp

void write_report();

}  // namespace probe
