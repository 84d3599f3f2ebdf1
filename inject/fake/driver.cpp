// Initialisation, devices and contexts.
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "fake/fake.h"

namespace fake {

uint64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return uint64_t(time.tv_sec) * 1'000'000'000 + uint64_t(time.tv_nsec);
}

void sleep_until(uint64_t time) {
  time = std::min(time, now() + kLongestWait);
  timespec when = {time_t(time / 1'000'000'000), long(time % 1'000'000'000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, nullptr) != 0) {
  }
}

void wait_for_ever() {
  for (;;) pause();
}

const char* intern(std::string_view name) {
  static std::mutex& mutex = *new std::mutex;
  static auto& names = *new std::set<std::string, std::less<>>;
  std::lock_guard<std::mutex> lock(mutex);
  auto found = names.find(name);
  if (found == names.end()) found = names.emplace(name).first;
  return found->c_str();
}

namespace {

std::atomic<bool> initialised{false}, forked{false};
// Recursive, because InitializeInjection may call cuInit.
std::recursive_mutex& init_mutex = *new std::recursive_mutex;
// Of each thread that calls, and never freed: exit handlers may call, after what is thread-local and
// has a destructor is gone.
std::vector<CUcontext>& stack() {
  thread_local auto* const contexts = new std::vector<CUcontext>;
  return *contexts;
}

std::mutex& contexts_mutex = *new std::mutex;
auto& contexts = *new std::vector<CUcontext>;  // never freed: a late handle is only refused
struct Primary {
  CUcontext context = nullptr;
  int users = 0;
};
auto& primaries = *new std::map<CUdevice, Primary>;

// What is recorded from this driver must never be taken for a measurement: the library notes it.
__attribute__((constructor)) void confess() { setenv("FLAME_SYNTHETIC", "1", 1); }

int device_count() {
  static const int count = [] {
    const char* text = getenv("FAKE_DEVICES");
    return text ? atoi(text) : 1;
  }();
  return count;
}

int number_in_machine(CUdevice device) {
  const char* visible = getenv("CUDA_VISIBLE_DEVICES");
  for (int each = 0; visible && each < device; ++each) {
    visible = strchr(visible, ',');
    if (visible) ++visible;
  }
  return visible && *visible ? atoi(visible) : device;
}

bool is_device(CUdevice device) { return device >= 0 && device < device_count(); }

// As the driver does: the library that CUDA_INJECTION64_PATH names is told at the end of cuInit.
void inject() {
  const char* path = getenv("CUDA_INJECTION64_PATH");
  if (!path || !*path) return;
  void* library = dlopen(path, RTLD_NOW);
  if (!library) return;
  if (auto start = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"))) start();
}

CUcontext new_context(CUdevice device) {
  auto* context = new CUctx_st;
  context->device = device;
  context->legacy.id = 7;     // as seen in traces of the real one
  context->next_stream = 13;  // likewise
  context->legacy.context = context;
  {
    std::lock_guard<std::mutex> lock(contexts_mutex);
    contexts.push_back(context);
    context->id = uint32_t(contexts.size());
  }
  tell(CUPTI_CBID_RESOURCE_CONTEXT_CREATED, context, nullptr, nullptr);
  return context;
}

void end_context(CUcontext context) {
  tell(CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING, context, nullptr, nullptr);
  context->alive = false;
  stack().erase(std::remove(stack().begin(), stack().end(), context), stack().end());
}

CUresult create(CUcontext* result, CUdevice device, uint32_t cbid) {
  if (CUresult error = usable()) return error;
  Call call(cbid);
  if (!result || !is_device(device)) return call.done(CUDA_ERROR_INVALID_DEVICE);
  *result = new_context(device);
  stack().push_back(*result);
  return call.done(CUDA_SUCCESS);
}

}  // namespace

CUresult usable() {
  return !initialised.load(std::memory_order_acquire) || forked ? CUDA_ERROR_NOT_INITIALIZED
                                                                : CUDA_SUCCESS;
}

CUcontext current_context() { return stack().empty() || usable() ? nullptr : stack().back(); }

}  // namespace fake

using namespace fake;

