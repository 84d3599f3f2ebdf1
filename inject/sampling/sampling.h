// Samples PCs: at which instructions, and waiting for what, warps were found (FLAME_PC, or asked
// for through the control socket).
#pragma once
#include <cuda.h>

#include <cstdint>

namespace flame {

void want_sampling();        // before all that follows: as FLAME_PC says
bool sampling_wanted();      // whether or not this machine allows it
bool sampling_serialized();  // one kernel at a time is wanted, each sample knowing its launch

void sample_context(CUcontext context, uint32_t context_id);  // a new context
// A context that is used, if that is not known: it was made before anybody told of contexts. The
// flush thread begins to sample it. false: ask again at the next launch.
bool see_context(CUcontext context, uint32_t context_id);
void forget_context(CUcontext context);  // it is about to be destroyed
void flush_sampling(bool last);          // by the flush thread, and at the end
// After each launch, where sampling is serialized: CUPTI keeps the samples of kernels apart only
// when they are collected kernel by kernel.
void flush_launch(CUcontext context);

}  // namespace flame
