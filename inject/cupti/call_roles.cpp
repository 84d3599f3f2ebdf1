// The one list of driver calls that are recorded. What is called often and never blocks is not among
// them: queries of events and streams, and what makes a stream wait.
#include "cupti/call_roles.h"

#include <cstring>

namespace flame {
namespace {

struct Rule {
  const char* prefix;
  Role role;
};
// The first that fits decides. Readers class calls by their names as well:
// flame/core/model/calls.py, and a test holds one against the other.
constexpr Rule kRules[] = {
    {"cuLaunchHostFunc", kOther},
    {"cuLaunchCooperativeKernelMultiDevice", kKernelsCall},
    {"cuLaunch", kKernelCall},
    {"cuGraphLaunch", kKernelsCall},
    {"cuMemcpy", kWorkCall},
    {"cu64Memcpy", kWorkCall},
    {"cuMemset", kWorkCall},
    {"cu64Memset", kWorkCall},
    {"cuMemPrefetch", kWorkCall},
    {"cuMemDiscardAndPrefetch", kWorkCall},
    {"cuGraphInstantiate", kGraphCopy},
    {"cuGraphClone", kGraphCopy},
    {"cuGraphExecUpdate", kGraphCopy},
    {"cuGraphAddChildGraphNode", kGraphCopy},
    {"cuCtxSynchronize", kHostCall},
    {"cuStreamSynchronize", kHostCall},
    {"cuEventSynchronize", kHostCall},
    {"cuMemAlloc", kHostCall},
    {"cu64MemAlloc", kHostCall},
    {"cuMemFree", kHostCall},
    {"cu64MemFree", kHostCall},
    {"cuMemHostAlloc", kHostCall},
    {"cu64MemHostAlloc", kHostCall},
    {"cuMemHostRegister", kHostCall},
    {"cuMemHostUnregister", kHostCall},
    {"cuMemCreate", kHostCall},
    {"cuMemMap", kHostCall},
    {"cuMemUnmap", kHostCall},
    {"cuMemRelease", kHostCall},
    {"cuMemAddressFree", kHostCall},
    {"cuModuleLoad", kHostCall},
    {"cuModuleUnload", kHostCall},
    {"cuLibraryLoad", kHostCall},
    {"cuLibraryUnload", kHostCall},
    {"cuLinkComplete", kHostCall},
    {"cuMemPoolCreate", kMemoryCall},
    {"cuMemPoolDestroy", kMemoryCall},
    {"cuMemPoolTrimTo", kMemoryCall},
    {"cuMemPoolImport", kMemoryCall},
    {"cuArrayCreate", kMemoryCall},
    {"cuArray3DCreate", kMemoryCall},
    {"cuArrayDestroy", kMemoryCall},
    {"cuMipmappedArrayCreate", kMemoryCall},
    {"cuMipmappedArrayDestroy", kMemoryCall},
};

}  // namespace

Role role_of(const char* name) {
  for (const Rule& rule : kRules)
    if (!strncmp(name, rule.prefix, strlen(rule.prefix))) return rule.role;
  return kOther;
}

}  // namespace flame
