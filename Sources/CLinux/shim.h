// What Linux has and Swift's Glibc module leaves out: extended attributes, and calls that glibc
// declares for _GNU_SOURCE only or as varargs. Names start with `linux_`, so that none collides
// should the Glibc module declare them one day.
#ifndef GODWIT_CLINUX_SHIM_H
#define GODWIT_CLINUX_SHIM_H

#include <linux/fs.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/xattr.h>
#include <unistd.h>

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

// renameat2(2) with RENAME_EXCHANGE
static inline int linux_exchange(const char *a, const char *b) {
  return (int)syscall(SYS_renameat2, -100 /* AT_FDCWD */, a, -100, b, 2u);
}

// renameat2(2) with RENAME_NOREPLACE
static inline int linux_rename_new(const char *from, const char *to) {
  return (int)syscall(SYS_renameat2, -100 /* AT_FDCWD */, from, -100, to, 1u);
}

#endif
