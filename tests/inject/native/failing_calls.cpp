// Lets calls of the library fail: linked into it with --wrap, it sees those of the library alone.
// FAIL_CALL names one of the calls below, FAIL_AT which one of them fails, FAIL_ERRNO with what;
// FAIL_ON=1: so do all after it. With FAIL_COUNTS, the name of a file, it says how many there were.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

// Of a call: its number, its name, what it returns, where it fails, and its parameters.
#define CALLS(C)                                                                                  \
  C(openat, int, -1, (int folder, const char* path, int flags, mode_t mode), (folder, path, flags, mode)) \
  C(open, int, -1, (const char* path, int flags, mode_t mode), (path, flags, mode))               \
  C(fcntl, int, -1, (int fd, int command, long argument), (fd, command, argument))                \
  C(mkdirat, int, -1, (int folder, const char* path, mode_t mode), (folder, path, mode))          \
  C(fstat, int, -1, (int fd, struct stat* status), (fd, status))                                  \
  C(fstatat, int, -1, (int folder, const char* path, struct stat* status, int flags), (folder, path, status, flags)) \
  C(fstatvfs, int, -1, (int fd, struct statvfs* status), (fd, status))                            \
  C(fchmod, int, -1, (int fd, mode_t mode), (fd, mode))                                           \
  C(read, ssize_t, -1, (int fd, void* to, size_t size), (fd, to, size))                           \
  C(pwrite, ssize_t, -1, (int fd, const void* from, size_t size, off_t at), (fd, from, size, at)) \
  C(fallocate, int, -1, (int fd, int mode, off_t from, off_t size), (fd, mode, from, size))       \
  C(ftruncate, int, -1, (int fd, off_t size), (fd, size))                                         \
  C(renameat, int, -1, (int a, const char* from, int b, const char* to), (a, from, b, to))        \
  C(mmap, void*, MAP_FAILED, (void* at, size_t size, int may, int flags, int fd, off_t from), (at, size, may, flags, fd, from)) \
  C(madvise, int, -1, (void* at, size_t size, int advice), (at, size, advice))                    \
  C(socket, int, -1, (int domain, int type, int protocol), (domain, type, protocol))              \
  C(bind, int, -1, (int fd, const sockaddr* address, socklen_t size), (fd, address, size))        \
  C(listen, int, -1, (int fd, int backlog), (fd, backlog))                                        \
  C(socketpair, int, -1, (int domain, int type, int protocol, int* ends), (domain, type, protocol, ends)) \
  C(accept4, int, -1, (int fd, sockaddr* address, socklen_t* size, int flags), (fd, address, size, flags)) \
  C(sendmsg, ssize_t, -1, (int fd, const msghdr* message, int flags), (fd, message, flags))       \
  C(getrlimit, int, -1, (__rlimit_resource_t which, rlimit* limit), (which, limit))               \
  C(pthread_create, int, EAGAIN, (pthread_t* thread, const pthread_attr_t* how, void* (*work)(void*), void* with), (thread, how, work, with)) \
  C(pthread_key_create, int, EAGAIN, (pthread_key_t* key, void (*end)(void*)), (key, end))        \
  C(pthread_setspecific, int, ENOMEM, (pthread_key_t key, const void* value), (key, value))       \
  C(malloc, void*, nullptr, (size_t size), (size))                                                \
  C(aligned_alloc, void*, nullptr, (size_t align, size_t size), (align, size))                    \
  C(calloc, void*, nullptr, (size_t count, size_t size), (count, size))                           \
  C(realloc, void*, nullptr, (void* place, size_t size), (place, size))                           \
  C(strdup, char*, nullptr, (const char* text), (text))

enum Call {
#define NUMBER(name, ...) k_##name,
  CALLS(NUMBER)
#undef NUMBER
  kCalls
};

constexpr const char* kNames[] = {
#define NAME(name, ...) #name,
    CALLS(NAME)
#undef NAME
};

std::atomic<long> counts[kCalls];

struct Plan {
  int call = kCalls;
  long at = atol(text("FAIL_AT"));
  int error = atoi(text("FAIL_ERRNO"));
  bool goes_on = *text("FAIL_ON");

  Plan() {
    for (int each = 0; each < kCalls; each++)
      if (!strcmp(kNames[each], text("FAIL_CALL"))) call = each;
  }

  static const char* text(const char* name) {
    const char* value = getenv(name);
    return value ? value : "";
  }
};

bool fails(Call call) {
  static const Plan plan;
  const long number = ++counts[call];
  if (plan.call != call || number < plan.at || (number > plan.at && !plan.goes_on)) return false;
  errno = plan.error;
  return true;
}

std::atomic<long> thrown_by_helper;

struct AtEnd {
  const pid_t process = getpid();
  ~AtEnd() {
    const char* path = getenv("FAIL_COUNTS");
    FILE* file = path && getpid() == process ? fopen(path, "w") : nullptr;
    for (int each = 0; file && each < kCalls; each++)
      fprintf(file, "%s %ld\n", kNames[each], counts[each].load());
    if (file) fprintf(file, "thrown_by_helper %ld\n", thrown_by_helper.load());
    if (file) fclose(file);
  }
} at_end;

}  // namespace

// Without memory the C++ library takes a lock for it, in which no child may be forked.
extern "C" void* __real___cxa_allocate_exception(size_t size) noexcept;
extern "C" void* __wrap___cxa_allocate_exception(size_t size) noexcept {
  char thread[16] = "";
  pthread_getname_np(pthread_self(), thread, sizeof thread);
  thrown_by_helper += !strcmp(thread, "flame");
  return __real___cxa_allocate_exception(size);
}

#define WRAP(name, Result, failed, parameters, arguments) \
  extern "C" Result __real_##name parameters;             \
  extern "C" Result __wrap_##name parameters {            \
    if (fails(k_##name)) return failed;                   \
    return __real_##name arguments;                       \
  }
CALLS(WRAP)
