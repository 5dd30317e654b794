// What Linux has and Swift's Glibc module leaves out: extended attributes, and calls that glibc
// declares for _GNU_SOURCE only or as varargs. Names start with `linux_`, so that none collides
// should the Glibc module declare them one day.
#ifndef GODWIT_CLINUX_SHIM_H
#define GODWIT_CLINUX_SHIM_H

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <malloc.h>
#include <spawn.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

// mallopt(3): the heap of a thread keeps what is freed, up to so many bytes, and grows by as many as
// `step` at once.
static inline void linux_keep_freed_memory(int bytes, int step) {
  mallopt(M_TRIM_THRESHOLD, bytes);
  mallopt(M_MMAP_THRESHOLD, bytes / 2);
  mallopt(M_TOP_PAD, step);
}

// lseek(2)
static const int linux_seek_data = 3;
static const int linux_seek_hole = 4;

// ioctl_ficlone(2)
static inline int linux_clone_file(int destination, int source) {
  return ioctl(destination, FICLONE, source);
}

// copy_file_range(2), at the descriptors' own offsets where a pointer is null
static inline ssize_t linux_copy_file_range(
    int source, off_t *source_offset, int destination, off_t *destination_offset, size_t size) {
  return syscall(
      SYS_copy_file_range, source, source_offset, destination, destination_offset, size, 0u);
}

// openat2(2) with RESOLVE_NO_SYMLINKS: no part of the path may be a symbolic link.
static inline int linux_open_without_links(int folder, const char *path, int flags, unsigned mode) {
  struct open_how how = {
      .flags = (unsigned long long)flags, .mode = mode, .resolve = RESOLVE_NO_SYMLINKS};
  return (int)syscall(SYS_openat2, folder, path, &how, sizeof how);
}

// statx(2) with STATX_MNT_ID: the number of the mount that a path leads to; 0 where the kernel does not
// tell. A bind mount has the device number of its file system, and a number of its own here.
static inline int linux_mount_of(const char *path, unsigned long long *mount) {
  unsigned char answer[256];  // struct statx, whose header collides with glibc's
  unsigned mask;
  *mount = 0;
  if (syscall(SYS_statx, AT_FDCWD, path, 0, 0x1000u, answer) != 0) return -1;
  memcpy(&mask, answer, sizeof mask);
  if (mask & 0x1000u) memcpy(mount, answer + 144, sizeof *mount);
  return 0;
}

// statx(2) with STATX_BTIME: when a file was made; -1 where the file system does not tell. A link is not followed.
static inline int linux_birth_of(const char *path, struct timespec *birth) {
  unsigned char answer[256];  // as above
  unsigned mask, nanoseconds;
  long long seconds;
  if (syscall(SYS_statx, AT_FDCWD, path, 0x100, 0x800u, answer) != 0) return -1;
  memcpy(&mask, answer, sizeof mask);
  if (!(mask & 0x800u)) return -1;
  memcpy(&seconds, answer + 80, sizeof seconds);
  memcpy(&nanoseconds, answer + 88, sizeof nanoseconds);
  birth->tv_sec = seconds;
  birth->tv_nsec = nanoseconds;
  return 0;
}

// fstatfs(2): the type of the file system that an open file lies on; 0 where nothing is known.
static inline unsigned linux_volume_type(int file) {
  struct statfs answer;
  return fstatfs(file, &answer) == 0 ? (unsigned)answer.f_type : 0;
}

// open(2): O_PATH, which glibc declares for _GNU_SOURCE only
static const int linux_path_only = 010000000;

// sync_file_range(2) with SYNC_FILE_RANGE_WRITE: begins to write what the page cache holds of the
// range, and does not wait for it. No promise about durability.
static inline int linux_start_writing(int file, off_t offset, off_t size) {
  return (int)syscall(SYS_sync_file_range, file, offset, size, 2u);
}

// openat(2), a variadic function
static inline int linux_open_at(int folder, const char *path, int flags, unsigned mode) {
  return openat(folder, path, flags, mode);
}

// renameat2(2) with RENAME_EXCHANGE
static inline int linux_exchange_at(int a_folder, const char *a, int b_folder, const char *b) {
  return (int)syscall(SYS_renameat2, a_folder, a, b_folder, b, 2u);
}

// renameat2(2) with RENAME_NOREPLACE
static inline int linux_rename_new_at(
    int from_folder, const char *from, int to_folder, const char *to) {
  return (int)syscall(SYS_renameat2, from_folder, from, to_folder, to, 1u);
}

// pipe2(2) with O_CLOEXEC
static inline int linux_pipe(int ends[2]) { return (int)syscall(SYS_pipe2, ends, 02000000); }

// posix_spawn_file_actions_addfchdir_np(3), since glibc 2.29
static inline int linux_spawn_in(posix_spawn_file_actions_t *actions, int folder) {
  extern int posix_spawn_file_actions_addfchdir_np(posix_spawn_file_actions_t *, int);
  return posix_spawn_file_actions_addfchdir_np(actions, folder);
}

#endif
