import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitLedger
import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import GodwitWorker
import SystemPackage

extension RetryPolicy {
  /// What an error means for the run.
  struct Judgement {
    var ending: MigrationResult.Ending
    var code: Int?
    var reasons: [Reason]
    var findings: [StoreFinding] = []
    /// Follows from ``ending``, but where the rows, the store or the models are to blame.
    var verdict: MigrationResult.Verdict

    init(
      _ ending: MigrationResult.Ending, _ reason: String, _ message: String, code: Int? = nil,
      entity: String? = nil
    ) {
      self.ending = ending
      self.code = code
      reasons = [Reason(reason: reason, entity: entity, message: message)]
      verdict =
        ending.passes ? .pending : Self.storesOwn.contains(reason) ? .refused : .failed
    }

    /// Reasons that lie in the store.
    private static let storesOwn: Set = [
      "damaged", "file", "store", "link", "unusual-file", "long-name",
    ]
  }

  /// - Parameter store: The store that is being migrated; nil outside of that.
  static func judgement(of error: any Error, about store: String? = nil) -> Judgement {
    switch error {
    case is CancellationError:
      return Judgement(
        .resumable, "stopped",
        "The run was stopped. Run the same command again to resume; finished work is kept.")
    case let error as StoreDamage:
      var judgement = Judgement(.badInput, "damaged", "", code: coreDataCorruption)
      judgement.reasons = error.findings.map(Reason.init(finding:))
      judgement.findings = error.findings
      return judgement
    case let error as InvalidRows:
      var judgement = Judgement(.badInput, "validation", "", code: error.code)
      judgement.reasons = error.findings.map(Reason.init(finding:))
      judgement.findings = error.findings
      judgement.verdict = .refused
      return judgement
    case let error as RefusedLosses:
      var judgement = Judgement(.badInput, "losses", "", code: LossPolicy.refusalCode)
      judgement.reasons = error.reasons
      judgement.verdict = .refused
      return judgement
    case let error as MadeDuplicates:
      return duplicates(error.entity, error.index, error.rows, "\(error)")
    case let error as UnsoundDestination: return judgement(of: error)
    case let error as FleetError: return judgement(of: error)
    case let error as ClusterError: return judgement(of: error)
    case is StageHandedOut: return Judgement(.resumable, "handed-out", "\(error)")
    case SelectionError.badPattern: return Judgement(.usage, "usage", "\(error)")
    case let error as SelectionError: return Judgement(.badInput, "selection", "\(error)")
    case let error as PlanDrift: return Judgement(.badInput, "drift", "\(error)")
    case is PipelineError: return Judgement(.configuration, "pipeline", "\(error)")
    case is FailureReductionError: return Judgement(.badInput, "export", "\(error)")
    case let error as LedgerError:
      switch error {
      case .noRun, .noVersion: return Judgement(.usage, "usage", "\(error)")
      case .newerVersion, .foreign, .damaged, .nameTaken:
        return Judgement(.configuration, "ledger", "\(error)")
      }
    case is PlaceError: return Judgement(.cannotCreateOutput, "output", "\(error)")
    case let error as DurabilityError: return judgement(of: error, about: store)
    case let error as CheckpointError: return judgement(of: error)
    case let error as CommitError: return judgement(of: error)
    case let error as UnfinishedCommit:
      var judgement = judgement(of: error.error, about: store)
      judgement.reasons[0].message += " \(error.standing)"
      return judgement
    case let error as SQLiteError: return judgement(of: error)
    case let error as PlanError:
      var judgement = Judgement(.badInput, "plan", "\(error)", code: error.code)
      if !error.reasons.isEmpty { judgement.reasons = error.reasons }
      if error.liesInTheStore { judgement.verdict = .refused }
      return judgement
    case let error as StoreError:
      return judgement(of: error)
    case let error as ModelError:
      return judgement(of: error)
    case let error as StagedMigrationError: return judgement(of: error)
    case let error as StageHandlerError: return judgement(of: error)
    case let error as MappingError:
      var judgement = Judgement(.badInput, "mapping", "\(error)", code: error.code ?? 134_110)
      judgement.verdict = .refused
      if case .noneMatches(let mismatches) = error {
        judgement.verdict = .failed
        judgement.reasons = mismatches.map(Reason.init(mismatch:))
      }
      return judgement
    case let error as StageError where error.isOfRunDirectory:
      return Judgement(.inputOutput, "run-directory", "\(error)")
    default:
      if let errno = Errno(underlying: error) {
        return judgement(
          errno: errno,
          "A file operation failed: \(error). "
            + (errno.isOfFullVolume ? "Free space on" : "Check")
            + " the volumes of the stores, the state folder and temporary files, and run again.")
      }
      return Judgement(.fatal, "internal", "Unexpected: \(error)")
    }
  }

  /// `NSMigrationError` … of a store whose rows Core Data could not make sense of either.
  static let coreDataCorruption = 134_150

