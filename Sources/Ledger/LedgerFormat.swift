/// The ledger's format: `ledger.sqlite`, an SQLite database.
///
/// The ledger is history: what every run found and did, and which backups it left. Progress is not in
/// it: what need not be done again is known from the run directory alone. A ledger that is missing or
/// damaged costs the history, and with it the list of backups, and nothing else.
///
/// Rollback journal, `synchronous` EXTRA, `application_id` 0x476F6477 ("Godw"), `user_version` 1. Times
/// are seconds since 1970-01-01 UTC, sizes are bytes, durations are seconds.
///
///     runs          one row a run; one that was interrupted is resumed under its name
///       id            integer key
///       name          when it first began, such as 20261121T010203-456
///       kind          run, or rollback
///       pipeline      the pipeline's name
///       file          the path of its file
///       started       of the first start
///       ended         of the last start's end; NULL while it is under way, or was killed. Of a rollback that was
///                     killed, when the next one has brought it to its end
///       exit          the exit code of the last start; NULL while it is under way, or was killed
///       starts        how often it was started
///       host          where the last start was
///       workers       of the last start
///       options       of the last start: a JSON array of the command line's arguments
///       resumed       when the last start began; NULL once it has ended, or left the run to others
///       worked        seconds that its starts which ended were at work, and those that were killed and resumed
///                     up to their last store; NULL where it is not known
///       message       why the last start ended before it had a result; NULL where it had one
///       found … earlier  stores by verdict, as in the summary; NULL before stores were counted
///     stores        one row for each store that a run found, or that has a backup
///       id            integer key
///       path          unique
///       uuid          of its metadata, as the last attempt that wrote it left it; NULL where it could not be
///                     read
///       version       that the last attempt found or left
///       bytes         of the main file and its WAL, as the last attempt found them
///     attempts      one row for each time that a store was tried; none where it was found as left, unless the
///                     run's other rows would tell it otherwise
///       id            integer key, in the order in which they were recorded
///       run, store    keys
///       started, ended
///       verdict       as in the result; restored by a rollback, and pending where that was stopped before it;
///                     gone for a store that a later start of the run did not find any more; untried for one
///                     of which a start ended with another verdict than its rows say, or that is quarantined or
///                     has an earlier run's snapshot: its reason is that verdict
///       code          Core Data's error code
///       reason        of the first reason: a word such as damaged
///       reasons       JSON array: reason, entity, property, count, primaryKeys, message
///       losses        JSON array: kind, entity, property, count, message
///       source, destination   versions; of one that was restored, what it was put back as is its destination
///       rows, source_bytes, destination_bytes
///       stages        JSON array: stage, seconds, rows, bytes
///       digest        of the destination's main file, see `FileDigest`
///       identity      the name of the state in which the commit left the store
///       output        the destination's path
///       lane          which of the run's processes coordinated it, from 0
///       host          where that was
///       uuid          of the metadata of what the attempt left
///       source_uuid   of the store that it found
///     backups       one row for each store that a run put aside
///       id            integer key
///       path          unique: the main file
///       folder        its support folder, with external data; NULL where it has none
///       store, run    keys
///       kind          source: what a commit replaced; replaced: what a rollback replaced
///       bytes         of its files that no store shares
///       made          when
///       marks         JSON: inode, size and modification time of its files, see `BackupMark`
///       identity      the name of the state in which the store was left when this was put aside
///       digest        of that store's main file
///       state         kept, restored, pruning, pruned; missing where it was gone when it was to be removed
///       changed       when the state changed
///     starts        one row for each start of a run or rollback, and each removal of backups
///       id            integer key, in the order in which they began
///       time          when it began, by the clock of its machine
///       backups       the highest key of `backups` by then; 0 for none
///     quarantine    one row for each store of a pipeline that failed since it last ended well
///       pipeline      the path of its file, as in `fleet`; empty where it is not known: anybody's
///       store         key
///       reason        of the last failure
///       mark          the name of the state of its files before that attempt
///       settings      digest of the models and mapping models of that attempt
///       attempts      failures in a row with the same reason, mark and settings
///       first, last   of those
///       since         when it was quarantined; NULL where it was not
///       released      when a person released it; NULL where nobody did
///     fleet         one row for each store of a pipeline that the last search found
///       pipeline      the path of its file; of one that was moved, the new one once it is written to
///       store         key
///       verdict       of the last start that came to it and was not stopped in it, else pending; snapshot of
///                     a store in use with a migrated snapshot beside it; restored after a rollback
///       code, reason, message   of a store that did not end well; of one that was restored, its reason is the
///                     verdict from before
///       run           key of the run, not the rollback, that took it up last; NULL where none did
///       waiting       1 while that run has still to come to it, else 0
///
/// A ledger that has no table `fleet` gets one when it is next written to, filled from the last attempts;
/// one whose `fleet` has no column `waiting` gets that, in which nothing waits.
/// One whose attempts have no UUIDs gets the columns then, filled for stores that their last attempt left.
/// One without `worked` gets it, filled for runs of one start, and one without `starts` gets the starts of
/// its runs. One without `message` gets it, empty.
/// Where a quarantine is of no pipeline, that of the store's last attempt gets it.
///
/// Indexes: attempts by run and store, attempts by store, backups by store and by state.
package enum LedgerFormat {
  /// 1.
  static let version: Int64 = 1
  /// "Godw".
  package static let applicationID: Int64 = 0x476F_6477

  static let schema = """
    CREATE TABLE runs (
      id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
      pipeline TEXT NOT NULL, file TEXT NOT NULL, started REAL NOT NULL, ended REAL, exit INTEGER,
      starts INTEGER NOT NULL, host TEXT NOT NULL, workers INTEGER, options TEXT NOT NULL,
      found INTEGER, migrated INTEGER, same_model INTEGER, refused INTEGER, needs_mapping INTEGER,
      quarantined INTEGER, failed INTEGER, pending INTEGER, earlier INTEGER, resumed REAL,
      worked REAL, message TEXT);
    CREATE TABLE stores (
      id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, uuid TEXT, version TEXT, bytes INTEGER);
    CREATE TABLE attempts (
      id INTEGER PRIMARY KEY, run INTEGER NOT NULL, store INTEGER NOT NULL, started REAL NOT NULL,
      ended REAL NOT NULL, verdict TEXT NOT NULL, code INTEGER, reason TEXT, reasons TEXT,
      losses TEXT, source TEXT, destination TEXT, rows INTEGER, source_bytes INTEGER NOT NULL,
      destination_bytes INTEGER, stages TEXT, digest TEXT, identity TEXT, output TEXT,
      lane INTEGER, host TEXT, uuid TEXT, source_uuid TEXT,
      UNIQUE (run, store, ended));
    CREATE INDEX attempts_of_store ON attempts (store, id);
    CREATE TABLE backups (
      id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, folder TEXT, store INTEGER NOT NULL,
      run INTEGER NOT NULL, kind TEXT NOT NULL, bytes INTEGER NOT NULL, made REAL NOT NULL,
      marks TEXT NOT NULL, identity TEXT, digest TEXT, state TEXT NOT NULL, changed REAL NOT NULL);
    CREATE INDEX backups_of_store ON backups (store, id);
    CREATE INDEX backups_by_state ON backups (state, made);
    """ + quarantine + fleet + starts

  static let quarantine = """
    CREATE TABLE quarantine (
      pipeline TEXT NOT NULL, store INTEGER NOT NULL, reason TEXT NOT NULL, mark TEXT NOT NULL,
      settings TEXT NOT NULL, attempts INTEGER NOT NULL, first REAL NOT NULL, last REAL NOT NULL,
      since REAL, released REAL, PRIMARY KEY (pipeline, store)) WITHOUT ROWID;
    """

  static let fleet = """
    CREATE TABLE IF NOT EXISTS fleet (
      pipeline TEXT NOT NULL, store INTEGER NOT NULL, verdict TEXT NOT NULL, code INTEGER,
      reason TEXT, message TEXT, run INTEGER, waiting INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY (pipeline, store)) WITHOUT ROWID;
    """

  static let starts = """
    CREATE TABLE starts (
      id INTEGER PRIMARY KEY, time REAL NOT NULL, backups INTEGER NOT NULL);
    """

  static let waiting = "ALTER TABLE fleet ADD COLUMN waiting INTEGER NOT NULL DEFAULT 0;"
}
