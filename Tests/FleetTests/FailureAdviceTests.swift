import GodwitLedger
import GodwitMapping
import GodwitPersistentStore
import GodwitPlanning
import Testing

@Suite struct `Advice about a reason` {
  private static let general = FailureAdvice.text(for: "a reason of a later version")

  @Test(arguments: StoreFinding.Kind.allCases)
  func `is there for everything that a store can have wrong`(kind: StoreFinding.Kind) {
    #expect(FailureAdvice.text(for: kind.rawValue) != Self.general)
  }

  @Test(arguments: Refusal.Reason.allCases)
  func `is there for everything that inference refuses`(reason: Refusal.Reason) {
    #expect(FailureAdvice.text(for: reason.rawValue) != Self.general)
  }

  @Test(arguments: Loss.Kind.allCases)
  func `is there for everything that may be lost`(kind: Loss.Kind) {
    #expect(
      FailureAdvice.text(for: "lost-\(kind.rawValue)") == FailureAdvice.text(for: "losses"))
  }

  @Test(arguments: [
    "stopped", "in-use", "changed", "disk-full", "locked", "lease", "timeout", "workers-lost",
    "coordination-lost", "limits", "foreign-store", "version-hash", "plan", "unsupported", "model",
    "mapping", "mapping-mismatch", "missing-mapping", "store", "link", "unusual-file",
    "unreadable-folder", "empty-root", "output", "io", "commit", "checkpoint", "run-directory",
    "ledger",
    "quarantined", "internal", "changed-since", "no-backup", "backup-changed", "remains",
    "unreachable", "outside-roots",
  ])
  func `is there for everything that may go wrong with a run`(reason: String) {
    #expect(FailureAdvice.text(for: reason) != Self.general)
  }
}
