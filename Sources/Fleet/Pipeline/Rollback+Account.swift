import Foundation
import GodwitCommit
import GodwitLedger
import SystemPackage

extension Rollback {
  /// What a rollback comes to, and what of it is written down.
  struct Account {
    private let rollback: Rollback
    private let ledger: Ledger
    private let started: Double
    var summary: Summary
    private var isBegun = false
    /// What begins nothing is written down at the end of a rollback that others have begun.
    private var untried: [End] = []
    /// All of its stores, once they are known: one that is killed is known to have more than it came to.
    private var found: Int?
    /// Those are in the history of another pipeline's rollback.
    private var others = RunReport.Counts()

    init(_ rollback: Rollback, _ ledger: Ledger, _ summary: Summary, started: Double) {
      self.rollback = rollback
      self.ledger = ledger
      self.summary = summary
      self.started = started
    }

    private mutating func begin() throws {
      guard !isBegun, !rollback.isDry else { return }
      isBegun = true
      let places = rollback.places
      try ledger.writing {
        try ledger.begin(
          LedgerRun(
            name: summary.rollback, kind: .rollback, pipeline: places.owner.pipeline,
            file: places.owner.file, started: started, host: MachineName.text,
            options: rollback.options))
        if let found { try ledger.setFound(found, in: summary.rollback) }
      }
      // What is put back is put back without it, too.
      try? PipelineLedger.note(rollback: summary.rollback, in: places.state)
    }

    mutating func take(_ ends: [End], _ observe: (Item) -> Void) throws {
      let ends = try rollback.addNotes(to: ends, ledger)
      // Whoever has taken the work over finishes what is begun, and writes that down.
      if !rollback.isDry, let first = ends.first {
        try rollback.leases.requireCurrent(store: FilePath(first.item.store))
      }
      let own = ends.filter { $0.ofOther == nil }
      if own.contains(where: { $0.item.verdict == .restored || !$0.attemptedBackup.isEmpty }) {
        try begin()
      }
      if !rollback.isDry {
        try rollback.record(
          ends.filter { !$0.attemptedBackup.isEmpty }, in: ledger, rollback: summary.rollback)
      }
      untried += own.filter { $0.attemptedBackup.isEmpty && $0.item.verdict == .refused }
      for end in ends {
        summary.found += 1
        if end.item.verdict == .restored { summary.restored += 1 } else { summary.refused += 1 }
        observe(end.item)
        guard end.ofOther != nil else { continue }
        others.found += 1
        if end.item.verdict == .restored { others.restored += 1 } else { others.refused += 1 }
      }
    }

    /// - Parameter rest: How many stores there are beside those that were taken.
    mutating func expect(_ rest: Int) throws {
      let own = summary.found + rest - others.found
      found = own
      if isBegun { try ledger.writing { try ledger.setFound(own, in: summary.rollback) } }
    }

    /// - Parameter left: Those that it was stopped before.
    mutating func close(leaving left: [End]) throws {
      untried += left
      if !left.isEmpty {
        summary.found += left.count
        summary.pending = left.count
      }
      guard isBegun else { return }
      try rollback.record(untried, in: ledger, rollback: summary.rollback)
      try ledger.writing {
        try ledger.end(
          summary.rollback, at: Date().timeIntervalSince1970,
          exitCode: !left.isEmpty ? 75 : summary.refused > 0 ? 3 : 0,
          RunReport.Counts(
            found: found ?? 0, refused: summary.refused - others.refused, pending: left.count,
            restored: summary.restored - others.restored))
      }
    }
  }
}
