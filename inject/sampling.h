// PC sampling: at which instructions, and waiting for what, warps were found (FLAME_PC).
#pragma once
#include <cuda.h>

#include <cstdint>

namespace flame {

bool sampling_wanted();      // FLAME_PC asks for it, whether or not this machine allows it
bool sampling_serialized();  // it asks for one kernel at a time, each sample knowing its launch

void sample_context(CUcontext context, uint32_t context_id);  // a new context
void forget_context(CUcontext context);                       // it is about to be destroyed
void flush_sampling(bool last);  // by the helper thread, and at the end
// After each launch, where sampling is serialized: CUPTI keeps the samples of kernels apart only
// when they are collected kernel by kernel.
void flush_launch(CUcontext context);

}  // namespace flame
