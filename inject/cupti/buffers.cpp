// Pools buffers. CUPTI takes one per thread that launches and more where work waits on the GPU.
#include "cupti/buffers.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <mutex>

#include "flame.h"
#include "system/clock.h"

namespace flame {
namespace {

// CUPTI gives a buffer back when nothing in it is unfinished, or it is full: where work always waits
// on the GPU a large one delays the live view, a small one has to be asked for often.
constexpr size_t kSize = 256 * 1024;      // some 1,200 kernels
constexpr size_t kSmallSize = 64 * 1024;  // of it, at a low rate; pages that are not used cost nothing
constexpr uint64_t kHighRate = 10 * kSmallSize;  // bytes of records a second
constexpr uint64_t kRatePeriod = 100'000'000;    // ns
constexpr size_t kManyInUse = 64;
constexpr size_t kMaxBuffers = 512;   // 128 MiB: some 800,000 kernels that are not over yet
constexpr size_t kMaxIdle = 32;       // more are returned to the system
constexpr size_t kMaxMapped = 4096;   // 1 GiB

std::mutex lock;  // of all below
uint8_t* mapped[kMaxMapped];
size_t mapped_count = 0;
uint8_t* idle[kMaxIdle];
size_t idle_count = 0;
size_t in_use = 0;
size_t most_in_use = 0;

// The rate of what came back; also under `lock`.
uint64_t period_begin = 0, period_bytes = 0;
bool is_high = false;

// Several may write to it at once: nobody reads it.
alignas(4096) uint8_t last_resort[16 * 1024];

// With `lock` held, like what follows.
uint8_t* map_buffer() {
  if (mapped_count == kMaxMapped) return nullptr;
  void* place =
      mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) return nullptr;
  return mapped[mapped_count++] = static_cast<uint8_t*>(place);
}

uint8_t** find_mapped(const uint8_t* buffer) {
  return std::find(mapped, mapped + mapped_count, buffer);
}

void unmap(uint8_t** buffer) {
  munmap(*buffer, kSize);
  *buffer = mapped[--mapped_count];
}

uint8_t* take(bool limited) {
  std::lock_guard<std::mutex> guard(lock);
  if (limited && in_use >= kMaxBuffers) return nullptr;
  uint8_t* buffer = idle_count ? idle[--idle_count] : map_buffer();
  if (buffer) most_in_use = std::max(most_in_use, ++in_use);
  count_most(count_most_buffers, in_use);
  return buffer;
}

void watch_rate(size_t bytes) {
  const uint64_t time = now();
  period_bytes += bytes;
  if (time < period_begin + kRatePeriod) return;
  is_high = double(period_bytes) * 1e9 > double(kHighRate) * double(time - period_begin);
  period_begin = time;
  period_bytes = 0;
}

// With a deep queue buffers are many and come back late.
size_t size_to_tell() {
  std::lock_guard<std::mutex> guard(lock);
  return is_high || in_use > kManyInUse ? kSize : kSmallSize;
}

size_t most_at_once() {
  std::lock_guard<std::mutex> guard(lock);
  return most_in_use;
}

}  // namespace

// Before API 27 (CUDA 12.9) a null buffer crashes CUPTI: memory beyond the limit is the lesser evil.
ActivityBuffer take_buffer(bool null_is_right) {
  uint8_t* buffer = take(null_is_right);
  if (!null_is_right && most_at_once() > kMaxBuffers)
    note("more than 128 MiB of memory hold what CUPTI has not reported yet: much work waits on the "
         "GPU, or it is stuck");
  if (buffer) return {buffer, size_to_tell(), 0};
  if (null_is_right) return {nullptr, 0, 0};
  return {last_resort, sizeof last_resort, 1};
}

bool keeps_nothing(const uint8_t* buffer) { return buffer == last_resort; }

void give_back_buffer(uint8_t* buffer, size_t bytes) {
  std::lock_guard<std::mutex> guard(lock);
  uint8_t** known = find_mapped(buffer);
  if (known == mapped + mapped_count) return;
  watch_rate(bytes);
  in_use--;
  if (idle_count < kMaxIdle)
    idle[idle_count++] = buffer;
  else
    unmap(known);
}

size_t buffers_in_use() {
  std::lock_guard<std::mutex> guard(lock);
  return in_use;
}

void describe_buffers() {
  const size_t most = most_at_once();
  if (most <= kMaxBuffers) return;
  char text[64];
  snprintf(text, sizeof text, "%zu at most at once", most);
  meta("activity buffers", text);
}

}  // namespace flame
