import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

// A machine may have another disk, or nothing, at the place of the stores. What it says of a store is true of
// what lies there, and nothing of it is to be told of the store here.
extension PipelineRun {
  /// What became of a store on a machine, as it looks from here.
  enum Sight: Sendable, Equatable {
    /// As the result says, as far as anybody can tell.
    case asLeft
    /// In another state, which has that name: written to, put back or exchanged since, or another file.
    case other(state: String)
  }

  /// Looks whether a store is as a result of another machine says.
  static func sight(of result: MigrationResult, _ store: FoundStore) -> Sight {
    guard result.verdict == .migrated || result.verdict == .sameModel else { return .asLeft }
    if let output = result.output, FilePath(output) != store.path {
      guard (try? FileKind(at: FilePath(output))) == FileKind.none else { return .asLeft }
      return .other(state: "no output")
    }
    guard let final = result.finalIdentity,
      let identity = try? StoreFiles(store.path).identity().name, identity != final
    else { return .asLeft }
    return .other(state: identity)
  }

  /// What is to be made of a result of another machine.
  ///
  /// Of a store that is not as the result says, one further result is asked for: an application may have
  /// written to it, or somebody put it back. Where the store here was the same before and after that, and still
  /// another than the result says, the machine has another file in its place.
  ///
  /// - Returns: Nil where the store is to be looked at again.
  func checkedOutcome(
    _ line: BundleResult, of store: FoundStore, lane: Int?, _ setting: Setting
  ) async throws -> Outcome? {
    let result = line.end.whole
    if let missing = Self.missingThere(line, store) {
      setting.books.add(missing, facts(line, of: store, lane: lane))
      return Outcome(store: store, result: missing)
    }
    guard case .other(let state) = Self.sight(of: result, store) else {
      return try await outcome(line, of: store, lane: lane, setting)
    }
    let earlier = entryOfRun(store, setting.books)?.otherState
    if earlier == state {
      let failure = Self.otherVolume(line, store)
      try setting.lease.requireCurrent()
      try await setting.books.record(failure, facts(line, of: store, lane: lane))
      return Outcome(store: store, result: failure)
    }
    let outcome =
      try Self.isElsewhere(result) ? nil : await outcome(line, of: store, lane: lane, setting)
    // An application that writes all the time is not waited for.
    if result.verdict == .sameModel, earlier != nil { return outcome }
    try setting.lease.requireCurrent()
    var entry = entryOfRun(store, setting.books) ?? .init(pending: store, run: setting.books.run)
    (entry.otherState, entry.ended) = (state, nil)
    try await setting.books.keep(entry)
    return nil
  }

  private func entryOfRun(
    _ store: FoundStore, _ books: any StoreBooks
  ) -> PipelineLedger.Entry? {
    guard let known = books.entry(of: store.path), known.run == books.run,
      !books.isForgotten(store.path)
    else { return nil }
    return known
  }

  private func facts(_ line: BundleResult, of store: FoundStore, lane: Int?) -> StoreFacts {
    StoreFacts(
      store: store, started: line.started, ended: line.ended, lane: lane, mark: line.mark,
      host: line.host)
  }

  /// Whether nothing of a migration is here. Its backup would lie beside the store.
  private static func isElsewhere(_ result: MigrationResult) -> Bool {
    guard result.verdict == .migrated, let trace = result.backup ?? result.output else {
      return false
    }
    return (try? FileKind(at: FilePath(trace))) == FileKind.none
  }

  private static let advice =
    "Mount the same volume there on every machine, or leave that one out (sbatch: [--exclude=…]); "
    + "`godwit doctor` looks at all of them. Then run again."

  private static func otherVolume(_ line: BundleResult, _ store: FoundStore) -> MigrationResult {
    MigrationResult(
      store: store.path.string, verdict: .failed, ending: .configuration,
      reasons: [
        Reason(
          reason: "volume",
          message:
            "\(store.path) is another file on \(line.host) than here: what that machine did is not to be "
            + "seen. Nothing was changed here. \(advice)")
      ])
  }

  /// The result of a store that is there, and was not on the other machine.
  private static func missingThere(_ line: BundleResult, _ store: FoundStore) -> MigrationResult? {
    guard line.end.result.reasons.first?.reason == "gone", gone(store) == nil else { return nil }
    return MigrationResult(
      store: store.path.string, verdict: .pending, ending: .resumable,
      reasons: [
        Reason(
          reason: "volume",
          message: "\(store.path) is here, and was not there on \(line.host). \(advice)")
      ])
  }
}
