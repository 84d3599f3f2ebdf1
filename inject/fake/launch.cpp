// Kernel launches.
#include "fake/fake.h"

namespace fake {
namespace {

struct Launch {
  CUfunction function;
  uint32_t grid[3], block[3], cluster[3], shared;
  CUstream stream;
};

CUresult check(const Launch& launch) {
  if (!launch.function) return CUDA_ERROR_INVALID_HANDLE;
  for (int i = 0; i < 3; ++i) {
    if (!launch.grid[i] || !launch.block[i]) return CUDA_ERROR_INVALID_VALUE;
  }
  return launch.function->fails ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}

Work work_of(const Launch& launch) {
  Work work;
  work.duration = launch.function->duration;
  work.function = launch.function;
  for (int i = 0; i < 3; ++i) {
    work.grid[i] = launch.grid[i];
    work.block[i] = launch.block[i];
    work.cluster[i] = launch.cluster[i];
  }
  work.dynamic_shared = launch.shared;
  return work;
}

CUresult run_in(Call& call, const Launch& launch, bool per_thread) {
  CUcontext context = current_context();
  if (!context) return call.done(CUDA_ERROR_INVALID_CONTEXT);
  if (CUresult error = check(launch)) return call.done(error);
  enqueue(stream_of(context, launch.stream, per_thread), work_of(launch), call.correlation());
  return call.done(CUDA_SUCCESS);
}

CUresult run(const Launch& launch, uint32_t cbid, bool per_thread, const void* parameters) {
  if (CUresult error = usable()) return error;
  const char* symbol = launch.function ? launch.function->name : nullptr;
  if (faults().allocating) {
    Call around(CUPTI_DRIVER_TRACE_CBID_cuMemAllocAsync);
    Call call(cbid, parameters, symbol);
    return around.done(run_in(call, launch, per_thread));
  }
  Call call(cbid, parameters, symbol);
  if (!faults().nested) return run_in(call, launch, per_thread);
  Call inner(cbid, parameters, symbol);
  return call.done(run_in(inner, launch, per_thread));
}

Launch launch_of(const CUlaunchConfig& config, CUfunction function) {
  Launch launch = {function,
                   {config.gridDimX, config.gridDimY, config.gridDimZ},
                   {config.blockDimX, config.blockDimY, config.blockDimZ},
                   {},
                   config.sharedMemBytes,
                   config.hStream};
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    if (config.attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& size = config.attrs[i].value.clusterDim;
    launch.cluster[0] = size.x;
    launch.cluster[1] = size.y;
    launch.cluster[2] = size.z;
  }
  return launch;
}

}  // namespace
}  // namespace fake

using namespace fake;

#define FAKE_LAUNCH(name, per_thread)                                                            \
  FAKE_API CUresult name(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,       \
                         unsigned by, unsigned bz, unsigned shared, CUstream stream,             \
                         void** parameters, void** extra) {                                      \
    cuLaunchKernel_params all = {f,  gx, gy,     gz,     bx,         by,                         \
                                 bz, shared, stream, parameters, extra};                         \
    return run({f, {gx, gy, gz}, {bx, by, bz}, {}, shared, stream},                              \
               CUPTI_DRIVER_TRACE_CBID_##name, per_thread, &all);                                \
  }
FAKE_LAUNCH(cuLaunchKernel, false)
FAKE_LAUNCH(cuLaunchKernel_ptsz, true)

#define FAKE_COOPERATIVE(name, per_thread)                                                       \
  FAKE_API CUresult name(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,       \
                         unsigned by, unsigned bz, unsigned shared, CUstream stream, void**) {   \
    return run({f, {gx, gy, gz}, {bx, by, bz}, {}, shared, stream},                              \
               CUPTI_DRIVER_TRACE_CBID_##name, per_thread, nullptr);                             \
  }
FAKE_COOPERATIVE(cuLaunchCooperativeKernel, false)
FAKE_COOPERATIVE(cuLaunchCooperativeKernel_ptsz, true)

#define FAKE_LAUNCH_EX(name, per_thread)                                                         \
  FAKE_API CUresult name(const CUlaunchConfig* config, CUfunction f, void**, void**) {           \
    if (!config) return CUDA_ERROR_INVALID_VALUE;                                                \
    return run(launch_of(*config, f), CUPTI_DRIVER_TRACE_CBID_##name, per_thread, nullptr);      \
  }
FAKE_LAUNCH_EX(cuLaunchKernelEx, false)
FAKE_LAUNCH_EX(cuLaunchKernelEx_ptsz, true)
