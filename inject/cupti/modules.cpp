// Records loaded modules, with the checksum of their cubins.

#include "cupti/state.h"
#include "flame.h"
#include "sampling/cubins.h"
#include "system/caller_guards.h"
#include "system/clock.h"

namespace flame {
namespace {

uint64_t checksum(const CUpti_ModuleResourceData& data) {
  auto compute = cupti()->cuptiGetCubinCrc;
  CUpti_GetCubinCrcParams arguments{};
  arguments.size = CUpti_GetCubinCrcParamsSize;
  arguments.cubinSize = data.cubinSize;
  arguments.cubin = data.pCubin;
  return compute && !compute(&arguments) ? arguments.cubinCrc : 0;
}

}  // namespace

void module_loaded(CUcontext context, const CUpti_ModuleResourceData& data) {
  if (!data.pCubin || !data.cubinSize) return;
  Uncancelled uncancelled;
  Module module{};
  module.crc = checksum(data);
  module.size = data.cubinSize;
  module.time = now();
  module.module = data.moduleId;
  if (auto look = cupti()->cuptiGetContextId) look(context, &module.context);
  write_module(module, data.pCubin);
}

}  // namespace flame
