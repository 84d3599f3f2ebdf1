// Records kernels, copies and sets as CUPTI reports them: in buffers of activity records.
#pragma once
#include <cstdint>

#include "cupti/api/functions.h"

namespace flame {

// For CUPTI of this API `version`; where it refuses the meta "cupti" says why.
CUptiResult register_buffers(uint32_t version);
void enable_kinds();  // which work is reported
void disable_kinds();

void leave_out_work_from(uint64_t time);  // the calls that start it are not recorded from then on

// Takes the records that CUPTI has; `last`: unfinished ones as well, to count them.
void flush_activity(bool last);

}  // namespace flame
