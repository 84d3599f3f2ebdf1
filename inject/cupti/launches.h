// Records driver API calls: those that put work on a GPU, and those that may block their thread.
#pragma once
#include "cupti/api/functions.h"
#include "cupti/launch_origins.h"

namespace flame {

// Enables the callbacks of all driver functions that are recorded (see call_roles.cpp), whatever this
// CUPTI calls them; false: there is none.
bool enable_driver_calls(CUpti_SubscriberHandle subscriber);
// `begin`: calls that begin are recorded; those that have begun are in any case.
void driver_call(CUpti_CallbackId id, const CUpti_CallbackData& data, bool begin);

bool callback_is_timed();  // whether how long this one of the calling thread's takes is to be counted

// Id of the text of a kernel's mangled name, 0 for null.
uint32_t kernel_name_text(const char* symbol);

// The origin of what the calling thread does now: that of the driver call it is in, if any.
Origin origin_here();

// The driver calls that the calling thread is in make nodes of graphs, and do no work.
void work_was_captured();

// Whether the calling thread is in a driver call that makes graph nodes as copies of others.
bool copying_graph();

}  // namespace flame
