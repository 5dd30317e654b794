import GodwitPlanning
import GodwitSQLite

/// The relationship groups whose pairs are set one after the other since hooks have set them:
/// where somebody speaks on both sides, where a hook takes a word back, and where there is an order,
/// since new members come last. Elsewhere it comes to the same, and sorting the pairs is faster.
///
/// A many-to-many relationship that is its own inverse has one side only: every word about an object
/// is one about its partners, too.
struct HookReplay {
  private(set) var groups: Set<Int> = []

  /// - Parameters:
  ///   - words: Of all shards.
  ///   - mappings: All; their relationship mappings speak, too.
  init(
    words: [[Int: HookWords]], _ mappings: [EntityMappingPlan], _ plans: [RelationshipGroup]
  ) {
    var said: [Int: HookWords] = [:]
    for words in words {
      for (group, words) in words { said[group, default: []].formUnion(words) }
    }
    let hooked = said.filter { !$0.value.isDisjoint(with: [.first, .second]) }
    for emission in mappings.flatMap(\.links).flatMap(\.emissions) {
      said[emission.group]?.formUnion(HookWords(side: emission.side))
    }
    for (group, words) in said where hooked[group] != nil && plans.indices.contains(group) {
      // Those are always set one after the other.
      if plans[group].isOneToOne { continue }
      let needsOrder =
        switch plans[group].target {
        case .columns(_, let isOrdered): isOrdered
        case .join(_, let first, let second, let isReflexive): first || second || isReflexive
        case .count: false
        }
      if needsOrder || words.contains(.revised) || words.isSuperset(of: [.first, .second]) {
        groups.insert(group)
      }
    }
  }

  /// For ``FillCursor``: these groups alone decide what a row has.
  func write(to file: Connection) throws {
    try file.execute("CREATE TABLE replayed (number INTEGER PRIMARY KEY)")
    let insert = try file.prepare("INSERT INTO replayed VALUES (?1)")
    for number in groups.sorted() {
      try insert.bind(1, Int64(number))
      try insert.run()
    }
  }
}
