// Loads CUPTI by dlopen: the library has no link dependency on CUDA and runs with CUPTI 12 and 13.
#pragma once
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_pcsampling.h>
#include <cupti_result.h>
#include <cupti_version.h>

#include <string>

// Of newer headers than those that this is compiled with. [CUPTI 13.5]
extern "C" CUptiResult CUPTIAPI cuptiActivityGetEnabledKinds(CUpti_SubscriberHandle subscriber,
                                                             CUpti_ActivityKind* kinds,
                                                             uint32_t* room, uint32_t* count);

namespace flame {

#define FLAME_CUPTI_REQUIRED(F)                                                             \
  F(cuptiSubscribe) F(cuptiUnsubscribe) F(cuptiEnableCallback) F(cuptiGetVersion)           \
  F(cuptiActivityRegisterCallbacks) F(cuptiActivityEnable) F(cuptiActivityDisable)          \
  F(cuptiActivityGetNextRecord) F(cuptiActivityFlushAll) F(cuptiActivityGetNumDroppedRecords) \
  F(cuptiGetTimestamp) F(cuptiGetCallbackName)

#define FLAME_CUPTI_OPTIONAL(F)                                                             \
  F(cuptiGetResultString) F(cuptiActivityRegisterTimestampCallback)                        \
  F(cuptiActivitySetAttribute) F(cuptiActivityGetEnabledKinds) F(cuptiGetContextId) F(cuptiGetDeviceId) F(cuptiGetStreamIdEx) \
  F(cuptiGetGraphId) F(cuptiGetGraphNodeId) F(cuptiGetGraphExecId) F(cuptiGetCubinCrc)      \
  F(cuptiPCSamplingEnable) F(cuptiPCSamplingDisable) F(cuptiPCSamplingStart)                \
  F(cuptiPCSamplingStop) F(cuptiPCSamplingGetData) F(cuptiPCSamplingGetNumStallReasons)     \
  F(cuptiPCSamplingGetStallReasons) F(cuptiPCSamplingSetConfigurationAttribute)             \
  F(cuptiPCSamplingGetConfigurationAttribute)

struct Cupti {
#define FLAME_POINTER(function) decltype(&::function) function;
  FLAME_CUPTI_REQUIRED(FLAME_POINTER)  // never null
  FLAME_CUPTI_OPTIONAL(FLAME_POINTER)  // null where this CUPTI lacks it
#undef FLAME_POINTER
};

// The CUPTI of this process once choose_cupti() has found one; during an attempt the one that is
// tried, else null.
Cupti* cupti();

enum class Attempt { kWorks, kTryNext, kGiveUp };

// Loads one CUPTI after another until `attempt` takes one, or says that no other will do; false: none
// works. `attempt` says in `why` what is wrong. The metas "cupti_path" and "cupti_refused" tell which
// it was and which it was not, and without one the meta "cupti" tells why. To be called once.
bool choose_cupti(Attempt (*attempt)(std::string* why));

// What the CUPTI that is tried or used exports under `name`; null where it lacks it.
void* cupti_function(const char* name);

// CUPTI's name of a result: never null.
const char* result_name(CUptiResult result);

// What libcuda.so.1 of this process exports under `name`; null when there is none.
void* driver_function(const char* name);

}  // namespace flame
