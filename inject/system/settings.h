// Reads the settings of the recording from the environment, once.
#pragma once
#include <cstdint>

namespace flame {

struct Settings {
  char directory[4096];        // FLAME_DIR, default /tmp/flame-<uid>
  bool debug;                  // FLAME_DEBUG: narrate on stderr
  bool python;                 // FLAME_PYTHON, default 1
  bool calls;                  // FLAME_CALLS, default 1: calls that wait, allocate or load code
  bool whole_graphs;           // FLAME_GRAPHS=whole, default node: CUDA graphs, not their nodes
  bool memory;                 // FLAME_MEMORY_EVENTS, default 0: what is allocated and freed
  uint64_t pool;               // FLAME_POOL, for experiments: CUPTI's buffers on a GPU; 0: its default
  bool keep_secrets;           // FLAME_KEEP_SECRETS, default 0: masked in the command line
  uint32_t flush_ms;           // FLAME_FLUSH_MS, default 100
  uint64_t max_bytes;          // FLAME_MAX_MB, default 16384
  uint64_t duration_ms;        // FLAME_DURATION_MS, 0: until the process ends
  int64_t clock;               // FLAME_CLOCK: Unix time minus monotonic time, ns; 0: look
  char pc[64];                 // FLAME_PC: off | continuous[:period] | serialized[:period]
  char cupti_path[4096];       // FLAME_CUPTI_PATH, empty: search
  // Switches of experiments, see README.md
  uint64_t pc_scratch_bytes;  // FLAME_PC_SCRATCH in MB, default 16; 0: as CUPTI does without
  uint64_t pc_hardware_bytes;  // FLAME_PC_HW in MB; 0: as CUPTI does without
  char kernel_kind[16];        // FLAME_KERNEL_KIND: concurrent | kernel
  char subscribers[16];        // FLAME_SUBSCRIBERS: one | several; empty: several only if need be
};
const Settings& settings();
void record_into(const char* directory);  // before anything is; null: FLAME_DIR
void warn(const char* format, ...) __attribute__((format(printf, 1, 2)));  // a line on stderr
void log(const char* format, ...) __attribute__((format(printf, 1, 2)));  // only with FLAME_DEBUG

}  // namespace flame
