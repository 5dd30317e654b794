import GodwitDurableFiles

/// What is known of a store of a pipeline.
package struct LedgerStanding: Codable, Sendable, Equatable {
  package var store: String
  package var verdict: String
  package var code: Int?
  /// Of the first reason; nil where it ended well.
  package var reason: String?
  package var message: String?

  package init(
    store: String, verdict: String, code: Int? = nil, reason: String? = nil,
    message: String? = nil
  ) {
    self.store = store
    self.verdict = verdict
    self.code = code
    self.reason = reason
    self.message = message
  }

  /// What the last attempt at a store says of it. One that ended well has no reason.
  package init(
    store: String, verdict: String, output: String?, code: Int?, reason: String?, message: String?
  ) {
    let isGood = RunReport.goodVerdicts.contains(verdict)
    self.init(
      store: store, verdict: Self.verdict(verdict, output: output, ofStore: store),
      code: isGood ? nil : code, reason: isGood ? nil : reason, message: isGood ? nil : message)
  }

  /// A store that no start of a run has come to.
  package static func notBegun(_ store: String) -> LedgerStanding {
    LedgerStanding(
      store: store, verdict: "pending", reason: notBegunReason, message: notBegunMessage)
  }

  var reasons: [RunReport.Reason] {
    reason.map { [RunReport.Reason(reason: $0, message: message ?? "")] } ?? []
  }

  /// Whether it says nothing of the store: a start has not come to it, or was stopped in it.
  var isNotBegun: Bool { verdict == "pending" && reason == Self.notBegunReason }

  /// The verdict of a store that was in use and stays as it is, with a migrated snapshot of it beside it.
  package static let snapshot = "snapshot"

  /// What is known of a store whose attempt has this verdict.
  package static func verdict(_ verdict: String, output: String?, ofStore store: String) -> String {
    guard verdict == "migrated", let output, output != store,
      output.parts(between: "/").last?.utf8.contains(snapshotMark.utf8) == true
    else { return verdict }
    return snapshot
  }

  /// A part of the names of snapshots' destinations.
  package static let snapshotMark = ".godwit-snapshot-"

  package static let notBegunReason = "stopped"
  package static let notBegunMessage = "The run ended before it came to the store."
  package static let toComeMessage = "The run goes on, and has not come to the store yet."
}
