// Makes one call of the C library fail, for Harness.faults: preloaded into a run and its workers.
// All of them count into one file, GODWIT_FAULTS, which says which call is to fail, and how.
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum mode { EIO_MODE = 1, ENOSPC_MODE, EMFILE_MODE, EINTR_MODE, SHORT_MODE };
// Kinds of calls: which modes apply to them.
#define ANY (1 << EIO_MODE)
#define GROWS (1 << ENOSPC_MODE)
#define OPENS (1 << EMFILE_MODE)
#define WAITS (1 << EINTR_MODE)
#define PARTS (1 << SHORT_MODE)

static struct plan {
  atomic_uint_fast64_t count;
  uint64_t target;
  uint32_t mode;
  atomic_uint fired;
  char what[512];
} *plan;

__attribute__((constructor)) static void attach(void) {
  const char *path = getenv("GODWIT_FAULTS");
  if (!path) return;
  int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  if (file < 0) return;
  void *found = mmap(NULL, sizeof *plan, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  syscall(SYS_close, file);
  if (found != MAP_FAILED) plan = found;
}

// Whether this call is the one: 0, or the mode.
static int chosen(int kinds, const char *call, const char *path, int file) {
  if (!plan || !(kinds & 1 << plan->mode) || (file >= 0 && file <= 2)) return 0;
  // libdispatch looks at its threads once a second, and ends the process where it cannot: no call of ours.
  int thread, end = 0;
  if (path && sscanf(path, "/proc/%d/stat%n", &thread, &end) == 1 && end && !path[end]) return 0;
  if (atomic_fetch_add(&plan->count, 1) + 1 != plan->target) return 0;
  if (atomic_exchange(&plan->fired, 1)) return 0;
  char name[256] = "";
  if (path) {
    snprintf(name, sizeof name, "%s", path);
  } else if (file > 2) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    long size = syscall(SYS_readlinkat, AT_FDCWD, link, name, sizeof name - 1);
    name[size < 0 ? 0 : size] = 0;
  }
  snprintf(plan->what, sizeof plan->what, "%s %s in %d", call, name, (int)getpid());
  return plan->mode;
}

static int number(int mode) {
  return mode == EIO_MODE ? EIO : mode == ENOSPC_MODE ? ENOSPC : mode == EMFILE_MODE ? EMFILE : EINTR;
}

#define REAL(name) \
  static __typeof__(name) *real; \
  if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);
