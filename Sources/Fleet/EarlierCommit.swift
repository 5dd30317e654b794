import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import GodwitWorker
import SystemPackage

// Commits of earlier runs, which were cut off before anybody wrote them down.
extension MigrationResult {
  static let finishedCommitNote = "The commit of an earlier run was finished."

  /// What a result says of an earlier run's commit that it is not of itself. A single store has no ledger: this
  /// alone names the backup of that commit, and what it lost.
  var earlierCommitNotes: [String] {
    let versions = [source, destination].compactMap(\.self)
    let ends = versions.count == 2 ? " from \(versions[0]) to \(versions[1])" : ""
    let place = output.map { $0 == store ? "" : ", and wrote \($0)" } ?? ""
    let kept = backup.map { " What it was before is kept as \($0)." } ?? ""
    return notes + ["That commit migrated \(store)\(ends)\(place).\(kept)"]
      + losses.map { "Lost by that commit: \($0.message)" }
  }

  /// What is said of a commit that was taken back beside a store that is not what the commit found.
  static func keptBackupNote(_ store: FilePath, _ backup: FilePath) -> String {
    "The commit of an earlier run was taken back. \(store) does not have the bytes that it had when that commit "
      + "began; what it was then stays at \(backup). No command restores or removes that: compare the two, and "
      + "remove it by hand once nobody needs it."
  }

  /// Looks in which state a destination is that has taken its source's place. Nil where an application
  /// has written to it by now, or put another in its place: that state is not the commit's.
  ///
  /// - Throws: `StoreError` where it is still the commit's, as far as can be seen, and cannot be read;
  ///   `DurabilityError` where it cannot be looked at.
  private mutating func readFinalIdentity(
    _ request: MigrationRequest, _ journal: CommitJournal
  ) throws {
    guard journal.kind == .replace else { return }
    finalIdentity = nil
    guard let mark = try FileMark(reachable: request.store),
      mark.isSameState(as: journal.assembledMark)
    else { return }
    let identity: StoreIdentity
    do {
      let files = StoreFiles(request.store)
      identity = try files.whileReachable { try files.identity() }
    } catch let error as StoreError where error.passes {
      throw error
    } catch let error as DurabilityError where error.isUnreachable {
      throw error
    } catch {
      return
    }
    guard !identity.hasPendingChanges, identity.inode == mark.inode, identity.size == mark.size,
      identity.modificationSeconds == mark.modificationSeconds,
      identity.modificationNanoseconds == mark.modificationNanoseconds
    else { return }
    finalIdentity = identity.name
  }

  /// Looks at the backup, and reads its digests and, where the commit's journal had none, that of what it has left. The
  /// latter is nil where an application has written to the store that was replaced by now: it would pass for what
  /// the commit left, and a rollback would lose the write.
  ///
  /// - Throws: `StoreError` where a store that was replaced cannot be read for the moment: a rollback would
  ///   refuse it for ever. `DurabilityError` where the backup cannot be looked at: nobody would find it again.
  mutating func readDigests(of destination: StoreFiles) throws {
    if let backup {
      let files = StoreFiles(FilePath(backup))
      kept = try KeptBackup(files, beside: destination.store) ?? kept
      backupContent = try? files.whileReachable { try files.contentDigest() }
    }
    guard backup == nil || finalIdentity != nil else { return digest = nil }
    guard digest == nil else { return }
    let identity = finalIdentity
    do {
      digest = try destination.whileReachable {
        try StoreFiles.reading(destination.store) { try destination.digest(inState: identity) }
      }
    } catch let error as StoreError where error.passes && identity != nil {
      throw error
    } catch let error as DurabilityError where error.isUnreachable && identity != nil {
      throw error
    } catch {
      digest = nil
    }
  }

  /// A commit is at its end.
  ///
  /// - Throws: `StoreError` or `DurabilityError` where nobody can tell for the moment how it left the store, or
  ///   whether its backup is there. The next run takes the commit up again then.
  mutating func succeed(_ request: MigrationRequest, _ journal: CommitJournal) throws {
    try readFinalIdentity(request, journal)
    verdict = .migrated
    ending = .done
    reasons = []
    // Not of the request: another pipeline, or another key `commit`, may have begun it.
    output = journal.store
    backup = try keptBackup(of: journal)
    committedBy = journal.kind == .replace ? journal.owner : nil
    digest = journal.assembledDigest
    notes += journal.notes
    lostRights = journal.lostRights
  }

