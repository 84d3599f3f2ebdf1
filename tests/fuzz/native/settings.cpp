// Settings from any environment: each is within its limits, and no text is cut to another one.
#include "system/settings.h"

#include "input.h"
// Not linked: what reads the environment is not seen from outside, and is run only once.
#include "system/settings.cpp"

namespace {

constexpr const char* kNames[] = {"FLAME_DIR",   "FLAME_DEBUG",       "FLAME_PYTHON",
                                  "FLAME_CLOCK", "FLAME_MAX_MB",      "FLAME_FLUSH_MS",
                                  "FLAME_PC",    "FLAME_DURATION_MS", "FLAME_CUPTI_PATH",
                                  "FLAME_CALLS", "FLAME_PC_SCRATCH",  "FLAME_PC_HW",
                                  "FLAME_KERNEL_KIND", "FLAME_GRAPHS",   "FLAME_POOL",
                                  "FLAME_MEMORY_EVENTS"};

template <size_t kSize>
bool ends(const char (&text)[kSize]) {
  return memchr(text, 0, kSize);
}

void check(const flame::Settings& read) {
  const char* wanted = getenv("FLAME_DIR");
  const size_t size = strlen(read.directory);
  require(ends(read.directory) && ends(read.pc) && ends(read.cupti_path), "texts end");
  require(ends(read.kernel_kind), "texts end");
  require(!size || read.directory[0] == '/', "the folder does not depend on where the program is");
  require(size < 2 || read.directory[size - 1] != '/', "it is no link that a slash follows");
  if (size && wanted && *wanted == '/')
    require(!strncmp(wanted, read.directory, size), "it is the one that was named, or none");
  require(read.flush_ms >= 1 && read.flush_ms <= 60000, "flush_ms");
  require(read.max_bytes >= 1u << 20 && read.max_bytes <= 1ull << 40, "max_bytes");
  require(read.duration_ms <= UINT32_MAX, "duration_ms");
  require(read.pc_scratch_bytes <= 4ull << 30 && read.pc_hardware_bytes <= 64ull << 30, "buffers");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in(data, size);
  for (const char* name : kNames) {
    unsetenv(name);
    if (in.flag()) setenv(name, in.bytes(in.byte() == 255 ? 9000 : 40).c_str(), 1);
  }
  check(flame::read_settings());
  return 0;
}
