// Allocations are host memory, whoever asks for them. Pools only count: they grow in steps, and give
// back what is free in them when they are trimmed, or beyond their threshold at synchronization.
#include <algorithm>
#include <cstdlib>

#include "fake/fake.h"

struct CUmemPoolHandle_st {
  uint64_t base = 0;  // what CUPTI calls it by
  int device = 0;
  uint64_t size = 0, used = 0, threshold = 0;
};

namespace fake {
namespace {

struct Block {
  size_t size;
  CUpti_ActivityMemoryKind kind;
  CUcontext context;
  CUmemoryPool pool;
  uint64_t generation;  // of CUPTI's memory records when it was allocated
};
std::mutex& mutex = *new std::mutex;  // of all below
auto& blocks = *new std::map<uintptr_t, Block>;
auto& pools = *new std::vector<CUmemoryPool>;
auto& default_pools = *new std::map<int, CUmemoryPool>;

constexpr uint64_t kStep = 32u << 20;  // by so much a pool grows. [A choice.]
constexpr uint32_t kNoNumber = UINT32_MAX;
constexpr uint64_t kFirstPool = 0x302000000;

uint64_t stepped(uint64_t bytes) { return (bytes + kStep - 1) / kStep * kStep; }

// Told of within the call, with its number, whatever becomes of it.
struct Told {
  const Call& call;
  CUcontext context;
  CUstream stream = nullptr;  // null: not of an asynchronous call
};

void tell_memory(const Told& told, Work work) {
  Operation operation;
  operation.start = operation.end = now();
  operation.correlation = told.call.correlation();
  operation.device = uint32_t(told.context->device);
  operation.context = told.context->id;
  operation.stream = told.stream ? told.stream->id : kNoNumber;
  work.asynchronous = told.stream != nullptr;
  operation.work = work;
  truth_operation(operation);
  activity(operation);
}

void set_pool(Work* work, CUmemoryPool pool) {
  if (!pool) return;
  work->pool = pool->base;
  work->pool_size = pool->size;
  work->pool_used = pool->used;
  work->pool_threshold = pool->threshold;
}

void tell_change(const Told& told, CUpti_ActivityMemoryOperationType what, uintptr_t address,
                 const Block& block) {
  Work work;
  work.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  work.operation = what;
  work.address = address;
  work.bytes = block.size;
  work.target = block.kind;
  const bool unknown = block.generation != memory_generation();
  if (unknown && faults().unsized) work.bytes = 0;
  set_pool(&work, block.pool);
  tell_memory(told, work);
}

void tell_pool(const Told& told, CUpti_ActivityMemoryPoolOperationType what, CUmemoryPool pool,
               uint64_t keep) {
  Work work;
  work.kind = CUPTI_ACTIVITY_KIND_MEMORY_POOL;
  work.operation = what;
  work.bytes = keep;
  set_pool(&work, pool);
  tell_memory({told.call, told.context}, work);
}

// With the lock held, like what follows.
CUmemoryPool new_pool(int device) {
  auto* pool = new CUmemPoolHandle_st;
  pool->base = kFirstPool + pools.size() * 0x1000000;
  pool->device = device;
  pools.push_back(pool);
  return pool;
}

// It is there as soon as somebody needs it. [A choice.]
CUmemoryPool default_pool(const Told& told, int device) {
  CUmemoryPool& pool = default_pools[device];
  if (pool) return pool;
  pool = new_pool(device);
  tell_pool(told, CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED, pool, 0);
  return pool;
}

bool is_pool(CUmemoryPool pool) { return std::count(pools.begin(), pools.end(), pool); }

void take_from(CUmemoryPool pool, size_t size) {
  if (!pool) return;
  pool->used += size;
  pool->size = std::max(pool->size, stepped(pool->used));
}

void keep_only(CUmemoryPool pool, uint64_t bytes) {
  pool->size = std::min(pool->size, std::max(stepped(pool->used), stepped(bytes)));
}

struct Wanted {
  size_t size;
  CUpti_ActivityMemoryKind kind;
  bool of_pool = false;
  CUstream stream = nullptr;      // of those of pools
  CUmemoryPool pool = nullptr;    // null: the default one
};

CUresult allocate(void** result, const Wanted& wanted, uint32_t cbid, bool per_thread = false) {
  if (CUresult error = usable()) return error;
  Call call(cbid);
  CUcontext context = current_context();
  if (!context) return call.done(CUDA_ERROR_INVALID_CONTEXT);
  if (!result || !wanted.size) return call.done(CUDA_ERROR_INVALID_VALUE);
  *result = malloc(wanted.size);
  if (!*result) return call.done(CUDA_ERROR_OUT_OF_MEMORY);
  Told told = {call, context};
  if (wanted.of_pool) told.stream = stream_of(context, wanted.stream, per_thread);
  std::lock_guard<std::mutex> lock(mutex);
  CUmemoryPool pool = wanted.pool;
  if (wanted.of_pool && !pool) pool = default_pool(told, context->device);
  take_from(pool, wanted.size);
  const Block block = {wanted.size, wanted.kind, context, pool, memory_generation()};
  blocks[uintptr_t(*result)] = block;
  tell_change(told, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION, uintptr_t(*result), block);
  return call.done(CUDA_SUCCESS);
}

// Whatever frees it, the record names the context that it was allocated in. [A choice.]
CUresult release(void* pointer, uint32_t cbid, CUstream stream = nullptr, bool per_thread = false,
                 bool asynchronous = false) {
  if (CUresult error = usable()) return error;
  Call call(cbid);
  if (!pointer) return call.done(CUDA_SUCCESS);
  CUcontext context = current_context();
  if (asynchronous && !context) return call.done(CUDA_ERROR_INVALID_CONTEXT);
  Told told = {call, context};
  if (asynchronous) told.stream = stream_of(context, stream, per_thread);
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = blocks.find(uintptr_t(pointer));
    if (found == blocks.end()) return call.done(CUDA_ERROR_INVALID_VALUE);
    const Block block = found->second;
    blocks.erase(found);
    if (block.pool) block.pool->used -= block.size;
    told.context = block.context;
    tell_change(told, CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE, uintptr_t(pointer), block);
  }
  free(pointer);
  return call.done(CUDA_SUCCESS);
}

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

}  // namespace

