import Foundation
import GodwitDurableFiles
import GodwitLedger
import GodwitPlanning
import SystemPackage

// Starts that began or ended while the ledger could not be written.
extension PipelineLedger {
  /// The stores of a start.
  struct Fleet: Codable, Sendable {
    var found: [String]
    var taken: [String]
    /// Nil for none, and from earlier versions.
    var redone: Set<String>?
    var unseen: [String]
  }

  /// A start of a run, with its stores.
  struct Start: Sendable {
    /// Without an end while it lasts; else with the start's own counts.
    var run: LedgerRun
    var fleet: Fleet
    /// Whether it takes up some of the stores of a run over more of them. What that run has found, and what became
    /// of its stores, is known where both are: in the ledger.
    var isPartOfRun: Bool

    /// The start begins: its run, and its stores.
    func begin(in ledger: Ledger, isResumed: Bool) throws {
      try ledger.begin(run, isResumed: isResumed)
      try ledger.beginFleet(fleet, of: run.file, run: run.name)
      try ledger.setFound(
        runCounts(in: ledger)?.found ?? fleet.taken.count, in: run.name)
    }

    /// The start has come to its end, and its stores are settled.
    func end(in ledger: Ledger) throws {
      guard let ended = run.ended, let exitCode = run.exitCode else { return }
      try ledger.end(
        run.name, at: ended, exitCode: exitCode, runCounts(in: ledger) ?? run.counts)
    }

    private func runCounts(in ledger: Ledger) throws -> RunReport.Counts? {
      isPartOfRun ? try ledger.fleet(of: run.file, run: run.name) : nil
    }
  }

  /// How a start went: begun, or ended. It is not known how much of it the ledger has.
  struct Ending: Codable, Sendable {
    var run: LedgerRun
    var fleet: Fleet
    var standings: [LedgerStanding]
    /// Nil from earlier versions.
    var isPartOfRun: Bool?

    init(_ start: Start, _ standings: [LedgerStanding] = []) {
      (run, fleet, isPartOfRun) = (start.run, start.fleet, start.isPartOfRun)
      self.standings = standings
    }

    private var start: Start {
      Start(run: run, fleet: fleet, isPartOfRun: isPartOfRun ?? false)
    }

    func isOfSameStart(as other: Ending) -> Bool {
      run.name == other.run.name && run.started == other.run.started
    }

    /// Whether the name is not another's meanwhile.
    private func isOwn(in ledger: Ledger) throws -> Bool {
      try ledger.canResume(run.name, by: RunOwner(pipeline: run.pipeline, file: run.file))
    }

    /// - Returns: Whether the ledger is to be told of its end, too: it has neither that nor a later start.
    func begin(in ledger: Ledger) throws -> Bool {
      guard try isOwn(in: ledger) else { return false }
      guard try !ledger.knowsStart(at: run.started) else {
        return try ledger.isOpen(run.name, begunAt: run.started)
      }
      try start.begin(in: ledger, isResumed: true)
      return true
    }

    func end(in ledger: Ledger) throws {
      guard run.ended != nil else { return }
      try ledger.settle(standings, of: run.file, run: run.name)
      try start.end(in: ledger)
    }
  }

  /// A start begins that the ledger cannot be told of now: if it is killed, whoever opens the ledger next tells it.
  func begin(_ start: Start) throws { try addEnding(Ending(start)) }

  /// Takes the place of what is known of the same start.
  func addEnding(_ ending: Ending) throws {
    let others = try Self.endings(folder).filter { !$0.isOfSameStart(as: ending) }
    try DurableFile.write(
      SealedJSON.bytes(of: Endings(endings: others + [ending])), to: Self.endingsFile(folder))
  }

  private struct Endings: Codable {
    var endings: [Ending]
  }

  /// 256 MiB: some hundred bytes for each store.
  private static let endingsLimit = 256 << 20

  static func endings(_ folder: FilePath) throws -> [Ending] {
    try RegularFile.bytesIfPresent(of: endingsFile(folder), limit: endingsLimit, isPrivate: true)
      .flatMap { bytes in
        // Earlier versions wrote the list alone.
        bytes.first == UInt8(ascii: "[")
          ? try? JSONDecoder().decode([Ending].self, from: Data(bytes))
          : (try? SealedJSON.value(Endings.self, of: bytes))?.endings
      } ?? []
  }
}

extension Ledger {
  func beginFleet(_ fleet: PipelineLedger.Fleet, of pipeline: String, run: String) throws {
    try beginFleet(
      of: pipeline, run: run, found: fleet.found, taken: fleet.taken,
      redone: fleet.redone ?? [], unseen: fleet.unseen)
  }
}
