// Records when modules were loaded and unloaded, with what tells their cubins apart.
#include "cupti/state.h"
#include "flame.h"
#include "sampling/cubins.h"
#include "system/caller_guards.h"
#include "system/clock.h"
#include "system/content_hash.h"

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

uint32_t id_of(CUcontext context) {
  uint32_t id = 0;
  auto look = cupti()->cuptiGetContextId;
  return look && !look(context, &id) ? id : 0;
}

}  // namespace

void module_loaded(CUcontext context, const CUpti_ModuleResourceData& data) {
  if (!data.pCubin || !data.cubinSize) return;
  Uncancelled uncancelled;
  Module module{};
  module.crc = checksum(data);
  module.size = data.cubinSize;
  module.time = now();  // before anything of it can run
  module.hash = content_hash(data.pCubin, data.cubinSize);
  module.module = data.moduleId;
  module.context = id_of(context);
  write_module(module, data.pCubin);
}

void module_unloading(CUcontext context, const CUpti_ModuleResourceData& data) {
  ModuleEnd end{};
  end.time = now();
  end.context = id_of(context);
  end.module = data.moduleId;
  put(end);
}

}  // namespace flame
