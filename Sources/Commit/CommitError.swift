import GodwitPlanning
import SystemPackage

/// Why a destination store could not be made, or could not take its place.
///
/// In every case the source store is as it was, but for ``storeMissing(store:backup:)``, which
/// tells of a file that somebody else took away.
package enum CommitError: Error, Equatable {
  /// The store's path is a symbolic link, which a rename would replace, or no file at all.
  case notAFile(store: FilePath)
  /// The store's file is a mount of its own: no rename can put another in its place.
  case mountPoint(store: FilePath)
  /// Another process has the source store open.
  case storeInUse(store: FilePath)
  /// Nobody can tell whether another process has the source store open: the volume has no leases that tell of
  /// everybody, or this user may not take one.
  case storeMayBeInUse(store: FilePath)
  /// The copy of a file that a backup is made of does not hold what the file does.
  case incompleteBackup(path: FilePath)
  /// The source store is no longer the one that was planned for.
  case sourceChanged(store: FilePath)
  /// Another process has taken the work on the store over, while this one did not get on.
  case leaseLost(store: FilePath)
  /// The file by which the run held the work, or the folder of it, is not there any more.
  case lockGone(store: FilePath, lock: FilePath)
  /// The volume cannot hold both stores for the length of the commit.
  case notEnoughSpace(volume: FilePath, neededBytes: Int64, freeBytes: Int64)
  /// The volume filled up while the destination was being written.
  case outOfSpace(path: FilePath)
  /// Something is at the destination that this run did not put there.
  case destinationExists(path: FilePath)
  /// A uniqueness constraint that the rows do not keep. Core Data's 134111.
  case uniqueness(entity: String?, index: String, rows: RowTally)
  /// A value that an object was given in place of an invalid one, or that derives from such a change, is another
  /// object's, too.
  ///
  /// - Parameter constraint: The properties that must differ together.
  case givenValue(
    entity: String, property: String, constraint: String, rows: RowTally, isDefault: Bool)
  /// A stage left no usable checkpoint for a unit.
  case missingCheckpoint(stage: String, unit: Int)
  /// The copy and the link stage of a unit do not speak of the same rows.
  case unequalStages(table: String, unit: Int, row: Int64)
  /// A checkpoint holds a row that is not of its table, or not in its place.
  case damagedRow(table: String, unit: Int, row: Int64)
  /// The plan asks for something that cannot be done.
  case unusablePlan(String)
  /// SQLite finds fault with the file that was just written.
  case damagedDestination(path: FilePath, finding: String)
  /// The file holds another number of rows than the checkpoints.
  case wrongRowCount(table: String, entityNumber: Int64?, expected: Int64, found: Int64)
  /// The file holds other values than the checkpoints.
  case digestMismatch(table: String, entity: String?)
  /// External data that the run wrote is missing, or is not what it wrote.
  case damagedExternalData(path: FilePath)
  /// External data of two stores wants the same file name.
  case externalDataConflict(path: FilePath)
  /// The commit journal is of another version or cannot be read.
  case unreadableJournal(path: FilePath)
  /// The commit journal in the run directory is not of this run.
  case foreignJournal(path: FilePath, reason: String)
  /// A commit was cut off, and both the new store and the file that had its name before have been written to
  /// since.
  case twoStores(store: FilePath, other: FilePath, backup: FilePath)
  /// A commit was cut off, and the file that had its name before is not as it was, and damaged.
  case damagedOriginal(store: FilePath, other: FilePath, backup: FilePath)
  /// A commit was cut off, and what it had put in place is damaged.
  case damagedInPlace(store: FilePath, backup: FilePath?)
  /// There is no file at the store's path any more.
  case storeMissing(store: FilePath, backup: FilePath)
}

extension CommitError {
  /// Core Data's error code, where it has one for this.
  package var code: Int? {
    switch self {
    case .uniqueness, .givenValue: 134111  // NSMigrationConstraintViolationError
    default: nil
    }
  }

  /// True when another process is the reason.
  package var isInterference: Bool {
    switch self {
    case .storeInUse, .storeMayBeInUse, .sourceChanged: true
    default: false
    }
  }
}

