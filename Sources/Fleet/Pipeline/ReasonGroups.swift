import GodwitLedger

/// Stores that did not end well, by the reason: what a summary and a plan end with.
package struct ReasonGroups: Codable, Sendable, Equatable {
  package struct Group: Codable, Sendable, Equatable {
    package var reason: String
    package var verdict: MigrationResult.Verdict
    package var count: Int
    /// Paths of some of the stores, three at most.
    package var examples: [String]
    /// What happened to the first of them, and what to do.
    package var message: String
    /// What to do about it.
    package var advice: String?
  }

  private static let mostExamples = 3

  private var groups: [String: Group] = [:]

  package init() {}

  /// Adds a store that did not end well; nothing for one that did. Its first reason counts.
  package mutating func add(_ result: MigrationResult) {
    guard result.verdict != .migrated, result.verdict != .sameModel else { return }
    let first = result.reasons.first
    let reason = first?.reason ?? result.verdict.rawValue
    let key = "\(result.verdict.rawValue) \(reason)"
    var group =
      groups[key]
      ?? Group(
        reason: reason, verdict: result.verdict, count: 0, examples: [],
        message: first?.message ?? "",
        advice: FailureAdvice.text(verdict: result.verdict.rawValue, reason: reason))
    group.count += 1
    if group.examples.count < Self.mostExamples { group.examples.append(result.store) }
    groups[key] = group
  }

  /// The most frequent first.
  package var all: [Group] {
    groups.sorted { ($1.value.count, $0.key) < ($0.value.count, $1.key) }.map(\.value)
  }

  package var isEmpty: Bool { groups.isEmpty }
}