FAKE_API CUresult cuInit(unsigned flags) {
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  if (forked) return CUDA_ERROR_NOT_INITIALIZED;  // as the driver in a child of fork
  std::lock_guard<std::recursive_mutex> lock(init_mutex);
  if (initialised) return CUDA_SUCCESS;
  if (device_count() == 0) return CUDA_ERROR_NO_DEVICE;
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
  initialised.store(true, std::memory_order_release);
  inject();
  tell(CUPTI_CBID_RESOURCE_CU_INIT_FINISHED, nullptr, nullptr, nullptr);
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuDriverGetVersion(int* version) {
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  *version = faults().version >= 130000 ? 13000 : 12090;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuDeviceGetCount(int* count) {
  if (CUresult error = usable()) return error;
  *count = device_count();
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (CUresult error = usable()) return error;
  if (!is_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  if (CUresult error = usable()) return error;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  snprintf(name, size_t(size), "Simulated GPU %d", device);
  return CUDA_SUCCESS;
}

// That of the machine's GPU, of which CUDA_VISIBLE_DEVICES may have made another number.
FAKE_API CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  if (CUresult error = usable()) return error;
  memset(uuid, 0, sizeof *uuid);
  uuid->bytes[15] = char(number_in_machine(device) + 1);
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  *bytes = size_t(80) << 30;
  return usable();
}

FAKE_API CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (CUresult error = usable()) return error;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: *value = 2048; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 48 << 10; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 227 << 10; break;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK: *value = 65536; break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1'000'000; break;  // kHz
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: *value = 1; break;
    default: *value = 0;
  }
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuCtxCreate_v2(CUcontext* result, unsigned, CUdevice device) {
  return create(result, device, CUPTI_DRIVER_TRACE_CBID_cuCtxCreate_v2);
}

FAKE_API CUresult cuCtxCreate_v4(CUcontext* result, CUctxCreateParams*, unsigned, CUdevice device) {
  return create(result, device, CUPTI_DRIVER_TRACE_CBID_cuCtxCreate_v4);
}

FAKE_API CUresult cuCtxDestroy_v2(CUcontext context) {
  if (CUresult error = usable()) return error;
  Call call(CUPTI_DRIVER_TRACE_CBID_cuCtxDestroy_v2);
  if (!context || !context->alive) return call.done(CUDA_ERROR_INVALID_CONTEXT);
  end_context(context);
  return call.done(CUDA_SUCCESS);
}

FAKE_API CUresult cuDevicePrimaryCtxRetain(CUcontext* result, CUdevice device) {
  if (CUresult error = usable()) return error;
  if (!is_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  Call call(CUPTI_DRIVER_TRACE_CBID_cuDevicePrimaryCtxRetain);
  static std::mutex& mutex = *new std::mutex;  // not `contexts_mutex`: new_context takes that
  std::lock_guard<std::mutex> lock(mutex);
  Primary& primary = primaries[device];
  if (!primary.context || !primary.context->alive) primary.context = new_context(device);
  ++primary.users;
  *result = primary.context;
  return call.done(CUDA_SUCCESS);
}

FAKE_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  // The context stays: programs that release and go on with its handle are none of a test's matter.
  return is_device(device) ? usable() : CUDA_ERROR_INVALID_DEVICE;
}

FAKE_API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice, unsigned) { return usable(); }

FAKE_API CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active) {
  *flags = 0;
  *active = current_context() != nullptr;
  return usable();
}

FAKE_API CUresult cuCtxSetCurrent(CUcontext context) {
  if (CUresult error = usable()) return error;
  if (!stack().empty()) stack().pop_back();
  if (context) stack().push_back(context);
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = current_context();
  return usable();
}

FAKE_API CUresult cuCtxPushCurrent_v2(CUcontext context) {
  if (CUresult error = usable()) return error;
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  stack().push_back(context);
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  if (stack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context) *context = stack().back();
  stack().pop_back();
  return usable();
}

FAKE_API CUresult cuCtxGetDevice(CUdevice* device) {
  CUcontext context = current_context();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  *device = context->device;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return usable();
}

FAKE_API CUresult cuCtxSynchronize(void) {
  CUcontext context = current_context();
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  Call call(CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize);
  uint64_t end;
  {
    std::lock_guard<std::mutex> lock(context->mutex);
    end = context->until;
  }
  sleep_until(end);
  release_unused(context->device);
  truth_flush();
  return call.done(CUDA_SUCCESS);
}
