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

// A double-quoted name that is no column is an error, and not a text.
// https://sqlite.org/quirks.html#double_quoted_string_literals_are_accepted
static inline int godwit_sqlite_take_no_name_for_a_text(sqlite3 *database) {
  return sqlite3_db_config(database, SQLITE_DBCONFIG_DQS_DML, 0, (int *)0);
}

// Lets no trigger fire. https://sqlite.org/c3ref/c_dbconfig_defensive.html#sqlitedbconfigenabletrigger
static inline int godwit_sqlite_fire_no_triggers(sqlite3 *database) {
  return sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, (int *)0);
}

// What the operating system said when a page could not be read, of a database's file or of its journal
// or WAL; 0 when all could be. https://sqlite.org/c3ref/c_fcntl_begin_atomic_write.html
static inline int godwit_sqlite_read_errno(sqlite3 *database, const char *name) {
  int code = 0;
  sqlite3_file_control(database, name, SQLITE_FCNTL_LAST_ERRNO, &code);
  sqlite3_file *journal = 0;
  if (code == 0 && sqlite3_file_control(database, name, SQLITE_FCNTL_JOURNAL_POINTER, &journal) == SQLITE_OK
      && journal && journal->pMethods && journal->pMethods->xFileControl)  // a journal in memory has none
    journal->pMethods->xFileControl(journal, SQLITE_FCNTL_LAST_ERRNO, &code);
  return code;
}