extension CommitError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .mountPoint(let store):
      "\(store) is a mount of its own, and no other file can take its name. Mount its folder "
        + "instead, or name an output (in a pipeline: commit: { beside: SUFFIX })."
    case .notAFile(let store):
      "\(store) is a symbolic link or not a regular file. Give the path of the file itself."
    case .storeInUse(let store):
      "\(store) is open in another process. Close it and run again; finished work is kept."
    case .storeMayBeInUse(let store):
      "Whether another process has \(store) open cannot be found out: its volume has no file "
        + "leases that tell (as FUSE and some network file systems), or the file belongs to another user. Stop "
        + "every application that uses it, then run again with --store-is-offline (in a pipeline: stores.in-use: offline)."
    case .incompleteBackup(let path):
      "\(path) does not hold what was copied to it. The source is untouched; check the volume and "
        + "run again."
    case .leaseLost(let store):
      "Another run has taken \(store) over, since this one did not get on. Nothing was published. "
        + "See the result of the other run."
    case .lockGone(let store, let lock):
      "\(lock), by which this run holds the work on \(store), is gone: it was moved or removed, or the run was "
        + "stopped elsewhere. Nothing was published. Put its folder back where it was moved, and run again."
    case .sourceChanged(let store):
      "\(store) was changed after the migration had been planned, so the new store would lack "
        + "the change. Nothing was replaced. Run again; the plan is made again."
    case .notEnoughSpace(let volume, let needed, let free):
      "\(volume) has \(free) bytes free and the commit needs \(needed). "
        + "Free \(needed - free) bytes and run again; only the commit is left to do."
    case .outOfSpace(let path):
      "The volume is full while \(path) is written. Free some space and run again; finished "
        + "work is kept."
    case .destinationExists(let path):
      "\(path) already exists and does not belong to this run. Move it away or name another output."
    case .uniqueness(let entity, let index, let rows):
      Self.duplicates(of: entity, in: index, rows)
        + " Make the values of the source unique, or drop the constraint from the destination model. "
        + "`--invalid set-aside` leaves such objects alone: nothing tells which of them should stay."
    case .givenValue(let entity, let property, let constraint, let rows, let isDefault):
      "\(entity).\(property) is in the uniqueness constraint \(constraint), and "
        + (isDefault ? "with default values in place of invalid ones" : "without what is set aside")
        + " it has a value that is another object's, too (Z_PK \(listed(rows)); Core Data error 134111). "
        + (isDefault
          ? "`--invalid set-aside` leaves invalid objects out instead of giving them default values."
          : "Correct the invalid objects in the source, or drop the constraint from the destination model.")
    case .missingCheckpoint(let stage, let unit):
      "The \(stage) stage left no usable checkpoint of unit \(unit). Run again; the unit is redone."
    case .unequalStages(let table, let unit, let row):
      "The checkpoints of unit \(unit) of \(table) disagree from row \(row) on: copy and link are "
        + "not of the same rows. Run again; the unit is redone."
    case .damagedRow(let table, let unit, let row):
      "The checkpoint of unit \(unit) of \(table) is out of order or malformed at row \(row). "
        + "Run again; the unit is redone."
    case .unusablePlan(let what):
      "The migration plan cannot be followed: \(what). Run again; if it happens twice, this is a "
        + "defect of Godwit."
    case .damagedDestination(let path, let finding):
      "The new store \(path) is not sound: \(finding). The source is untouched; run again, and "
        + "check the disk if it happens twice."
    case .wrongRowCount(let table, let number, let expected, let found):
      "The new store's \(table) has \(found) rows\(number.map { " with Z_ENT \($0)" } ?? "") and "
        + "the checkpoints have \(expected). The source is untouched; run again."
    case .digestMismatch(let table, let entity):
      "The new store's \(table) does not hold what was validated"
        + "\(entity.map { " for \($0)" } ?? ""). The source is untouched; run again, and check "
        + "memory and disk if it happens twice."
    case .damagedExternalData(let path):
      "External data that was written is missing, or is not what was written: \(path). Nothing was "
        + "published. Run again, and check the disk if it happens twice."
    case .externalDataConflict(let path):
      "\(path) already exists with other content. Move it away or name another output."
    case .unreadableJournal(let path):
      "\(path) cannot be read as a commit journal: another version of godwit wrote it, or it is "
        + "damaged. Finish the commit with the version that began it. Where the journal is damaged, the "
        + "store is whole, the old or the new one, which `godwit inspect` tells: keep what lies beside it, "
        + "move this folder away, and run again."
    case .foreignJournal(let path, let reason):
      "\(path) does not belong to this run: \(reason). Nothing was changed. Run the command that "
        + "began that commit again; where its store has been moved since, move it back first. Another run "
        + "directory, with --state, leaves that commit as it is."
    case .twoStores(let store, let other, let backup):
      "A commit was cut off, and applications have written since to \(store) and to \(other), which had that "
        + "name before. The store as it was is kept at \(backup). Decide which of the two is the store, move "
        + "the other away, and run again."
    case .damagedOriginal(let store, let other, let backup):
      "A commit was cut off, and \(other), which had the name \(store) before, has been changed since and is "
        + "damaged: by the disk, or by an application that was stopped while it wrote. \(store) is whole, the "
        + "source is kept at \(backup), and nothing was changed. Check the disk. `godwit repair` saves what can be "
        + "saved of the damaged file. Then move that away and run again: the commit is finished."
    case .damagedInPlace(let store, let backup):
      "A commit was cut off after \(store) had been put in place, and that is damaged by now: by the disk, or by "
        + "an application that was stopped while it wrote. Nothing was changed. Check the disk. "
        + (backup.map {
          "The source is kept at \($0). Move the damaged store away, put a copy of that in its place, "
            + "with its -wal where it has one, and run again; or use `godwit rollback` where a pipeline ran."
        } ?? "Remove the damaged store, and run again: the source is as it was.")
    case .storeMissing(let store, let backup):
      "There is no file at \(store), where a commit was under way. What it was is kept at \(backup), as far as the "
        + "commit had come; nothing was deleted. Put the store back, or a copy of that with its -wal where it has "
        + "one, and run again."
    }
  }
}

extension CommitError {
  /// What is wrong where a uniqueness constraint is broken, without advice.
  ///
  /// - Parameter origin: What is to be said of the rows beside their keys.
  package static func duplicates(
    of entity: String?, in index: String, _ rows: RowTally, origin: String = ""
  ) -> String {
    "\(rows.count == 1 ? "1 object" : "\(rows.count) objects") of \(entity ?? "an entity") "
      + "\(rows.count == 1 ? "has" : "have") the same values in the uniqueness constraint "
      + "\(index) as others (Z_PK \(listed(rows))\(origin); Core Data error 134111)."
  }
}

private func listed(_ rows: RowTally) -> String {
  rows.primaryKeys.map(String.init).joined(separator: ", ")
    + (rows.count > Int64(rows.primaryKeys.count) ? " …" : "")
}
