import Foundation
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

// What may go.
extension BackupPruning {
  func decide(_ backup: LedgerBackup, _ ledger: Ledger) throws -> Decision {
    guard backup.hasOwnName else {
      return .keep(
        reason: "backup-changed",
        message: "\(backup.path) is not the name of a backup of \(backup.store), and is left alone."
      )
    }
    guard backup.state != .unreadable else {
      return .keep(
        reason: "ledger",
        message:
          "What the ledger says of \(backup.path) cannot be read, and the backup is left alone.")
    }
    let store = FilePath(backup.store)
    if let refusal = reach.refusal(of: store) {
      return .keep(reason: refusal.reason, message: refusal.message)
    }
    let files = StoreFiles(FilePath(backup.path))
    let presence = FilePresence(of: files.store)
    if let obstacle = presence.obstacle {
      return .keep(
        reason: "backup-unreachable",
        message:
          "\(files.store) cannot be looked at: \(obstacle). It stays listed. Bring its volume or "
          + "folder back, and prune again.")
    }
    let isMissing = presence == .absent && backup.state != .pruning
    let change = try Self.change(of: backup, presence)
    if try Rollback.isUnderWay(of: store, in: places.state) {
      return .keep(
        reason: "rollback",
        message: "A rollback of \(store) is under way. Run `godwit rollback` again.")
    }
    let states = try ledger.states(of: backup.store)
    // What is left of a backup may be all that is left of its store.
    if let (reason, message) = try reasonToDistrust(
      store, states, hadExternalData: try ledger.externalData(of: backup.store).wasThere)
      ?? states.exchange(since: backup).map({ Self.reason(of: $0, store) })
      ?? StoreFiles(store).externalDamage(since: backup).map({ ("store-damaged", $0) })
    {
      return .keep(
        reason: reason,
        message: change.map {
          "\(backup.path) \($0), and is kept all the same. \(message) "
            + files.handCopy(to: StoreFiles(store))
        } ?? message)
    }
    if let change {
      return .keep(
        reason: "backup-changed",
        message:
          "\(backup.path) \(change). The store is as it should be: remove the backup by hand once nobody "
          + "needs it.")
    }
    return isMissing
      ? .forget(
        message: "\(files.store) was not found, and "
          + (isDry ? "would no longer be listed." : "is no longer listed.")) : .remove
  }

  /// In what a backup is not what the run has left; nil where it is that, or all of it is gone.
  private static func change(
    of backup: LedgerBackup, _ presence: FilePresence
  ) throws -> String? {
    let files = StoreFiles(FilePath(backup.path))
    if presence == .there {
      let found = try files.backupMark()?.mark
      // Of one that a removal was killed in, the main file goes last.
      let isOurs =
        backup.state == .pruning
        ? found?.main == backup.marks.main : found?.matches(backup.marks) == true
      return isOurs ? nil : "is not as the run left it"
    }
    guard backup.state != .pruning else { return nil }
    let rest = [files.wal, files.journal, files.externalDataFolder]
    return try rest.contains { try FileKind(at: $0) != .none }
      ? "is missing, and other files of it are there" : nil
  }

  /// Why a store is not a good copy by itself; nil for one that is.
  ///
  /// - Parameters:
  ///   - states: How godwit left it.
  ///   - hadExternalData: The store had files of external data once.
  private func reasonToDistrust(
    _ store: FilePath, _ states: LedgerStates, hadExternalData: Bool
  ) throws -> (reason: String, message: String)? {
    let last = states.last
    func damaged(_ how: String) -> (reason: String, message: String) {
      ("store-damaged", "\(store) \(how): this backup may be the only good copy.")
    }
    let files = StoreFiles(store)
    let presence = FilePresence(of: store)
    if let obstacle = presence.obstacle { return damaged("cannot be looked at (\(obstacle))") }
    guard presence == .there, try FileMark(store) != nil else {
      return ("store-missing", "\(store) is missing: this backup may be the only copy.")
    }
    do {
      let (identity, isBeingWritten) = try files.identityAndWriter()
      if isBeingWritten { throw StoreError.inUse(store) }
      var isAsLeft = last?.identity == identity.name
      if isAsLeft, let digest = last?.digest {
        let found = try files.digest(inState: identity.name)
        if let found, found != digest {
          return damaged("holds other bytes than godwit left, although nobody wrote to it")
        }
        isAsLeft = found != nil
      }
      let inspection = try TemporaryPlace.with { folder in
        try StoreInspection(
          store, models: isAsLeft ? .none : models, snapshotFolder: folder, readsRows: false,
          externalData: hadExternalData ? .required : .inFolder)
      }
      if inspection.findings.contains(where: { $0.kind == .external }) {
        return damaged("lacks external data files that its rows refer to")
      }
      if isAsLeft {
        // A store without a model of its own was so before; its files cannot be asked for.
        guard hadExternalData, !inspection.unchecked.isEmpty else { return nil }
        return damaged("has no model by which its external data could be looked for")
      }
      // An application's later writing: the same store, and whole.
      guard inspection.isSound else { return damaged("is not sound") }
      let mark = StoreMark(states)
      if let exchange = mark.exchange(for: inspection) {
        return (exchange.reason, exchange.message)
      }
      guard mark.uuid != nil else {
        return ("other-store", "The ledger does not say which store was at \(store).")
      }
      return nil
    } catch StoreError.inUse {
      return ("store-in-use", "\(store) is being written to. Run again later.")
    } catch let error as StoreError {
      return ("store-damaged", "\(store) cannot be read: \(error)")
    } catch let error as SQLiteError {
      return ("store-damaged", "\(store) cannot be read: \(error)")
    }
  }

  /// Why what is at a store's path today is no copy of what a backup holds: it came out of another store.
  private static func reason(
    of exchange: LedgerStates.Exchange, _ store: FilePath
  ) -> (reason: String, message: String) {
    let (reason, found, run) =
      switch exchange {
      case .otherStore(let run): ("other-store", "another store", run)
      case .otherVersion(let version, let run):
        ("other-version", "an older store, of version \(version),", run)
      }
    return (
      reason,
      "Since this backup was made, somebody put \(found) in the place of \(store), and run \(run) migrated "
        + "that: this backup may be the only copy of the first. Remove it by hand once nobody needs it."
    )
  }
}

extension LedgerBackup {
  /// Whether the path is one that a commit, or a rollback, gives to a backup of the store: nothing else
  /// is ever removed or put back.
  var hasOwnName: Bool {
    let marks = [".godwit-backup-", ".godwit-rolled-back-"]
    guard let run = marks.lazy.compactMap({ path.after(store + $0) }).first,
      run.ends(with: ".sqlite")
    else { return false }
    return !run.utf8.contains(UInt8(ascii: "/"))
  }
}
