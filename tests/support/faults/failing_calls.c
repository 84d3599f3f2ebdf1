/* Lets the n-th system call of a kind fail, where it concerns a file under some folder.
 *
 * Loaded by LD_PRELOAD. Armed by `fail_call`, or in a program that knows nothing of it by
 * FAIL_CALL (a kind: the first argument of `fails` below), FAIL_NTH (1 is the first), FAIL_ERRNO (a number), FAIL_UNDER (an
 * absolute path: that and all below it) and FAIL_ALWAYS (1: those after the n-th fail as well).
 * `failed_calls` tells how many have failed; with FAIL_LOG, a path, every one is a line in it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static struct {
    char kind[16];
    char under[PATH_MAX];
    char log[PATH_MAX];
    int nth, error, always, seen, failed;
} plan;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void fail_call(const char *kind, int nth, int error, int always, const char *under) {
    pthread_mutex_lock(&lock);
    snprintf(plan.kind, sizeof plan.kind, "%s", kind);
    snprintf(plan.under, sizeof plan.under, "%s", under);
    plan.nth = nth;
    plan.error = error;
    plan.always = always;
    plan.seen = plan.failed = 0;
    pthread_mutex_unlock(&lock);
}

int failed_calls(void) {
    return plan.failed;
}

static const char *variable(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value ? value : otherwise;
}

__attribute__((constructor)) static void arm(void) {
    const char *kind = getenv("FAIL_CALL");
    if (!kind) return;
    snprintf(plan.log, sizeof plan.log, "%s", variable("FAIL_LOG", ""));
    fail_call(kind, atoi(variable("FAIL_NTH", "1")), atoi(variable("FAIL_ERRNO", "5")),
              atoi(variable("FAIL_ALWAYS", "0")), variable("FAIL_UNDER", "/"));
}

/* The path of an open file or folder; empty where it has none. */
static void path_of(int file, char *path) {
    char link[64];
    snprintf(link, sizeof link, file == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
}

static int is_under(int folder, const char *name) {
    char path[2 * PATH_MAX + 2];
    path[0] = 0;
    if (!name || name[0] != '/') path_of(folder, path);
    if (name) {
        size_t length = strlen(path);
        snprintf(path + length, sizeof path - length, "%s%s", name[0] == '/' ? "" : "/", name);
    }
    size_t length = strlen(plan.under);
    return !strncmp(path, plan.under, length) && (!path[length] || path[length] == '/');
}

static void note(const char *kind) {
    if (!plan.log[0]) return;
    int file = syscall(SYS_openat, AT_FDCWD, plan.log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (file < 0) return;
    char line[32];
    int length = snprintf(line, sizeof line, "%s %d\n", kind, plan.seen);
    syscall(SYS_write, file, line, length);
    syscall(SYS_close, file);
}

/* Whether this call is to fail; errno is set if so. */
static int fails(const char *kind, int folder, const char *name) {
    if (strcmp(plan.kind, kind)) return 0;
    int before = errno, failing = 0;
    pthread_mutex_lock(&lock);
    if (is_under(folder, name)) {
        plan.seen++;
        failing = plan.seen == plan.nth || (plan.always && plan.seen > plan.nth);
        if (failing) {
            plan.failed++;
            note(kind);
        }
    }
    pthread_mutex_unlock(&lock);
    errno = failing ? plan.error : before;
    return failing;
}

#define NEXT(result, name, ...)                                    \
    static result (*next)(__VA_ARGS__);                            \
    if (!next) next = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

/* "read": a file or folder is opened that stays as it is. */
#define KIND(flags) ((flags) & (O_CREAT | O_WRONLY | O_RDWR) ? "open" : "read")

#define OPEN(name)                                                 \
    int name(const char *path, int flags, ...) {                   \
        mode_t mode = 0;                                           \
        if (flags & (O_CREAT | __O_TMPFILE)) {                     \
            va_list more;                                          \
            va_start(more, flags);                                 \
            mode = va_arg(more, mode_t);                           \
            va_end(more);                                          \
        }                                                          \
        NEXT(int, #name, const char *, int, ...);                  \
        return fails(KIND(flags), AT_FDCWD, path) ? -1 : next(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                               \
    int name(int folder, const char *path, int flags, ...) {       \
        mode_t mode = 0;                                           \
        if (flags & (O_CREAT | __O_TMPFILE)) {                     \
            va_list more;                                          \
            va_start(more, flags);                                 \
            mode = va_arg(more, mode_t);                           \
            va_end(more);                                          \
        }                                                          \
        NEXT(int, #name, int, const char *, int, ...);             \
        return fails(KIND(flags), folder, path) ? -1 : next(folder, path, flags, mode); \
    }
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int file, const void *data, size_t size) {
    NEXT(ssize_t, "write", int, const void *, size_t);
    return fails("write", file, NULL) ? -1 : next(file, data, size);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    NEXT(ssize_t, "writev", int, const struct iovec *, int);
    return fails("write", file, NULL) ? -1 : next(file, parts, count);
}

#define PWRITE(name, offset)                                       \
    ssize_t name(int file, const void *data, size_t size, offset at) { \
        NEXT(ssize_t, #name, int, const void *, size_t, offset);   \
        return fails("write", file, NULL) ? -1 : next(file, data, size, at); \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define ON_FILE(name, kind)                                        \
    int name(int file) {                                           \
        NEXT(int, #name, int);                                     \
        return fails(kind, file, NULL) ? -1 : next(file);          \
    }
ON_FILE(fsync, "sync")
ON_FILE(fdatasync, "sync")

#define TRUNCATE(name, offset)                                     \
    int name(int file, offset size) {                              \
        NEXT(int, #name, int, offset);                             \
        return fails("truncate", file, NULL) ? -1 : next(file, size); \
    }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

#define ALLOCATE(name, offset)                                     \
    int name(int file, int mode, offset at, offset size) {         \
        NEXT(int, #name, int, int, offset, offset);                \
        return fails("truncate", file, NULL) ? -1 : next(file, mode, at, size); \
    }
ALLOCATE(fallocate, off_t)
ALLOCATE(fallocate64, off64_t)

int fchmod(int file, mode_t mode) {
    NEXT(int, "fchmod", int, mode_t);
    return fails("chmod", file, NULL) ? -1 : next(file, mode);
}

int chmod(const char *path, mode_t mode) {
    NEXT(int, "chmod", const char *, mode_t);
    return fails("chmod", AT_FDCWD, path) ? -1 : next(path, mode);
}

int flock(int file, int operation) {
    NEXT(int, "flock", int, int);
    return fails("lock", file, NULL) ? -1 : next(file, operation);
}

int mkdir(const char *path, mode_t mode) {
    NEXT(int, "mkdir", const char *, mode_t);
    return fails("mkdir", AT_FDCWD, path) ? -1 : next(path, mode);
}

int mkdirat(int folder, const char *path, mode_t mode) {
    NEXT(int, "mkdirat", int, const char *, mode_t);
    return fails("mkdir", folder, path) ? -1 : next(folder, path, mode);
}

int link(const char *from, const char *to) {
    NEXT(int, "link", const char *, const char *);
    return fails("link", AT_FDCWD, to) ? -1 : next(from, to);
}

int linkat(int folder, const char *from, int other, const char *to, int flags) {
    NEXT(int, "linkat", int, const char *, int, const char *, int);
    return fails("link", other, to) ? -1 : next(folder, from, other, to, flags);
}

int rename(const char *from, const char *to) {
    NEXT(int, "rename", const char *, const char *);
    return fails("rename", AT_FDCWD, to) ? -1 : next(from, to);
}

int renameat(int folder, const char *from, int other, const char *to) {
    NEXT(int, "renameat", int, const char *, int, const char *);
    return fails("rename", other, to) ? -1 : next(folder, from, other, to);
}

int renameat2(int folder, const char *from, int other, const char *to, unsigned flags) {
    NEXT(int, "renameat2", int, const char *, int, const char *, unsigned);
    return fails("rename", other, to) ? -1 : next(folder, from, other, to, flags);
}

#define MAP(name, offset)                                          \
    void *name(void *at, size_t size, int rights, int flags, int file, offset from) { \
        NEXT(void *, #name, void *, size_t, int, int, int, offset); \
        if (!(flags & MAP_ANONYMOUS) && fails("mmap", file, NULL)) return MAP_FAILED; \
        return next(at, size, rights, flags, file, from);          \
    }
MAP(mmap, off_t)
MAP(mmap64, off64_t)
