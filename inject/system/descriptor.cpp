// Moves descriptors out of the program's way, and knows them again.
#include "system/descriptor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace flame {
namespace {

constexpr int kFirst = 128;

int away_from_standard(int fd) {
  if (fd < 0) return fd;
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, kFirst);
  if (moved < 0) moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  close(fd);
  return moved;
}

}  // namespace

bool Descriptor::take(int opened) {
  struct stat status;
  fd = away_from_standard(opened);
  if (fd < 0) return false;
  if (fstat(fd, &status) != 0) status = {};
  device = status.st_dev;
  inode = status.st_ino;
  return true;
}

bool Descriptor::is_same(int other) const {
  struct stat status;
  return fstat(other, &status) == 0 && status.st_dev == device && status.st_ino == inode;
}

void Descriptor::close() {
  if (ours()) ::close(fd);
  fd = -1;
}

}  // namespace flame
