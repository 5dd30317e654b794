// Counts the allocations of every process of a run, for Harness.allocations: preloaded into them. What each has counted
// stands in a file of its own in the folder GODWIT_ALLOCATIONS, as a number of 64 bits.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

static atomic_ulong unseen, *count = &unseen;

void *malloc(size_t size) { (*count)++; return __libc_malloc(size); }
void *calloc(size_t number, size_t size) { (*count)++; return __libc_calloc(number, size); }
void *realloc(void *old, size_t size) { (*count)++; return __libc_realloc(old, size); }
void *aligned_alloc(size_t alignment, size_t size) { (*count)++; return __libc_memalign(alignment, size); }
void *memalign(size_t alignment, size_t size) { (*count)++; return __libc_memalign(alignment, size); }
int posix_memalign(void **place, size_t alignment, size_t size) {
  (*count)++;
  *place = __libc_memalign(alignment, size);
  return *place ? 0 : 12;
}

// Counted in the file itself: a process may end in any way.
__attribute__((constructor)) static void begin(void) {
  const char *folder = getenv("GODWIT_ALLOCATIONS");
  char path[4096];
  if (!folder) return;
  snprintf(path, sizeof path, "%s/%d", folder, (int)getpid());
  int file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof *count)) return;
  void *place = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (place != MAP_FAILED) count = place;
}