  private static func judgement(
    of error: DurabilityError, about store: String? = nil
  ) -> Judgement {
    switch error {
    case .locked(let path):
      Judgement(
        .locked, "locked",
        "Another run works in \(path.removingLastComponent()). Wait for it to end, or stop it, "
          + "and run again.")
    case .alreadyExists: Judgement(.cannotCreateOutput, "output", "\(error)")
    case .notRegular(let path, _), .symbolicLink(let path), .tooLarge(let path, _):
      // What is no part of the store is the run's own.
      store.map { StoreFiles(FilePath($0)).names(path) } ?? false
        ? Judgement(.badInput, "unusual-file", "\(error)")
        : Judgement(.configuration, "run-directory", "\(error)")
    case .notFolder, .notPrivate, .otherNames:
      Judgement(.configuration, "run-directory", "\(error)")
    case _ where error.isLeased: Judgement(.resumable, "in-use", "\(error)")
    case .unreachable: Judgement(.resumable, "unreachable", "\(error)")
    case .failed(DurabilityError.reading, _, _): Judgement(.inputOutput, "io", "\(error)")
    case .failed(_, _, let errno): judgement(errno: errno, "\(error)")
    }
  }

  private static func judgement(errno: Errno, _ message: String) -> Judgement {
    switch errno {
    case _ where errno.isOfFullVolume: Judgement(.resumable, "disk-full", message)
    case .permissionDenied, .notPermitted, .readOnlyFileSystem, .noSuchFileOrDirectory,
      .notDirectory, .fileNameTooLong:
      Judgement(.cannotCreateOutput, "output", message)
    default: Judgement(.inputOutput, "io", message)
    }
  }

  private static func judgement(of error: CheckpointError) -> Judgement {
    if case .unreadable(_, let errno) = error {
      return judgement(errno: errno, "\(error)")
    }
    return Judgement(.inputOutput, "checkpoint", "\(error)")
  }

  private static func judgement(of error: CommitError) -> Judgement {
    switch error {
    case .uniqueness(let entity, let index, let rows):
      return duplicates(entity, index, rows, "\(error)")
    case .givenValue(let entity, let property, _, let rows, _):
      return duplicates(entity, property: property, rows, code: error.code, "\(error)")
    case .storeInUse, .storeMayBeInUse: return Judgement(.resumable, "in-use", "\(error)")
    case .leaseLost, .lockGone: return Judgement(.locked, Self.leaseLost, "\(error)")
    case .sourceChanged: return Judgement(.resumable, "changed", "\(error)")
    case .notEnoughSpace, .outOfSpace: return Judgement(.resumable, "disk-full", "\(error)")
    case .destinationExists, .externalDataConflict, .mountPoint:
      return Judgement(.cannotCreateOutput, "output", "\(error)")
    case .foreignJournal, .unreadableJournal, .twoStores, .damagedOriginal,
      .damagedInPlace:
      return Judgement(.configuration, "run-directory", "\(error)")
    case .notAFile: return Judgement(.badInput, "store", "\(error)", code: 134_080)
    case .unusablePlan: return Judgement(.fatal, "internal", "\(error)")
    default: return Judgement(.inputOutput, "commit", "\(error)", code: error.code)
    }
  }

  /// The values that a mapping model gives are first seen by their index.
  private static func duplicates(
    _ entity: String?, _ index: String, _ rows: RowTally, _ message: String
  ) -> Judgement {
    duplicates(
      entity, property: index.after("Z_\(entity ?? "")_UNIQUE_"), rows,
      code: CommitError.uniqueness(entity: entity, index: index, rows: rows).code, message)
  }

  private static func duplicates(
    _ entity: String?, property: String?, _ rows: RowTally, code: Int?, _ message: String
  ) -> Judgement {
    var judgement = Judgement(.badInput, uniqueness, message, code: code, entity: entity)
    judgement.verdict = .refused
    judgement.reasons[0].property = property
    judgement.reasons[0].primaryKeys = rows.primaryKeys
    judgement.reasons[0].count = rows.count
    return judgement
  }

  private static func judgement(of error: ModelError) -> Judgement {
    let (ending, reason): (MigrationResult.Ending, String) =
      switch error {
      case .badVersionName: (.usage, "usage")
      case .versionExists, .bundleExists: (.cannotCreateOutput, "output")
      case .symbolicLink: (.badInput, "link")
      default: (.badInput, "model")
      }
    var judgement = Judgement(ending, reason, "\(error)")
    if case .invalid(let path, _) = error {
      judgement.reasons = error.problems.map {
        Reason(
          reason: "model", entity: $0.entity?.rawValue, property: $0.property,
          message: "\(path) is not a valid model. \($0.message)")
      }
    }
    return judgement
  }

