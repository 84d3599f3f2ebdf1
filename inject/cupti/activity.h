// Records kernels, copies and sets as CUPTI reports them: in buffers of activity records.
#pragma once

namespace flame {

bool register_buffers();  // false: CUPTI refuses, the meta "cupti" says why
void enable_kinds();      // which work is reported
void disable_kinds();

// Takes the records that CUPTI has; `last`: unfinished ones as well, to count them.
void flush_activity(bool last);

}  // namespace flame
