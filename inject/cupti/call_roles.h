// Tells what a driver call is to the recording, from its name.
#pragma once
#include <cstdint>

namespace flame {

enum Role : uint8_t {
  kOther,       // not looked at
  kKernelCall,  // launches one kernel: CUPTI tells its symbol, unless it fails
  kWorkCall,    // other work on a GPU
  kGraphCopy,   // makes graph nodes as copies of others; no launch
  kHostCall,    // may block its thread: waits for a GPU, allocates, frees, loads code
  kKernelsCall,  // launches kernels whose symbols CUPTI does not tell
  kMemoryCall,   // makes or frees memory or a pool: looked at for FLAME_MEMORY_EVENTS alone
};
Role role_of(const char* name);  // as CUPTI calls it: "cuMemAlloc_v2"

}  // namespace flame