CUpti_ActivityMemoryKind memory_kind(const void* pointer, size_t size) {
  std::lock_guard<std::mutex> lock(mutex);
  auto next = blocks.upper_bound(uintptr_t(pointer));
  if (next == blocks.begin()) return CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
  auto [start, block] = *--next;
  bool inside = uintptr_t(pointer) + size <= start + block.size;
  return inside ? block.kind : CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE;
}

// CUPTI does not tell of it.
void release_unused(int device) {
  std::lock_guard<std::mutex> lock(mutex);
  for (CUmemoryPool pool : pools)
    if (pool->device == device) keep_only(pool, pool->threshold);
}

}  // namespace fake

using namespace fake;

#define FAKE_CBID(name) CUPTI_DRIVER_TRACE_CBID_##name

FAKE_API CUresult cuMemAlloc_v2(CUdeviceptr* result, size_t size) {
  return allocate(reinterpret_cast<void**>(result), {size, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE},
                  FAKE_CBID(cuMemAlloc_v2));
}

FAKE_API CUresult cuMemFree_v2(CUdeviceptr address) {
  return release(pointer(address), FAKE_CBID(cuMemFree_v2));
}

FAKE_API CUresult cuMemAllocManaged(CUdeviceptr* result, size_t size, unsigned) {
  return allocate(reinterpret_cast<void**>(result), {size, CUPTI_ACTIVITY_MEMORY_KIND_MANAGED},
                  FAKE_CBID(cuMemAllocManaged));
}

