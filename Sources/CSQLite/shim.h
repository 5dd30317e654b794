#include <sqlite3.h>

// Who is told what goes wrong. Before the first use of the library; later it changes nothing.
// https://sqlite.org/errlog.html
static inline void godwit_sqlite_set_log(void (*log)(void *, int, const char *)) {
  sqlite3_config(SQLITE_CONFIG_LOG, log, (void *)0);
}

// Counts no memory: nobody asks, and it takes a mutex for every allocation. Likewise.
// https://sqlite.org/c3ref/c_config_covering_index_scan.html#sqliteconfigmemstatus
static inline void godwit_sqlite_count_no_memory(void) {
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

// Where SQLite puts its temporary files; null for where it likes. A global variable, guarded by the
// mutex that SQLite itself takes to read it (SQLITE_MUTEX_STATIC_TEMPDIR in its os_unix.c). It must
// be memory of SQLite's own. https://sqlite.org/c3ref/temp_directory.html
static inline void godwit_sqlite_use_temporary_folder(const char *path) {
  sqlite3_initialize();
  char *copy = path ? sqlite3_mprintf("%s", path) : 0;
  sqlite3_mutex *mutex = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_VFS1);
  sqlite3_mutex_enter(mutex);
  sqlite3_free(sqlite3_temp_directory);
  sqlite3_temp_directory = copy;
  sqlite3_mutex_leave(mutex);
}
