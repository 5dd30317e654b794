/// Bounds that no honest mapping model meets. References in a file may repeat, so that a small
/// file could ask for a huge one.
struct MappingBudget {
  static let entityMappingLimit = 5_000
  /// Property mappings and entries of user infos. The largest file seen has about 700.
  static let rowLimit = 50_000

  private var rows = 0
  private var claimed: Set<String> = []
  private let file: String

  init(file: String) { self.file = file }

  func check(entityMappings count: Int) throws(MappingError) {
    guard count <= Self.entityMappingLimit else {
      throw .unreadable(
        file: file, reason: "it has more than \(Self.entityMappingLimit) entity mappings")
    }
  }

  mutating func take(rows count: Int) throws(MappingError) {
    rows += count
    guard rows <= Self.rowLimit else {
      throw .unreadable(file: file, reason: "it has more than \(Self.rowLimit) property mappings")
    }
  }

  /// True the first time that an object is asked for: each has one owner.
  mutating func claim(_ id: String) -> Bool { claimed.insert(id).inserted }
}
