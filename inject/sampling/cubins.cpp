// Saves cubins beside the dump where PC samples need them, else keeps them until they do: in a file
// without a name, which goes with the process. The callback is the only chance to have them.
#include "sampling/cubins.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <mutex>
#include <new>

#include "flame.h"
#include "sampling/sampling.h"
#include "system/descriptor.h"
#include "system/settings.h"

namespace flame {
namespace {

constexpr uint64_t kMaxSaved = 2ull << 30;    // bytes of cubins per process
constexpr uint64_t kMaxKept = 128ull << 20;   // likewise
constexpr uint64_t kLeft = 64ull << 20;       // bytes of the disk that are left to the dump
constexpr uint64_t kLeftByKept = 512ull << 20;  // likewise by cubins that nobody may ever need
constexpr char kFolder[] = "cubins";

struct File {  // closes itself
  int fd;
  explicit File(int opened) : fd(opened) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd >= 0) close(fd);
  }
};

// A write beyond the limit would end the process by a signal.
bool allowed(uint64_t end) {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
         end <= limit.rlim_cur;
}

// A disk that is full would end the recording, a cubin that is missing only costs texts.
bool leaves(uint64_t left, int fd, uint64_t size) {
  struct statvfs disk;
  if (fstatvfs(fd, &disk)) return true;
  return uint64_t(disk.f_bavail) * disk.f_frsize >= size + left;
}

bool write_all(int fd, const char* data, size_t size, uint64_t at) {
  if (!allowed(at + size)) return false;
  while (size) {
    ssize_t written = pwrite(fd, data, size, static_cast<off_t>(at));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    at += static_cast<uint64_t>(written);
    size -= static_cast<size_t>(written);
  }
  return true;
}

// saved

// Under another name first: whoever sees the file sees all of it.
bool write_file(int folder, const char* name, const char* data, size_t size) {
  char other[96];
  snprintf(other, sizeof other, ".%s.%d.%u", name, getpid(), thread_id());
  File file(openat(folder, other, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.fd < 0) return false;
  if (write_all(file.fd, data, size, 0) && !renameat(folder, other, folder, name)) return true;
  unlinkat(folder, other, 0);
  return false;
}

enum Found { kNothing, kSame, kOther };  // kOther: nothing that was saved here

Found look_for(int folder, const char* name, size_t size) {
  struct stat found;
  if (fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW)) return kNothing;
  return S_ISREG(found.st_mode) && static_cast<size_t>(found.st_size) == size ? kSame : kOther;
}

bool within_limit(size_t size) {
  static std::atomic<uint64_t> saved{0};
  if (saved.fetch_add(size, std::memory_order_relaxed) + size <= kMaxSaved) return true;
  saved.fetch_sub(size, std::memory_order_relaxed);
  note("not all cubins were saved: they are more than 2 GiB");
  return false;
}

// `name` is what all processes of a recording call this cubin: it is saved once.
bool save(const char* name, const char* data, size_t size) {
  File folder(open_folder(kFolder));
  if (folder.fd < 0) return false;
  Found found = look_for(folder.fd, name, size);
  if (found != kNothing) return found == kSame;
  return leaves(kLeft, folder.fd, size) && within_limit(size) &&
         write_file(folder.fd, name, data, size);
}

void write_saved(Module module, const char* cubin) {
  char path[64];
  int folder = snprintf(path, sizeof path, "%s/", kFolder);
  snprintf(path + folder, sizeof path - folder, "%016" PRIx64 "-%016" PRIx64 ".cubin", module.crc,
           module.hash);
  if (save(path + folder, cubin, module.size)) module.path = text(path);
  else note("a cubin could not be saved: its instructions cannot be shown");
  put(module);
}

// kept

struct Kept {
  Kept* next;
  Module module;
  uint64_t at;  // in the store
};

std::mutex kept_lock;  // of all below
Descriptor store;
constexpr size_t kBuckets = 4096;  // of what may be 30,000 cubins of 4 KiB, each looked for
Kept* kept[kBuckets];
uint64_t stored = 0;
uint32_t not_kept = 0;

// A child does without: it has no kernels, and the disk should not be full of what nobody needs.
void close_store() { store.close(); }

bool open_store() {
  if (store.ours()) return true;
  if (store.fd >= 0) return false;  // the program has closed it: what was there is lost
  static std::once_flag registered;
  std::call_once(registered, at_fork_child, close_store);
  File folder(open_folder());
  char name[64];
  snprintf(name, sizeof name, ".cubins.%d.%u", getpid(), thread_id());
  const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const int file = folder.fd < 0 ? -1 : openat(folder.fd, name, flags, 0600);
  if (file >= 0) unlinkat(folder.fd, name, 0);
  return store.take(file);
}

Kept*& bucket_of(const Module& module) { return kept[module.hash % kBuckets]; }

bool is_kept(const Module& module) {
  for (const Kept* one = bucket_of(module); one; one = one->next) {
    if (one->module.hash == module.hash && one->module.crc == module.crc) return true;
  }
  return false;
}

bool has_room(uint64_t size) {
  return stored + size <= std::min(kMaxKept, settings().max_bytes);
}

bool keep(const Module& module, const char* cubin) {
  if (is_kept(module)) return true;
  if (!has_room(module.size) || !open_store()) return false;
  if (!leaves(kLeftByKept, store.fd, module.size)) return false;
  Kept*& bucket = bucket_of(module);
  auto* one = new (std::nothrow) Kept{bucket, module, stored};
  if (!one || !write_all(store.fd, cubin, module.size, stored)) {
    delete one;
    return false;
  }
  bucket = one;
  stored += module.size;
  return true;
}

// false: sampling has begun in the meantime.
bool keep_unless_wanted(const Module& module, const char* cubin) {
  std::lock_guard<std::mutex> guard(kept_lock);
  if (sampling_wanted()) return false;
  not_kept += !keep(module, cubin);
  return true;
}

const char* map_store() {
  if (!stored || !store.ours()) return nullptr;
  void* all = mmap(nullptr, stored, PROT_READ, MAP_SHARED, store.fd, 0);
  return all == MAP_FAILED ? nullptr : static_cast<const char*>(all);
}

void write_bucket(Kept*& bucket, const char* all) {
  for (std::unique_ptr<Kept> one; bucket;) {
    one.reset(bucket);
    bucket = one->next;
    if (all) write_saved(one->module, all + one->at);
    else not_kept++;
  }
}

void write_kept(const char* all) {
  for (Kept*& bucket : kept) write_bucket(bucket, all);
}

void note_what_is_missing() {
  if (began_late())
    note("PC samples of kernels that were loaded before flame was attached have no instructions");
  if (not_kept)
    note("some cubins that were loaded before PC sampling began could not be kept: their "
         "instructions have no text");
}

}  // namespace

void write_module(const Module& module, const char* cubin) {
  if (module.crc && (sampling_wanted() || !keep_unless_wanted(module, cubin)))
    return write_saved(module, cubin);
  put(module);
}

// Whoever loads a module now waits for the lock, and then saves it without.
void save_kept_cubins() {
  std::lock_guard<std::mutex> guard(kept_lock);
  const char* all = map_store();
  write_kept(all);
  if (all) munmap(const_cast<char*>(all), stored);
  stored = 0;
  store.close();
  note_what_is_missing();
}

}  // namespace flame
