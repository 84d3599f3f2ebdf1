// Writes the meta records of every dump: which process this is. Of the environment only the
// variables that are named here are read: others may hold secrets.
#include "process/process_info.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "flame.h"
#include "process/secrets.h"
#include "system/settings.h"

#ifndef FLAME_VERSION
#define FLAME_VERSION "0"
#endif

namespace flame {
namespace {

char rank[16], world_size[16];

bool is_number(const char* value) {
  size_t digits = strspn(value, "0123456789");
  return digits > 0 && digits < sizeof rank && value[digits] == 0;
}

void first_number(char (&to)[16], std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = getenv(name);
    if (!value || !is_number(value)) continue;
    snprintf(to, sizeof to, "%s", value);
    return;
  }
}

size_t read_whole(const char* path, char* to, size_t room) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  size_t size = 0;
  ssize_t part;
  while (size < room && (part = read(fd, to + size, room - size)) > 0) size += size_t(part);
  close(fd);
  return size;
}

void meta_from_file(const char* key, const char* path) {
  char value[256];
  size_t size = read_whole(path, value, sizeof value);
  while (size && value[size - 1] == '\n') size--;
  meta(key, std::string_view(value, size));
}

void meta_number(const char* key, int value) {
  char digits[16];
  snprintf(digits, sizeof digits, "%d", value);
  meta(key, digits);
}

// With lifecycle_lock held.
void meta_command() {
  static char value[8192], masked[sizeof value];
  size_t size = read_whole("/proc/self/cmdline", value, sizeof value);
  if (!settings().keep_secrets) {
    size = mask_secrets(value, size, masked, sizeof masked);
    memcpy(value, masked, size);
  }
  while (size && value[size - 1] == 0) size--;
  for (size_t at = 0; at < size; at++) {
    if (value[at] == 0) value[at] = ' ';
  }
  meta("command", std::string_view(value, size));
}

void meta_executable() {
  char value[4096];
  ssize_t size = readlink("/proc/self/exe", value, sizeof value);
  if (size > 0) meta("executable", std::string_view(value, size_t(size)));
}

void meta_host() {
  char value[256] = "";
  if (gethostname(value, sizeof value - 1) == 0) meta("host", value);
}

}  // namespace

const char* library_version() { return FLAME_VERSION; }

void read_identity() {
  first_number(rank, {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"});
  first_number(world_size, {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"});
}

void describe_process(int forked_from) {
  meta("library", library_version());
  meta_from_file("process", "/proc/self/comm");
  meta_executable();
  meta_command();
  meta_host();
  meta_from_file("boot_id", "/proc/sys/kernel/random/boot_id");
  meta("rank", rank);
  meta("world_size", world_size);
  meta_number("parent_pid", getppid());
  if (forked_from) meta_number("forked_from", forked_from);
}

}  // namespace flame
