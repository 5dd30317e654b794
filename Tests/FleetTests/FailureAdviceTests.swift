import GodwitLedger
import GodwitMapping
import GodwitPersistentStore
import GodwitPlanning
import Testing

@testable import GodwitFleet

@Suite struct `Advice about a reason` {
  private static let general = FailureAdvice.text(
    verdict: "failed", reason: "a reason of a later version")

  @Test(arguments: StoreFinding.Kind.allCases)
  func `is there for everything that a store can have wrong`(kind: StoreFinding.Kind) {
    #expect(FailureAdvice.text(verdict: "failed", reason: kind.rawValue) != Self.general)
  }

  @Test func `about a quarantined store is how it is released, whatever its reason`() {
    for reason in ["lost-attribute", "losses", "damaged", "store"] {
      var groups = ReasonGroups()
      groups.add(
        MigrationResult(
          store: "/r/a", verdict: .quarantined, ending: .badInput,
          reasons: [Reason(reason: reason, message: "")]))
      #expect(groups.all.first?.advice?.contains("`godwit quarantine release`") == true)
      #expect(
        groups.all.first?.advice == FailureAdvice.text(verdict: "quarantined", reason: reason))
    }
  }

  @Test(arguments: Refusal.Reason.allCases)
  func `is there for everything that inference refuses`(reason: Refusal.Reason) {
    #expect(FailureAdvice.text(verdict: "failed", reason: reason.rawValue) != Self.general)
  }

  @Test(arguments: Loss.Kind.allCases)
  func `is there for everything that may be lost`(kind: Loss.Kind) {
    #expect(
      FailureAdvice.text(verdict: "failed", reason: "lost-\(kind.rawValue)")
        == FailureAdvice.text(verdict: "failed", reason: "losses"))
  }

  @Test(arguments: [
    "stopped", "in-use", "changed", "other-build", "disk-full", "locked", "lease", "timeout",
    "workers-lost",
    "coordination-lost", "limits", "foreign-store", "version-hash", "plan", "unsupported", "model",
    "mapping", "mapping-mismatch", "missing-mapping", "store", "link", "unusual-file",
    "unreadable-folder", "empty-root", "output", "io", "commit", "checkpoint", "run-directory",
    "ledger",
    "quarantined", "internal", "changed-since", "no-backup", "backup-changed", "remains",
    "unreachable", "outside-roots", "no-stores", "gone", "long-name",
  ])
  func `is there for everything that may go wrong with a run`(reason: String) {
    #expect(FailureAdvice.text(verdict: "failed", reason: reason) != Self.general)
  }
}
