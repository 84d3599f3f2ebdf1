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
  PcBuffer left = {};  // CUPTI leaves here what has not been collected when sampling ends
  PcBuffer collected = {};

  SamplingFailure begin(const SamplingMode& mode);
  SamplingFailure collect();  // what has been sampled goes into the dump
  SamplingFailure end();      // so does what is left
};

bool can_sample();  // this CUPTI has all that is needed

}  // namespace flame
