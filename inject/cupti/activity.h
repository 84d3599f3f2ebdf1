// Records kernels, copies, sets and memory as CUPTI reports them: in buffers of activity records.
#pragma once
#include <cstdint>

#include "cupti/api/activity_calls.h"
#include "cupti/launch_origins.h"

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

// For what writes records of their own: times as the dump has them, whether they can be true, and
// whether something is of a call after the end.
uint64_t our_time(uint64_t theirs);
bool can_be(uint64_t start, uint64_t end);
bool is_left_out(uint64_t start, uint64_t end, const Origin& origin);

// cupti/memory.cpp: memory and pools of it, if they are asked for
void enable_memory();
void disable_memory();
void write_memory(const CUpti_Activity& record);  // of one of their two kinds

}  // namespace flame