  /// Where what the store was is kept. Whoever finishes the commit of a process that was killed may find that
  /// somebody has removed it.
  private mutating func keptBackup(of journal: CommitJournal) throws -> String? {
    guard journal.kind == .replace else { return nil }
    let path = journal.backup.store
    // What is seen of it takes the place of this.
    kept = KeptBackup(journal)
    guard try journal.isBackupThere() else {
      notes.append(
        "The backup \(path) was removed before the commit was finished: nothing is kept of what the store was."
      )
      return nil
    }
    guard try journal.isBackupWithoutLogs() else { return path.string }
    notes.append(
      "The backup \(path) lost its -wal or -journal before the commit was finished, and may lack rows that were "
        + "committed there: no rollback restores it. Get that file from another copy before you use it."
    )
    return nil
  }
}

extension FileMark {
  /// The same file, to which nobody has written, on whichever machine.
  fileprivate func isSameState(as other: FileMark) -> Bool {
    inode == other.inode && size == other.size && modificationSeconds == other.modificationSeconds
      && modificationNanoseconds == other.modificationNanoseconds
  }
}

extension StoreError {
  /// Whether it says nothing of what lies there, but that it cannot be looked at now.
  fileprivate var passes: Bool {
    switch self {
    case .inUse, .cannotRead: true
    default: false
    }
  }
}

extension StoreRun {
  /// What is said of a commit of an earlier run that is at its end.
  func finishedNotes(of journal: CommitJournal) -> [String] {
    guard let owner = journal.owner, owner.file != settings.owner?.file else {
      return [MigrationResult.finishedCommitNote]
    }
    return [
      MigrationResult.finishedCommitNote,
      "Run \(owner.run) of \(owner.file) had begun that commit.",
    ]
  }

  /// What is known of a commit that is at its end: of a chain of versions by its steps, else by the plan and
  /// what was kept.
  func result(of journal: CommitJournal) async throws -> MigrationResult {
    let folder = ChainFolder(directory: directory)
    guard let (step, done) = try folder.lastDone() else {
      var attempt = StoreAttempt(self)
      try await attempt.take(journal, RunFolder(directory: directory))
      return attempt.result
    }
    var result = MigrationResult(store: request.store.string, verdict: .migrated, ending: .done)
    let told = try folder.told()
    result.path = told.path
    result.notes = told.notes + done.result.notes + finishedNotes(of: journal)
    // The first step's run directory is kept to the end.
    let first = try? PlanFile(folder.run(of: 0)).read()
    result.source = first.map { $0.source.versionName ?? $0.source.checksum }
    result.destination = done.result.destination
    (result.rows, result.counts) = (done.result.rows, done.result.counts)
    result.losses = done.result.losses
    result.sourceIdentity = done.ends.sourceIdentity.name
    (result.findings, result.stages) = (done.result.findings, done.result.stages)
    if let path = settings.uriTable {
      let table = folder.uris(of: step)
      if try DurableFile.exists(table) {
        if try await onOwnThread({ try folder.holdsURIs(of: step, done) }) {
          result.uriTable = try await ChainRun(self).publishURIs(of: step, done)
        } else {
          result.notes.append(
            "\(path) is not written: \(table) is not as an earlier run wrote it.")
        }
      } else {
        result.notes.append(
          "\(path) is not written: no table of object URIs was asked for while the steps were done."
        )
      }
    }
    try result.succeed(request, journal)
    return result
  }

  /// Brings a commit that was cut off to its end, and does nothing else with the store: a rollback, which
  /// puts the source back, comes next.
  ///
  /// - Parameter record: Called with what the commit did, unless it was taken back. The run directory goes after
  ///   that.
  /// - Returns: The backup of a commit that was taken back, where it stays.
  /// - Throws: What keeps it from its end. The run directory stays then.
  func finishCommit(record: (MigrationResult) throws -> Void) async throws -> FilePath? {
    let folder = RunFolder(directory: directory)
    try folder.take()
    let lease = try HeldLease(
      acquiring: directory.lock, patienceSeconds: settings.lockPatienceSeconds)
    let leases = settings.leases + [lease.token]
    try directory.removeLeftovers()
    // Where it is taken back, what lies in the directory is the next run's.
    defer { withExtendedLifetime(lease) {} }
    switch try await recoverCommit(leases, acceptsDamage: true) {
    case .committed(let journal):
      try record(try await result(of: journal))
      try leases.requireCurrent(store: request.store)
      try folder.forgetName()
      try directory.remove()
      return nil
    case .takenBackKeeping(let backup): return backup
    case .nothing, .takenBack: return nil
    }
  }
}
