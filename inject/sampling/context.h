// Samples PCs in one CUDA context, by CUPTI's PC Sampling API (cupti_pcsampling.h).
#pragma once
#include <cuda.h>

#include "sampling/buffer.h"
#include "sampling/mode.h"

namespace flame {

struct SamplingFailure {
  const char* step = "";  // what was tried
  CUptiResult result = CUPTI_SUCCESS;
};

struct SampledContext {
  SampledContext* next;
  CUcontext context;
  uint32_t id;
  bool begun = false;
  bool stuck = false;     // CUPTI could give no samples, and gives none until it is reset
  bool given_up = false;  // resets did not help
  uint32_t futile = 0;    // resets since the last sample
  uint64_t last_reset = 0;
  size_t named = 0;       // stall reasons whose names are in the dump
  PcBuffer left = {};  // CUPTI leaves here what has not been collected when sampling ends
  PcBuffer collected = {};
  // When the last but one collection began, and the last one. CUPTI may give what was sampled before
  // a collection in the next: not all of it is out of the GPU's buffer.
  uint64_t looks[2] = {};

  SamplingFailure begin(const SamplingMode& mode);
  void collect();  // what has been sampled goes into the dump; it may get stuck
  void reset(const SamplingMode& mode);  // begins anew; it stays stuck where that fails
  void end();      // what is left goes into the dump, too
  void clear();    // what is told of its troubles
};

bool can_sample();  // this CUPTI has all that is needed

}  // namespace flame
