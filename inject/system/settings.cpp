// Reads the environment, once.
#include "system/settings.h"

#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace flame {
namespace {

const char* variable(const char* name) {
  const char* value = getenv(name);
  return value ? value : "";
}

bool is_on(const char* name) {
  const char* value = variable(name);
  return *value && strcmp(value, "0") != 0;
}

uint64_t number(const char* name, uint64_t otherwise, uint64_t least, uint64_t most) {
  const char* value = variable(name);
  char* end = nullptr;
  errno = 0;
  uint64_t result = strtoull(value, &end, 10);
  if (end == value || *end || errno || *value == '-') return otherwise;
  return result < least ? least : result > most ? most : result;
}

int64_t signed_number(const char* name) {
  return strtoll(variable(name), nullptr, 10);
}

template <size_t kSize>
void copy(char (&to)[kSize], const char* value) {
  snprintf(to, kSize, "%s", value);
}

// Absolute, because the program may change its working directory before it forks.
void set_directory(Settings* result, const char* value) {
  char here[2048];
  int size;
  if (!*value) {
    size = snprintf(result->directory, sizeof result->directory, "/tmp/flame-%u", geteuid());
  } else if (*value != '/' && getcwd(here, sizeof here)) {
    size = snprintf(result->directory, sizeof result->directory, "%s/%s", here, value);
  } else {
    size = snprintf(result->directory, sizeof result->directory, "%s", value);
  }
  if (size >= int(sizeof result->directory)) result->directory[0] = 0;
  // A slash at the end would follow a link.
  for (size_t end = strlen(result->directory); end > 1 && result->directory[end - 1] == '/'; end--) {
    result->directory[end - 1] = 0;
  }
}

Settings read_settings() {
  Settings result = {};
  set_directory(&result, variable("FLAME_DIR"));
  result.debug = is_on("FLAME_DEBUG");
  result.keep_secrets = is_on("FLAME_KEEP_SECRETS");
  result.python = strcmp(variable("FLAME_PYTHON"), "0") != 0;
  result.calls = strcmp(variable("FLAME_CALLS"), "0") != 0;
  result.whole_graphs = strcmp(variable("FLAME_GRAPHS"), "whole") == 0;
  result.memory = is_on("FLAME_MEMORY_EVENTS");
  result.pool = number("FLAME_POOL", 0, 0, 1u << 20);
  result.flush_ms = uint32_t(number("FLAME_FLUSH_MS", 100, 1, 60000));
  result.max_bytes = number("FLAME_MAX_MB", 16384, 1, 1u << 20) << 20;
  result.duration_ms = number("FLAME_DURATION_MS", 0, 0, UINT32_MAX);
  result.clock = signed_number("FLAME_CLOCK");
  copy(result.pc, variable("FLAME_PC"));
  if (!*result.pc) copy(result.pc, "off");
  copy(result.cupti_path, variable("FLAME_CUPTI_PATH"));
  result.pc_scratch_bytes = number("FLAME_PC_SCRATCH", 16, 0, 4096) << 20;
  result.pc_hardware_bytes = number("FLAME_PC_HW", 0, 0, 65536) << 20;
  copy(result.kernel_kind, variable("FLAME_KERNEL_KIND"));
  copy(result.subscribers, variable("FLAME_SUBSCRIBERS"));
  return result;
}

Settings& all() {
  static Settings result = read_settings();
  return result;
}

// One write: lines of several processes do not mix. Nothing can be done where it fails.
__attribute__((format(printf, 1, 0))) void write_line(const char* format, va_list arguments) {
  char line[1024];
  int size = snprintf(line, sizeof line, "flame[%d]: ", getpid());
  size += vsnprintf(line + size, sizeof line - size_t(size) - 1, format, arguments);
  if (size > int(sizeof line) - 2) size = int(sizeof line) - 2;
  line[size] = '\n';
  if (write(STDERR_FILENO, line, size_t(size) + 1) < 0) return;
}

}  // namespace

const Settings& settings() { return all(); }

void record_into(const char* directory) {
  set_directory(&all(), directory ? directory : variable("FLAME_DIR"));
}

void warn(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_line(format, arguments);
  va_end(arguments);
}

void log(const char* format, ...) {
  if (!settings().debug) return;
  va_list arguments;
  va_start(arguments, format);
  write_line(format, arguments);
  va_end(arguments);
}

}  // namespace flame