#define FAIL(kinds, name, path, file, with) \
  do { \
    int mode_ = chosen(kinds, #name, path, file); \
    if (mode_) { errno = number(mode_); return with; } \
  } while (0)

#define OPEN(name, FLAGS, ARGUMENTS, FILE_PATH, PASS) \
  int name ARGUMENTS { \
    va_list rest; va_start(rest, FLAGS); \
    int mode = FLAGS & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0; va_end(rest); \
    REAL(name) \
    FAIL(ANY | OPENS | WAITS | (FLAGS & O_CREAT ? GROWS : 0), name, FILE_PATH, -1, -1); \
    return real PASS; \
  }
OPEN(open, flags, (const char *path, int flags, ...), path, (path, flags, mode))
OPEN(open64, flags, (const char *path, int flags, ...), path, (path, flags, mode))
OPEN(openat, flags, (int at, const char *path, int flags, ...), path, (at, path, flags, mode))
OPEN(openat64, flags, (int at, const char *path, int flags, ...), path, (at, path, flags, mode))

#define MOVE(name, KINDS, TYPE, SIZE, ARGUMENTS, PASS) \
  ssize_t name ARGUMENTS { \
    REAL(name) \
    int mode = chosen(KINDS | (SIZE > 1 ? PARTS : 0), #name, NULL, file); \
    if (mode == SHORT_MODE) SIZE = SIZE / 2; \
    else if (mode) { errno = number(mode); return -1; } \
    return real PASS; \
  }
MOVE(read, ANY | WAITS, , size, (int file, void *bytes, size_t size), (file, bytes, size))
MOVE(pread, ANY | WAITS, , size, (int file, void *bytes, size_t size, off_t at), (file, bytes, size, at))
MOVE(pread64, ANY | WAITS, , size, (int file, void *bytes, size_t size, off64_t at), (file, bytes, size, at))
MOVE(write, ANY | WAITS | GROWS, , size, (int file, const void *bytes, size_t size), (file, bytes, size))
MOVE(pwrite, ANY | WAITS | GROWS, , size, (int file, const void *bytes, size_t size, off_t at), (file, bytes, size, at))
MOVE(pwrite64, ANY | WAITS | GROWS, , size, (int file, const void *bytes, size_t size, off64_t at), (file, bytes, size, at))

#define ON_FILE(name, KINDS, ARGUMENTS, PASS) \
  int name ARGUMENTS { REAL(name) FAIL(KINDS, name, NULL, file, -1); return real PASS; }
ON_FILE(fsync, ANY | GROWS | WAITS, (int file), (file))
ON_FILE(fdatasync, ANY | GROWS | WAITS, (int file), (file))
ON_FILE(ftruncate, ANY | GROWS | WAITS, (int file, off_t size), (file, size))
ON_FILE(ftruncate64, ANY | GROWS | WAITS, (int file, off64_t size), (file, size))
ON_FILE(fstat, ANY, (int file, struct stat *found), (file, found))
ON_FILE(fstat64, ANY, (int file, struct stat64 *found), (file, found))
ON_FILE(fchmod, ANY, (int file, mode_t mode), (file, mode))
ON_FILE(flock, ANY | WAITS, (int file, int how), (file, how))

#define ON_PATH(name, KINDS, ARGUMENTS, PASS) \
  int name ARGUMENTS { REAL(name) FAIL(KINDS, name, path, -1, -1); return real PASS; }
ON_PATH(stat, ANY, (const char *path, struct stat *found), (path, found))
ON_PATH(stat64, ANY, (const char *path, struct stat64 *found), (path, found))
ON_PATH(lstat, ANY, (const char *path, struct stat *found), (path, found))
ON_PATH(lstat64, ANY, (const char *path, struct stat64 *found), (path, found))
ON_PATH(mkdir, ANY | GROWS, (const char *path, mode_t mode), (path, mode))
ON_PATH(rmdir, ANY, (const char *path), (path))
ON_PATH(unlink, ANY, (const char *path), (path))
ON_PATH(unlinkat, ANY, (int at, const char *path, int flags), (at, path, flags))
ON_PATH(mkdirat, ANY | GROWS, (int at, const char *path, mode_t mode), (at, path, mode))
ON_PATH(rename, ANY | GROWS, (const char *path, const char *to), (path, to))
ON_PATH(renameat, ANY | GROWS, (int at, const char *path, int there, const char *to), (at, path, there, to))
ON_PATH(renameat2, ANY | GROWS, (int at, const char *path, int there, const char *to, unsigned how), (at, path, there, to, how))
ON_PATH(link, ANY | GROWS, (const char *path, const char *to), (path, to))
ON_PATH(linkat, ANY | GROWS, (int at, const char *path, int there, const char *to, int how), (at, path, there, to, how))
ON_PATH(fstatat, ANY, (int at, const char *path, struct stat *found, int how), (at, path, found, how))

// The descriptor is closed all the same: close(2).
int close(int file) {
  REAL(close)
  int mode = chosen(ANY, "close", NULL, file);
  int code = real(file);
  if (mode) { errno = number(mode); return -1; }
  return code;
}

DIR *opendir(const char *path) { REAL(opendir) FAIL(ANY | OPENS, opendir, path, -1, NULL); return real(path); }
DIR *fdopendir(int file) { REAL(fdopendir) FAIL(ANY, fdopendir, NULL, file, NULL); return real(file); }
struct dirent *readdir(DIR *folder) { REAL(readdir) FAIL(ANY, readdir, NULL, dirfd(folder), NULL); return real(folder); }
int pipe2(int ends[2], int flags) { REAL(pipe2) FAIL(OPENS, pipe2, NULL, -1, -1); return real(ends, flags); }
int pipe(int ends[2]) { REAL(pipe) FAIL(OPENS, pipe, NULL, -1, -1); return real(ends); }
int dup(int file) { REAL(dup) FAIL(OPENS, dup, NULL, -1, -1); return real(file); }
int poll(struct pollfd *files, nfds_t count, int time) { REAL(poll) FAIL(WAITS, poll, NULL, -1, -1); return real(files, count, time); }
pid_t waitpid(pid_t pid, int *status, int how) { REAL(waitpid) FAIL(WAITS, waitpid, NULL, -1, -1); return real(pid, status, how); }

int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                const posix_spawnattr_t *attributes, char *const words[], char *const environment[]) {
  REAL(posix_spawn)
  int mode = chosen(ANY | OPENS, "posix_spawn", path, -1);
  return mode ? number(mode) : real(pid, path, actions, attributes, words, environment);
}

static int control(int (*real)(int, int, ...), int file, int command, long argument) {
  int kinds = ANY;
  if (command == F_SETLKW || command == F_OFD_SETLKW) kinds |= WAITS;
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) kinds |= OPENS;
  if (command == F_GETFD || command == F_SETFD || command == F_GETFL || command == F_SETFL) kinds = 0;
  FAIL(kinds, fcntl, NULL, file, -1);
  return real(file, command, argument);
}
#define CONTROL(name) \
  int name(int file, int command, ...) { \
    va_list rest; va_start(rest, command); long argument = va_arg(rest, long); va_end(rest); \
    REAL(name) return control(real, file, command, argument); \
  }
CONTROL(fcntl)
CONTROL(fcntl64)

long syscall(long call, ...) {
  long a[6];
  va_list rest; va_start(rest, call);
  for (int i = 0; i < 6; i++) a[i] = va_arg(rest, long);
  va_end(rest);
  static long (*real)(long, ...);
  if (!real) real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  int kinds = call == SYS_renameat2 ? ANY | GROWS
    : call == SYS_copy_file_range ? ANY | GROWS | WAITS | (a[4] > 1 ? PARTS : 0)
    : call == SYS_openat2 ? ANY | OPENS | WAITS
    : call == SYS_pipe2 ? OPENS : 0;
  if (kinds) {
    const char *path = call == SYS_copy_file_range || call == SYS_pipe2 ? NULL : (const char *)a[1];
    int mode = chosen(kinds, call == SYS_renameat2 ? "renameat2" : call == SYS_openat2 ? "openat2" : call == SYS_pipe2 ? "pipe2" : "copy_file_range", path, -1);
    if (mode == SHORT_MODE) a[4] /= 2;
    else if (mode) { errno = number(mode); return -1; }
  }
  return real(call, a[0], a[1], a[2], a[3], a[4], a[5]);
}
