// Calls CUPTI's functions for activity records: the first ones, which one tool of a process can use,
// or those of 13.2 that name their subscriber, of whom there can be several with records of their own.
#pragma once
#include "cupti/api/functions.h"

namespace flame {

// By the latter, if this CUPTI, of API `version`, has them. From then on all below is done by them,
// for this subscriber: the first ones are refused in a process that has used them.
CUptiResult subscribe_beside_others(uint32_t version, CUpti_CallbackFunc callback,
                                    CUpti_SubscriberHandle* subscriber);
bool is_beside_others();
// For all subscribers alike: another one has chosen it.
bool graphs_are_whole_for_all();

CUptiResult register_activity_buffers(CUpti_BuffersCallbackRequestFunc requested,
                                      CUpti_BuffersCallbackCompleteFunc completed);
CUptiResult register_clock(CUpti_TimestampCallbackFunc clock);
CUptiResult read_cupti_clock(uint64_t* time);
CUptiResult enable_activity(CUpti_ActivityKind kind);
CUptiResult disable_activity(CUpti_ActivityKind kind);
CUptiResult next_activity(uint8_t* buffer, size_t valid, CUpti_Activity** record);
CUptiResult dropped_activities(size_t* dropped);

}  // namespace flame
