import GodwitDurableFiles

/// Adds up the stores whose owner, group or extended attributes could not be kept.
package struct LostRightsTotals: Sendable {
  /// Stores that lost one kind.
  package struct Total: Sendable, Equatable {
    package var count = 0
    /// The first stores, each with what it lost: a number, or names of attributes.
    package var examples: [Example] = []

    mutating func add(_ store: String, _ lost: String) {
      count += 1
      if examples.count < LostRightsTotals.mostExamples {
        examples.append(Example(store: store, lost: lost))
      }
    }
  }

  package struct Example: Sendable, Equatable {
    package var store: String
    package var lost: String
  }

  /// Every user of a machine may have a group of their own, so lines for each group would be as many as stores.
  private static let mostExamples = 2

  package private(set) var owners = Total()
  package private(set) var groups = Total()
  package private(set) var attributes = Total()

  package init() {}

  /// Adds what a migrated store lost; nothing for any other.
  package mutating func add(_ result: MigrationResult) {
    guard result.verdict == .migrated, let lost = result.lostRights else { return }
    let store = result.output ?? result.store
    if let owner = lost.owner { owners.add(store, "\(owner)") }
    if let group = lost.group { groups.add(store, "\(group)") }
    if let names = lost.attributes { attributes.add(store, names.joined(separator: ", ")) }
  }
}
