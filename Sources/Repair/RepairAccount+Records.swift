import GodwitObjectModel
import GodwitPersistentStore

extension RepairAccount {
  /// What the records of rows that were kept have lost, and rows that may be wrong.
  mutating func addRecords() {
    for source in salvage.binding.layout.tables {
      guard let table = salvage.tables[NameKey(source.name)] else { continue }
      let roles = Dictionary(
        source.columns.map { (NameKey($0.name), $0.role) }, uniquingKeysWith: { first, _ in first })
      for (place, keys) in table.lostValues.sorted(by: { $0.key < $1.key }) {
        let name = table.columns[place].name
        report.lost.append(
          .init(
            .value, entity: source.root.rawValue, property: roles[NameKey(name)]?.property ?? name,
            keys: keys, "had a value that cannot be read"))
      }
      for (found, message) in Self.doubts(of: table) {
        for (place, keys) in found {
          let name = table.columns[place].name
          report.doubtful.append(
            .init(
              .value, entity: source.root.rawValue,
              property: roles[NameKey(name)]?.property ?? name,
              keys: keys, message))
        }
      }
      if !table.doubtfulKeys.isEmpty {
        report.doubtful.append(
          .init(
            .object, entity: source.root.rawValue, keys: table.doubtfulKeys,
            "rows whose records do not add up: values may be wrong"))
      }
      if !table.doubtfulOwnKeys.isEmpty {
        report.doubtful.append(
          .init(
            .object, entity: source.root.rawValue, keys: table.doubtfulOwnKeys,
            "rows whose Z_PK may be wrong: it does not fit between its neighbours"))
      }
      if table.hasZeroKey {
        report.doubtful.append(
          .init(
            .object, entity: source.root.rawValue, keys: KeyRanges(0...0),
            "has a Z_PK that Core Data gives no object, and may have had another one"))
      }
      let contradicted = salvage.evidence[NameKey(source.name)]?.contradictedKeys ?? [:]
      for (column, keys) in contradicted.sorted(by: { $0.key.name.precedesInBytes($1.key.name) }) {
        report.doubtful.append(
          .init(
            column.name == "Z_ENT" ? .entity : roles[column]?.subject ?? .value,
            entity: source.root.rawValue,
            property: roles[column]?.property ?? column.name, keys: keys,
            "has another value in an index, and nothing tells which is right"))
      }
      let confirmed = salvage.evidence[NameKey(source.name)]?.confirmedKeys ?? KeyRanges()
      let found = KeyRanges(union: [table.misplacedKeys, confirmed])
      if !found.isEmpty {
        report.rebuilt.append(
          .init(
            .object, entity: source.root.rawValue, keys: found,
            "rows were found on pages in another one's place, or to which no page leads"))
      }
      let strays = table.strayKeys.subtracting(confirmed)
      if !strays.isEmpty {
        report.doubtful.append(
          .init(
            .object, entity: source.root.rawValue, keys: strays,
            "rows on pages to which no page leads, and which no index names: they may have been "
              + "deleted"))
      }
      let contested = table.contestedKeys.subtracting(confirmed)
      if !contested.isEmpty {
        report.doubtful.append(
          .init(.object, entity: source.root.rawValue, keys: contested, Self.contested))
      }
      let unnamed = salvage.evidence[NameKey(source.name)]?.unnamedKeys ?? KeyRanges()
      if !unnamed.isEmpty {
        report.doubtful.append(
          .init(.object, entity: source.root.rawValue, keys: unnamed, Self.unnamed))
      }
      if !table.repeatedKeys.isEmpty {
        report.doubtful.append(
          .init(
            .object, entity: source.root.rawValue, keys: table.repeatedKeys,
            "had another row with the same Z_PK and other values, which is left out"))
      }
    }
  }

  /// Values that were kept and may be wrong, by the number of the column.
  static func doubts(
    of table: TableSalvage
  ) -> [(keys: [(key: Int, value: KeyRanges)], message: String)] {
    [
      (
        table.doubtfulValues.sorted { $0.key < $1.key },
        "goes on in overflow pages that may be another row's, and the value may be that row's"
      ),
      (
        table.oddTexts.sorted { $0.key < $1.key },
        "has a text that is not valid UTF-8, and is kept as it is"
      ),
      (
        table.convertedValues.sorted { $0.key < $1.key },
        "had a value of another storage class than its column holds, and is kept as the number that SQLite "
          + "makes of it"
      ),
    ]
  }

  static let contested =
    "rows on pages to which no page leads, which may be rows of a table that is not the model's: such "
    + "a table has lost rows, too"

  static let unnamed =
    "rows that no index names, where indexes are whole: they may have been deleted"
}

extension Role {
  fileprivate var subject: RepairReport.Subject {
    switch self {
    case .attribute, .leaf: .value
    case .toOne, .targetEntity, .owner: .reference
    case .order: .order
    }
  }

  fileprivate var property: String {
    switch self {
    case .attribute(_, let name), .toOne(_, let name), .targetEntity(_, let name),
      .order(_, let name):
      name
    case .owner(_, let relationship): relationship
    case .leaf(_, let composite, let path): ([composite] + path).joined(separator: ".")
    }
  }
}
