import GodwitPlanning
import GodwitSQLite

/// A table that can be written by pages, or whose rows can be taken over from pages, with its indexes.
package struct CoveredTable {
  /// An index, as its entries are made.
  package struct Index {
    /// One value of an entry.
    package struct Field: Equatable {
      /// Place in a row: 0 is the row's key, the columns of the plan follow.
      package var place: Int
      package var isDescending = false
    }

    package var name: String
    /// True for the index of a PRIMARY KEY or UNIQUE clause.
    package var isAutomatic: Bool
    package var isUnique: Bool
    /// What entries are ordered by, and then the row's key.
    package var fields: [Field]
    /// How many of the fields were asked for.
    package var keyCount: Int
  }

  package var name: String
  /// For each column of the table its place in a row; `nil` for the one that is the row's key,
  /// which is NULL in the record.
  package var recordPlaces: [Int?]
  /// For each place in a row.
  package var affinities: [ColumnAffinity]
  package var indexes: [Index]
}

extension CoveredTable {
  /// Looks at a table as SQLite sees it.
  ///
  /// - Parameters:
  ///   - key: The column that is the row's key, when there is one; the first of a row.
  ///   - columns: The other columns of a row.
  /// - Returns: `nil` when the table has anything that takes SQLite to write it.
  package init?(_ name: String, key: String?, columns: [String], in file: Connection) throws {
    self.name = name
    guard let shape = try file.shape(of: name), shape.kind == "table", !shape.isWithoutRowID,
      !shape.isStrict, shape.words.isDisjoint(with: CoveredTable.unusual)
    else { return nil }
    var places: [[UInt8]: Int] = [:]
    for (place, column) in columns.enumerated() { places[column.columnKey] = place + 1 }
    guard places.count == columns.count else { return nil }

    recordPlaces = []
    affinities = Array(repeating: .blob, count: columns.count + 1)
    affinities[0] = .integer
    var placeOfColumn: [Int: Int] = [:]
    guard shape.columns.count == columns.count + (key == nil ? 0 : 1) else { return nil }
    for (number, column) in shape.columns.enumerated() {
      let columnName = column.name.columnKey
      guard !columnName.isEmpty, column.isNullable, !column.isHidden, !column.hasDefault
      else { return nil }
      let type = column.declaredType
      if columnName == key?.columnKey {
        guard type.uppercased() == "INTEGER", column.keyPlace == 1 else { return nil }
        recordPlaces.append(nil)
        placeOfColumn[number] = 0
      } else {
        // A single INTEGER PRIMARY KEY would be the row's key.
        guard let place = places[columnName], key == nil || column.keyPlace == 0 else {
          return nil
        }
        recordPlaces.append(place)
        affinities[place] = ColumnAffinity(declaredType: type)
        placeOfColumn[number] = place
      }
    }
    guard key == nil || recordPlaces.contains(where: { $0 == nil }) else { return nil }
    if key == nil {
      let keys = shape.columns.filter { $0.keyPlace != 0 }
      if keys.count == 1, keys[0].declaredType.uppercased() == "INTEGER" { return nil }
    }

    indexes = []
    for declared in shape.indexes.reversed() {
      // An index that stands for the row's key says that the key is an ordinary column.
      guard !declared.isPartial, key == nil || declared.origin != "pk",
        let index = CoveredTable.index(declared, placeOfColumn)
      else { return nil }
      indexes.append(index)
    }
  }

  private static func index(_ declared: TableShape.Index, _ places: [Int: Int]) -> Index? {
    var index = Index(
      name: declared.name, isAutomatic: declared.origin != "c", isUnique: declared.isUnique,
      fields: [], keyCount: 0)
    for field in declared.fields {
      guard field.collation == "BINARY",
        let place = field.column == -1 ? 0 : places[field.column]
      else { return nil }
      // Behind what was asked for comes the row's key and nothing else.
      guard field.isKey ? index.keyCount == index.fields.count : place == 0 else { return nil }
      index.fields.append(.init(place: place, isDescending: field.isKey && field.isDescending))
      if field.isKey { index.keyCount += 1 }
    }
    guard index.keyCount > 0, index.fields.count == index.keyCount + 1 else { return nil }
    return index
  }

  /// Constraints of which the pragmas say nothing.
  private static let unusual: Set<String> = [
    "CHECK", "AUTOINCREMENT", "CONFLICT", "COLLATE", "GENERATED",
  ]
}
