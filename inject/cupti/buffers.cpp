// Pools buffers. CUPTI takes one per thread that launches and more where work waits on the GPU.
#include "cupti/buffers.h"

#include <sys/mman.h>

#include <mutex>

namespace flame {
namespace {

constexpr size_t kMaxBuffers = 512;  // 128 MiB: some 800,000 kernels that are not over yet
constexpr size_t kMaxIdle = 32;      // more are returned to the system

std::mutex lock;
uint8_t* idle[kMaxIdle];
size_t idle_count = 0;
size_t in_use = 0;

}  // namespace

uint8_t* take_buffer() {
  std::lock_guard<std::mutex> guard(lock);
  if (in_use == kMaxBuffers) return nullptr;
  uint8_t* buffer = nullptr;
  if (idle_count) {
    buffer = idle[--idle_count];
  } else {
    void* place = mmap(nullptr, kBufferSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                       -1, 0);
    if (place == MAP_FAILED) return nullptr;
    buffer = static_cast<uint8_t*>(place);
  }
  in_use++;
  return buffer;
}

void give_back_buffer(uint8_t* buffer) {
  std::lock_guard<std::mutex> guard(lock);
  in_use--;
  if (idle_count < kMaxIdle)
    idle[idle_count++] = buffer;
  else
    munmap(buffer, kBufferSize);
}

}  // namespace flame
