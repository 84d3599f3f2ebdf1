// Tells of another tool that has taken over CUPTI's activity records, and takes them back when it has
// ended, where CUPTI says so.
#pragma once
#include "cupti/api/functions.h"
#include "cupti/takeover/silence.h"

namespace flame {

// `kernels` is reported from now on, through buffers that `register_again` would register once more.
void watch_records(CUpti_ActivityKind kernels, bool (*register_again)());
bool records_are_taken();

// After each flush, with what launches_so_far() said before it.
void look_for_records(const Launches& before, bool last);

}  // namespace flame
