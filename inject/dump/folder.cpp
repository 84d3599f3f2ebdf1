// Opens the folder that dumps go to, if nobody else can change what is in it.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "flame.h"
#include "system/settings.h"

namespace flame {
namespace {

constexpr char kUsual[] = "/tmp/flame-%u";         // anybody can guess this name
constexpr char kPrivate[] = "/tmp/flame-%u.XXXXXX";  // and nobody this one

bool is_usual(const char* path) {
  char usual[64];
  snprintf(usual, sizeof usual, kUsual, geteuid());
  return strcmp(path, usual) == 0;
}

// Its owner can put something else in the place of what is in it, whatever it is. So can who may
// write to it: a folder that the user has named may be meant so.
bool is_trusted(const struct stat& folder, bool is_named) {
  if (folder.st_uid == geteuid()) return is_named || (folder.st_mode & 022) == 0;
  return is_named && folder.st_uid == 0;
}

// With what it is called in `parent`.
int open_trusted(int parent, const char* path, bool is_named) {
  if (mkdirat(parent, path, 0700) != 0 && errno != EEXIST) return -1;
  const int folder = openat(parent, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat status;
  if (folder < 0 || (fstat(folder, &status) == 0 && is_trusted(status, is_named))) return folder;
  close(folder);
  errno = EACCES;
  return -1;
}

struct Paths {
  char first[64];  // of those that are there, "" for none
  char fresh[64];  // for one that is to be made
};

// Whether it has been made for us before.
bool is_private(const char* path) {
  struct stat status;
  return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && is_trusted(status, false);
}

Paths private_paths() {
  Paths paths = {};
  snprintf(paths.fresh, sizeof paths.fresh, kPrivate, geteuid());
  const char* name = strrchr(paths.fresh, '/') + 1;
  const size_t size = strlen(name), same = size - strlen("XXXXXX");
  DIR* all = opendir("/tmp");
  for (dirent* each; all && (each = readdir(all));) {
    char path[64];
    if (strlen(each->d_name) != size || strncmp(each->d_name, name, same) != 0) continue;
    snprintf(path, sizeof path, "/tmp/%.50s", each->d_name);
    const bool is_first = !*paths.first || strcmp(path, paths.first) < 0;
    if (is_first && is_private(path)) memcpy(paths.first, path, sizeof path);
  }
  if (all) closedir(all);
  return paths;
}

// Somebody else has made the usual folder, or may write to it. The user has chosen no place that
// flame could name with the reason when the command ends: it is said here and now.
int open_another() {
  Paths paths = private_paths();
  const char* path = *paths.first ? paths.first : mkdtemp(paths.fresh);
  const int folder = path ? open_trusted(AT_FDCWD, path, false) : -1;
  static bool is_said;  // this may be tried again and again
  if (folder < 0 && !is_said) {
    is_said = true;
    warn("nothing is recorded: others can write to %s (FLAME_DIR names another folder)",
         settings().directory);
  }
  if (folder < 0) return -1;
  warn("others can write to %s: recording to %s", settings().directory, path);
  record_into(path);
  return folder;
}

int open_recording_folder() {
  const char* path = settings().directory;
  const bool is_named = !is_usual(path);
  const int folder = open_trusted(AT_FDCWD, path, is_named);
  const bool is_taken = folder < 0 && (errno == EACCES || errno == ELOOP || errno == ENOTDIR);
  return is_taken && !is_named ? open_another() : folder;
}

}  // namespace

int open_folder(const char* name) {
  const int folder = open_recording_folder();
  if (!name || folder < 0) return folder;
  const int below = open_trusted(folder, name, true);
  close(folder);
  return below;
}

}  // namespace flame
