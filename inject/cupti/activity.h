// Records kernels, copies and sets as CUPTI reports them: in buffers of activity records.
#pragma once
#include <cstdint>

#include "cupti/api/activity_calls.h"

namespace flame {

// For CUPTI of this API `version`.
CUptiResult register_buffers(uint32_t version);
void enable_kinds();  // which work is reported
void disable_kinds();

// The recording ends: calls that start work are not recorded from then on, and records that another
// tool has taken over are not taken back.
void leave_out_work_from(uint64_t time);

// Takes the records that CUPTI has; `last`: unfinished ones as well, to count them.
void flush_activity(bool last);

}  // namespace flame
