// Makes the file of the dump, maps it once as a whole, grows it ahead of its writers, and truncates
// it at the end.
#include "dump/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "dump/schema.h"
#include "dump/sigbus_guard.h"
#include "flame.h"
#include "system/clock.h"
#include "system/descriptor.h"
#include "system/settings.h"

namespace flame {

std::mutex file_lock;

namespace {

constexpr uint64_t kFirstGrowth = 1u << 20;
constexpr uint64_t kKept = 4u << 20;  // behind the tail, where threads still write
constexpr uint64_t kTouched = 4u << 20;  // ahead of it
constexpr int kPopulateWrite = 23;       // MADV_POPULATE_WRITE, from Linux 5.14 on
constexpr uint64_t kShare = 8;           // where address space is limited, a part of it

struct File {
  Descriptor descriptor;
  char path[sizeof(Settings::directory) + 64] = "";
  char* base = nullptr;
  uint64_t mapped = 0;  // address space; the file never grows beyond it
  std::atomic<uint64_t> ready{0};  // bytes with room on the disk: a write there cannot fail
  uint64_t given_back = 0;
  uint64_t touched = 0;
  bool refused = false;  // there was no room: not asked again before it is needed
};
File file;

bool create(uint64_t start_unix) {
  int folder = open_folder();
  if (folder < 0) return false;
  char name[64];
  snprintf(name, sizeof name, "%d-%llx.fdump", getpid(), (unsigned long long)start_unix);
  const int opened = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  const bool made = file.descriptor.take(opened);
  if (opened >= 0 && !made) unlinkat(folder, name, 0);
  close(folder);
  if (!made) return false;
  snprintf(file.path, sizeof file.path, "%s/%s", settings().directory, name);
  return true;
}

uint64_t address_space() {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
  return limit.rlim_cur / kShare;
}

// The whole file at once, beyond its end as well: then it grows under one mapping. Only address
// space is taken.
bool map() {
  uint64_t size = std::min(settings().max_bytes, address_space());
  for (; size >= kHeaderSize + kChunkSize; size /= 2) {
    void* base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor.fd, 0);
    if (base == MAP_FAILED) continue;
    madvise(base, size, MADV_DONTDUMP);
    file.base = static_cast<char*>(base);
    file.mapped = size / kChunkSize * kChunkSize;
    return true;
  }
  return false;
}

bool has_descriptor() {
  if (file.descriptor.ours()) return true;
  Descriptor again;
  if (again.take(open(file.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)) &&
      file.descriptor.is_same(again.fd)) {
    file.descriptor = again;
    return true;
  }
  again.close();
  return false;
}

bool write_zeros(uint64_t from, uint64_t to) {
  static char zeros[kChunkSize];
  while (from < to) {
    const size_t part = std::min<uint64_t>(sizeof zeros, to - from);
    ssize_t size = pwrite(file.descriptor.fd, zeros, part, off_t(from));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    from += uint64_t(size);
  }
  return true;
}

bool allocate(uint64_t from, uint64_t to) {
  int result;
  do {
    result = fallocate(file.descriptor.fd, 0, off_t(from), off_t(to - from));
  } while (result != 0 && errno == EINTR);
  if (result == 0) return true;
  return (errno == EOPNOTSUPP || errno == ENOSYS) && write_zeros(from, to);
}

// Asked for and not tried, because a write beyond RLIMIT_FSIZE kills the process by a signal.
uint64_t size_limit() {
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return file.mapped;
  return std::min<uint64_t>(file.mapped, limit.rlim_cur / kChunkSize * kChunkSize);
}

bool grow_locked(uint64_t size, DropCause* why) {
  uint64_t from = file.ready.load(std::memory_order_relaxed);
  if (from >= size) return true;
  uint64_t limit = size_limit();
  *why = limit < size ? kSizeLimit : kDiskFull;
  if (limit < size || !has_descriptor()) return false;
  uint64_t step = std::clamp<uint64_t>(from, kFirstGrowth, kSegmentSize);
  for (; step >= kFirstGrowth; step /= 2) {
    uint64_t to = std::min(std::max(from + step / kChunkSize * kChunkSize, size), limit);
    if (!allocate(from, to)) continue;
    file.ready.store(to, std::memory_order_release);
    return true;
  }
  return false;
}

bool wants_more(uint64_t tail) {
  uint64_t ready = file.ready.load(std::memory_order_relaxed);
  return !file.refused && ready - tail < std::min<uint64_t>(kSegmentSize, ready) / 2;
}

void describe_header(uint64_t start_monotonic, uint64_t start_unix) {
  Header* head = header();
  head->version = kVersion;
  head->header_size = kHeaderSize;
  head->chunk_size = kChunkSize;
  head->pid = uint32_t(getpid());
  head->start_unix = start_unix;
  head->start_monotonic = start_monotonic;
  head->schema_offset = kSchemaOffset;
  head->schema_size = write_schema(file.base + kSchemaOffset, kHeaderSize - kSchemaOffset);
  head->tail.store(kHeaderSize, std::memory_order_relaxed);
  memcpy(head->magic, kMagic, sizeof kMagic);
}

// Shared memory, which no limit on the program's own counts.
bool forget_pages(uint64_t from, uint64_t size) {
  return mmap(file.base + from, size, PROT_READ | PROT_WRITE,
              MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

void close_file() {
  if (file.base) munmap(file.base, file.mapped);
  file.descriptor.close();
  file.base = nullptr;
  file.ready = 0;
  file.given_back = 0;
  file.touched = 0;
  file.refused = false;
}

}  // namespace

bool open_file() {
  std::lock_guard<std::mutex> guard(file_lock);
  uint64_t monotonic = now();
  int64_t clock = settings().clock ? settings().clock : look_at_clocks();
  uint64_t unix_time = monotonic + uint64_t(clock);
  DropCause why;
  if (!create(unix_time)) {
    log("no dump in %s: %s", settings().directory, strerror(errno));
    return false;
  }
  if (!map() || !grow_locked(kHeaderSize + kChunkSize, &why)) {
    log("no room for %s: %s", file.path, strerror(errno));
    unlink(file.path);
    close_file();
    return false;
  }
  describe_header(monotonic, unix_time);
  log("recording to %s", file.path);
  return true;
}

const char* dump_path() { return file.path; }

// By its own descriptor first: the dump may have been removed, or moved.
int open_for_reading() {
  std::lock_guard<std::mutex> guard(file_lock);
  if (!has_descriptor()) return -1;
  char path[64];
  snprintf(path, sizeof path, "/proc/thread-self/fd/%d", file.descriptor.fd);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) fd = open(file.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 || file.descriptor.is_same(fd)) return fd;
  close(fd);
  return -1;
}

Header* header() { return reinterpret_cast<Header*>(file.base); }

char* file_at(uint64_t offset) { return file.base + offset; }

uint64_t file_ready() { return file.ready.load(std::memory_order_acquire); }

bool grow_file(uint64_t size, DropCause* why) {
  std::lock_guard<std::mutex> guard(file_lock);
  return grow_locked(size, why);
}

void grow_ahead(uint64_t tail) {
  std::lock_guard<std::mutex> guard(file_lock);
  DropCause why;
  if (!wants_more(tail)) return;
  file.refused = !grow_locked(file.ready.load(std::memory_order_relaxed) + kChunkSize, &why);
}

// The first write to a page may wait for the journal of the file system: better here than in a
// launch. Without the lock, as this takes milliseconds; beyond the end of the file it does nothing.
void touch_ahead(uint64_t tail) {
  uint64_t from = std::max(file.touched, tail), to = std::min(tail + kTouched, file_ready());
  if (from >= to) return;
  madvise(file.base + from, to - from, kPopulateWrite);
  file.touched = to;
}

void give_back_memory(uint64_t tail) {
  std::lock_guard<std::mutex> guard(file_lock);
  if (!file.base || tail < file.given_back + 2 * kKept) return;
  madvise(file.base + file.given_back, tail - kKept - file.given_back, MADV_DONTNEED);
  file.given_back = tail - kKept;
}

void truncate_file(uint64_t size) {
  std::lock_guard<std::mutex> guard(file_lock);
  file.ready.store(size, std::memory_order_release);
  if (has_descriptor() && ftruncate(file.descriptor.fd, off_t(size)) != 0)
    log("cannot truncate the dump");
}

void abandon_file() { close_file(); }

void guard_file() {
  std::lock_guard<std::mutex> guard(file_lock);
  keep_sigbus_guard();
}

// All of it if that can be: the limits of the kernel are on what could be written, too.
bool detach_file(const void* address) {
  if (!file.base) return false;
  const size_t chunk = size_t(static_cast<const char*>(address) - file.base) / kChunkSize;
  return forget_pages(0, file.mapped) || forget_pages(0, file_ready()) ||
         forget_pages(chunk * kChunkSize, kChunkSize);
}

bool in_file(const void* address) {
  const char* place = static_cast<const char*>(address);
  return file.base && place >= file.base && place < file.base + file.mapped;
}

}  // namespace flame