FAKE_API CUresult cuMemAllocHost_v2(void** result, size_t size) {
  return allocate(result, {size, CUPTI_ACTIVITY_MEMORY_KIND_PINNED}, FAKE_CBID(cuMemAllocHost_v2));
}

FAKE_API CUresult cuMemHostAlloc(void** result, size_t size, unsigned) {
  return allocate(result, {size, CUPTI_ACTIVITY_MEMORY_KIND_PINNED}, FAKE_CBID(cuMemHostAlloc));
}

FAKE_API CUresult cuMemFreeHost(void* address) {
  return release(address, FAKE_CBID(cuMemFreeHost));
}

#define FAKE_ASYNC(suffix, per_thread)                                                            \
  FAKE_API CUresult cuMemAllocAsync##suffix(CUdeviceptr* result, size_t size, CUstream stream) {  \
    return allocate(reinterpret_cast<void**>(result),                                             \
                    {size, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, true, stream},                      \
                    FAKE_CBID(cuMemAllocAsync##suffix), per_thread);                              \
  }                                                                                               \
  FAKE_API CUresult cuMemAllocFromPoolAsync##suffix(CUdeviceptr* result, size_t size,             \
                                                    CUmemoryPool pool, CUstream stream) {         \
    return allocate(reinterpret_cast<void**>(result),                                             \
                    {size, CUPTI_ACTIVITY_MEMORY_KIND_DEVICE, true, stream, pool},                \
                    FAKE_CBID(cuMemAllocFromPoolAsync##suffix), per_thread);                      \
  }                                                                                               \
  FAKE_API CUresult cuMemFreeAsync##suffix(CUdeviceptr address, CUstream stream) {                \
    return release(pointer(address), FAKE_CBID(cuMemFreeAsync##suffix), stream, per_thread, true); \
  }
FAKE_ASYNC(, false)
FAKE_ASYNC(_ptsz, true)

FAKE_API CUresult cuMemPoolCreate(CUmemoryPool* result, const CUmemPoolProps* wanted) {
  if (CUresult error = usable()) return error;
  Call call(FAKE_CBID(cuMemPoolCreate));
  CUcontext context = current_context();
  if (!result || !wanted || !context) return call.done(CUDA_ERROR_INVALID_VALUE);
  std::lock_guard<std::mutex> lock(mutex);
  *result = new_pool(context->device);
  tell_pool({call, context}, CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED, *result, 0);
  return call.done(CUDA_SUCCESS);
}

// What is still in use of it stays, as the driver has it.
FAKE_API CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  if (CUresult error = usable()) return error;
  Call call(FAKE_CBID(cuMemPoolDestroy));
  CUcontext context = current_context();
  std::lock_guard<std::mutex> lock(mutex);
  if (!context || !is_pool(pool)) return call.done(CUDA_ERROR_INVALID_VALUE);
  tell_pool({call, context}, CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED, pool, 0);
  pool->size = pool->used;
  return call.done(CUDA_SUCCESS);
}

FAKE_API CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep) {
  if (CUresult error = usable()) return error;
  Call call(FAKE_CBID(cuMemPoolTrimTo));
  CUcontext context = current_context();
  std::lock_guard<std::mutex> lock(mutex);
  if (!context || !is_pool(pool)) return call.done(CUDA_ERROR_INVALID_VALUE);
  keep_only(pool, keep);
  tell_pool({call, context}, CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED, pool, keep);
  return call.done(CUDA_SUCCESS);
}

FAKE_API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute what, void* value) {
  if (CUresult error = usable()) return error;
  std::lock_guard<std::mutex> lock(mutex);
  if (!value || !is_pool(pool)) return CUDA_ERROR_INVALID_VALUE;
  if (what == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) pool->threshold = *static_cast<uint64_t*>(value);
  return CUDA_SUCCESS;
}
