// Loaded cubins: told with their checksum, and saved where PC samples need them.
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>

#include "clock.h"
#include "cupti_state.h"
#include "flame.h"
#include "sampling.h"

namespace flame {
namespace {

constexpr uint64_t kMaxSaved = 2ull << 30;  // bytes of cubins per process
constexpr char kFolder[] = "cubins";

std::atomic<uint64_t> saved{0};

struct File {  // closes itself
  int fd;
  explicit File(int opened) : fd(opened) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd >= 0) close(fd);
  }
};

int open_folder() {
  File dump(open(settings().directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dump.fd < 0) return -1;
  if (mkdirat(dump.fd, kFolder, 0700) && errno != EEXIST) return -1;
  return openat(dump.fd, kFolder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

bool write_all(int fd, const char* data, size_t size) {
  while (size) {
    ssize_t written = ::write(fd, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

// Under another name first: whoever sees the file sees all of it.
bool write_file(int folder, const char* name, const CUpti_ModuleResourceData& data) {
  char other[64];
  snprintf(other, sizeof other, ".%s.%d.%u", name, getpid(), thread_id());
  File file(openat(folder, other, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.fd < 0) return false;
  if (write_all(file.fd, data.pCubin, data.cubinSize) && !renameat(folder, other, folder, name))
    return true;
  unlinkat(folder, other, 0);
  return false;
}

enum Found { kNothing, kSame, kOther };  // kOther: another cubin with the same checksum

Found look_for(int folder, const char* name, size_t size) {
  struct stat found;
  if (fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW)) return kNothing;
  return S_ISREG(found.st_mode) && static_cast<size_t>(found.st_size) == size ? kSame : kOther;
}

bool within_limit(size_t size) {
  if (saved.fetch_add(size, std::memory_order_relaxed) + size <= kMaxSaved) return true;
  saved.fetch_sub(size, std::memory_order_relaxed);
  note("not all cubins were saved: they are more than 2 GiB");
  return false;
}

// `name` is what all processes of a recording call this cubin: it is saved once.
bool save(const char* name, const CUpti_ModuleResourceData& data) {
  File folder(open_folder());
  if (folder.fd < 0) return false;
  Found found = look_for(folder.fd, name, data.cubinSize);
  if (found != kNothing) return found == kSame;
  return within_limit(data.cubinSize) && write_file(folder.fd, name, data);
}

uint64_t checksum(const CUpti_ModuleResourceData& data) {
  auto compute = cupti()->cuptiGetCubinCrc;
  CUpti_GetCubinCrcParams arguments{};
  arguments.size = CUpti_GetCubinCrcParamsSize;
  arguments.cubinSize = data.cubinSize;
  arguments.cubin = data.pCubin;
  return compute && !compute(&arguments) ? arguments.cubinCrc : 0;
}

// The text of the path relative to the dump, 0 when the cubin was not saved.
uint32_t saved_path(uint64_t crc, const CUpti_ModuleResourceData& data) {
  char path[64];
  int folder = snprintf(path, sizeof path, "%s/", kFolder);
  snprintf(path + folder, sizeof path - folder, "%016" PRIx64 ".cubin", crc);
  if (save(path + folder, data)) return text(path);
  note("a cubin could not be saved: its instructions cannot be shown");
  return 0;
}

}  // namespace

void module_loaded(CUcontext context, const CUpti_ModuleResourceData& data) {
  if (!data.pCubin || !data.cubinSize) return;
  Uncancelled uncancelled;
  Module module{};
  module.crc = checksum(data);
  module.size = data.cubinSize;
  module.time = now();
  module.path = sampling_wanted() && module.crc ? saved_path(module.crc, data) : 0;
  module.module = data.moduleId;
  if (auto look = cupti()->cuptiGetContextId) look(context, &module.context);
  put(module);
}

}  // namespace flame