  private static func judgement(of error: StoreError) -> Judgement {
    if error.isOutOfSpace { return Judgement(.resumable, "disk-full", "\(error)") }
    return switch error {
    case .inUse: Judgement(.resumable, "in-use", "\(error)")
    case .changed: Judgement(.resumable, "changed", "\(error)")
    case .cannotCopy(_, _, let errno): judgement(errno: Errno(rawValue: errno), "\(error)")
    case .cannotRead: Judgement(.inputOutput, "io", "\(error)", code: error.code)
    case .journal, .truncated: Judgement(.badInput, "file", "\(error)", code: error.code)
    case .damaged: Judgement(.badInput, "damaged", "\(error)", code: error.code)
    case .unusualFile(_, let kind, _):
      Judgement(
        .badInput, kind == .symbolicLink ? "link" : "unusual-file", "\(error)", code: error.code)
    default: Judgement(.badInput, "store", "\(error)", code: error.code)
    }
  }

  private static func judgement(of error: SQLiteError) -> Judgement {
    if error.isOutOfSpace { return Judgement(.resumable, "disk-full", "\(error)") }
    if error.isBusy { return Judgement(.resumable, "in-use", "\(error)") }
    if error.isOfReadOnlyVolume { return Judgement(.cannotCreateOutput, "output", "\(error)") }
    if error.isOfLongPath { return Judgement(.badInput, "long-name", "\(error)") }
    if error.isCorruption {
      return Judgement(.badInput, "damaged", "\(error)", code: coreDataCorruption)
    }
    if error.isRefused {
      var judgement = Judgement(.badInput, "unsupported", "\(error)", code: 134_110)
      judgement.verdict = .refused
      return judgement
    }
    return Judgement(.inputOutput, "io", "\(error)", code: 134_180)
  }

  private static func judgement(of error: ClusterError) -> Judgement {
    switch error {
    case .badManifest, .badResults, .lostResults, .unreadableResults:
      Judgement(.configuration, "manifest", "\(error)")
    case .unsafeVolume: Judgement(.configuration, "volume", "\(error)")
    case .scheduler, .unanswered, .full, .bundleLost:
      Judgement(.engineUnavailable, "scheduler", "\(error)")
    case .underWay, .underWayElsewhere, .unownedResults:
      Judgement(.locked, "on-cluster", "\(error)")
    }
  }

  private static func judgement(of error: FleetError) -> Judgement {
    switch error {
    case .task(let failed):
      let failure = failed.error
      let (ending, reason): (MigrationResult.Ending, String) =
        switch failure.kind {
        case .damaged: (.badInput, "damaged")
        case .refused: (.badInput, "mapping")
        case .outOfSpace: (.resumable, "disk-full")
        case .unwritable: (.cannotCreateOutput, "output")
        case .io: (.inputOutput, "io")
        case .unusable: (.inputOutput, "run-directory")
        case .internal: (.fatal, "internal")
        }
      var judgement = Judgement(ending, reason, failure.message, code: failure.code)
      if let reasons = failure.reasons, !reasons.isEmpty { judgement.reasons = reasons }
      if failure.kind == .refused { judgement.verdict = .refused }
      return judgement
    case .workersLost(_, _, let how):
      let isSilent = how.hasPrefix(WorkerProcess.silence)
      return Judgement(isSilent ? .engineUnavailable : .fatal, "workers-lost", "\(error)")
    case .workersDie: return Judgement(.engineUnavailable, "workers-lost", "\(error)")
    case .noStages: return Judgement(.usage, "usage", "\(error)")
    case .noStore: return Judgement(.badInput, "store", "\(error)")
    case .nameTooLong, .pathTooLong: return Judgement(.badInput, "long-name", "\(error)")
    case .outputExists, .outputDiffers, .noFolder, .uriTable, .heldByOwner:
      return Judgement(.cannotCreateOutput, "output", "\(error)")
    case .noTemporaryFolder:
      return Judgement(.cannotCreateOutput, "temporary-folder", "\(error)")
    case .notEnoughSpace: return Judgement(.resumable, "disk-full", "\(error)")
    case .coordinationLost(_, let how, let count):
      if how.hasPrefix(WorkerProcess.stopped) {
        return Judgement(.inputOutput, "coordination-lost", "\(error)")
      }
      let isSilent = how.hasPrefix(WorkerProcess.silence)
      // Planning without end is the store's own affair and not tried again.
      let ending: MigrationResult.Ending = count < attempts ? .inputOutput : .engineUnavailable
      return Judgement(isSilent ? ending : .fatal, "coordination-lost", "\(error)")
    case .disturbed: return Judgement(.badInput, "policy", "\(error)", code: 134_170)
    case .timeout: return Judgement(.inputOutput, "timeout", "\(error)")
    case .ledger(_, isOutOfSpace: true): return Judgement(.resumable, "disk-full", "\(error)")
    case .ledger: return Judgement(.inputOutput, "ledger", "\(error)")
    case .limits: return Judgement(.configuration, "limits", "\(error)")
    case .runDirectory: return Judgement(.cannotCreateOutput, "run-directory", "\(error)")
    case .stateFolder: return Judgement(.cannotCreateOutput, "state-folder", "\(error)")
    }
  }
}
