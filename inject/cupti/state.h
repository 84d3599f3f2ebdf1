// Declares what the files about CUPTI share: errors, devices, callbacks of the resource domain.
#pragma once
#include "cupti/api/functions.h"

namespace flame {

// Whether `result` is an error; the meta "cupti" then says which function failed and how.
bool refused(const char* function, CUptiResult result);

// Devices that have done something get a Name at the next flush.
void see_device(uint32_t ordinal);

// cupti/graphs.cpp, cupti/modules.cpp: within the callback
void graph_node_created(const CUpti_GraphData& data);
void graph_node_cloned(const CUpti_GraphData& data);
void graph_instantiated(const CUpti_GraphData& data);
void module_loaded(CUcontext context, const CUpti_ModuleResourceData& data);
void module_unloading(CUcontext context, const CUpti_ModuleResourceData& data);

}  // namespace flame
