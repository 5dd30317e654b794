/// Stores that did not end well, by the reason: what a summary and a plan end with.
public struct ReasonGroups: Codable, Sendable, Equatable {
  public struct Group: Codable, Sendable, Equatable {
    public var reason: String
    public var verdict: MigrationResult.Verdict
    public var count: Int
    /// Paths of the first ones.
    public var examples: [String]
    /// Of the first one.
    public var message: String
    /// What to do about it.
    public var advice: String?
  }

  private static let mostExamples = 3

  private var groups: [String: Group] = [:]

  public init() {}

  /// Adds a store that did not end well; nothing for one that did. Its first reason counts.
  public mutating func add(_ result: MigrationResult) {
    guard result.verdict != .migrated, result.verdict != .sameModel else { return }
    let first = result.reasons.first
    let reason = first?.reason ?? result.verdict.rawValue
    let key = "\(result.verdict.rawValue) \(reason)"
    var group =
      groups[key]
      ?? Group(
        reason: reason, verdict: result.verdict, count: 0, examples: [],
        message: first?.message ?? "", advice: ReasonAdvice.text(for: reason))
    group.count += 1
    if group.examples.count < Self.mostExamples { group.examples.append(result.store) }
    groups[key] = group
  }

  /// The most frequent first.
  public var all: [Group] {
    groups.sorted { ($1.value.count, $0.key) < ($0.value.count, $1.key) }.map(\.value)
  }

  public var isEmpty: Bool { groups.isEmpty }
}

/// What an operator can do about stores with a reason.
public enum ReasonAdvice {
  /// Nil for a reason whose message says it all.
  public static func text(for reason: String) -> String? { texts[reason] }

  private static let texts: [String: String] = [
    "stopped": "Run the same command again to resume.",
    "in-use":
      "Close the applications that have the stores open and run again, or use stores.in-use: "
      + "{ wait: 10m } or snapshot.",
    "changed": "Run again while no application writes to the stores.",
    "disk-full": "Free space on the volume and run again; finished work is kept.",
    "damaged":
      "Inspect one with `godwit inspect` and repair it, or migrate it with "
      + "`godwit migrate --accept-damage`.",
    "validation":
      "Correct the rows with the application, or make the destination's rule optional.",
    "uniqueness": "Correct the rows, or the mapping model that gives them equal values.",
    "losses": "Map what would be lost, or use losses: warn.",
    "store": "Check that the files are Core Data stores, or exclude them.",
    "link": "Replace the links by the files themselves, or exclude the stores.",
    "unusual-file": "Replace what is not a regular file, or exclude the stores.",
    "unreadable-folder": "Let this user read the folders, or exclude them.",
    "output": "Check the permissions of the folders, or remove the files that are in the way.",
    "io": "Check the volume and the kernel's log, and run again.",
    "timeout": "Raise limits.store-timeout, or look for a volume that is slow.",
    "locked": "Wait for the other run to end, and run again.",
    "lease": "Another run has taken the stores over. See its result.",
    "mapping": "Correct the mapping model; `godwit mapping check` says what is wrong.",
    "mapping-mismatch": "Give a mapping model that is for the stores' version.",
    "workers-lost": "See the output of the workers above, fix the cause, and run again.",
    "coordination-lost":
      "Migrate one of them with `godwit migrate`, which says more, and fix the cause.",
    "ledger": "Check the volume of the state folder, and run again.",
    "run-directory": "Check the state folder's permissions, or remove it to start again.",
    "internal": "Please report this as a defect, with the messages.",
  ]
}
