// What the probe saw, as one JSON object.
#include <cstdio>
#include <type_traits>

#include "probe.h"

namespace probe {
namespace {

constexpr int kLongestName = 200;

void text(FILE* file, const std::string& value) {
  fputc('"', file);
  int size = 0;
  for (unsigned char one : value) {
    if (++size > kLongestName) break;
    bool plain = one >= ' ' && one < 0x7f && one != '"' && one != '\\';
    plain ? fputc(one, file) : fprintf(file, "\\u%04x", one);
  }
  fputc('"', file);
}

template <class Number>
void field(FILE* file, const char* name, Number value) {
  if constexpr (std::is_floating_point_v<Number>) {
    fprintf(file, ",\n\"%s\": %.3f", name, value);
  } else {
    fprintf(file, ",\n\"%s\": %llu", name, static_cast<unsigned long long>(value));
  }
}

void table(FILE* file, const char* name, const std::map<std::string, uint64_t>& values) {
  fprintf(file, ",\n\"%s\": {", name);
  const char* between = "";
  for (const auto& [key, count] : values) {
    fputs(between, file);
    text(file, key);
    fprintf(file, ": %llu", static_cast<unsigned long long>(count));
    between = ", ";
  }
  fputc('}', file);
}

size_t told_twice(const State& s) {
  size_t twice = 0;
  for (const auto& one : s.cloned) twice += s.created.count(one.first);
  return twice;
}

size_t colliding(const State& s) {
  size_t count = 0;
  for (const auto& one : s.checksums) count += one.second.size() > 1;
  return count;
}

size_t enabled(const State& s, int domain) {
  auto found = s.enabled.find(domain);
  return found == s.enabled.end() ? 0 : found->second;
}

}  // namespace

void write_report() {
  const char* path = setting("PROBE_OUT", "");
  FILE* file = *path ? fopen(path, "w") : nullptr;
  if (!file) return;
  State& s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  fputs("{\"cupti\": ", file);
  text(file, s.path);
#define PROBE_FIELD(name) field(file, #name, s.name);
  PROBE_FIELD(version) PROBE_FIELD(set_up_ms) PROBE_FIELD(flush_ms)
  PROBE_FIELD(nested_shared) PROBE_FIELD(nested_apart)
  PROBE_FIELD(kernels) PROBE_FIELD(kernels_of_driver) PROBE_FIELD(kernels_of_runtime)
  PROBE_FIELD(kernels_of_none) PROBE_FIELD(others) PROBE_FIELD(others_of_none)
  PROBE_FIELD(untimed) PROBE_FIELD(backwards) PROBE_FIELD(early) PROBE_FIELD(earliest_ns)
  PROBE_FIELD(of_graphs) PROBE_FIELD(of_known_nodes)
  PROBE_FIELD(modules) PROBE_FIELD(module_bytes) PROBE_FIELD(checksum_ns)
  PROBE_FIELD(buffers) PROBE_FIELD(buffers_at_most)
  PROBE_FIELD(pcs) PROBE_FIELD(samples) PROBE_FIELD(samples_with_correlation)
  PROBE_FIELD(looks) PROBE_FIELD(failed_looks) PROBE_FIELD(hardware_full)
  PROBE_FIELD(dropped_samples) PROBE_FIELD(sampled_contexts)
  PROBE_FIELD(sampling_set_up_ms) PROBE_FIELD(sampling_end_ms)
#undef PROBE_FIELD
  field(file, "nodes_created", s.created.size());
  field(file, "nodes_cloned", s.cloned.size());
  field(file, "nodes_told_twice", told_twice(s));
  field(file, "checksums", s.checksums.size());
  field(file, "checksums_of_several", colliding(s));
  field(file, "driver_callbacks", enabled(s, CUPTI_CB_DOMAIN_DRIVER_API));
  field(file, "runtime_callbacks", enabled(s, CUPTI_CB_DOMAIN_RUNTIME_API));
  table(file, "results", s.results);
  table(file, "calls", s.calls);
  table(file, "created_in", s.created_in);
  table(file, "without_call", s.without_call);
  fputs("}\n", file);
  fclose(file);
}

}  // namespace probe
