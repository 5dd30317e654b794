import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

extension RepairAccount {
  /// What rows of a table that is not the model's have lost, and which may be wrong: it is told as that of
  /// objects is, by row ids. Rows without a key are counted.
  ///
  /// - Parameter refused: Rows that are not kept, which are told elsewhere.
  mutating func addForeignRows(_ table: TableSalvage, refused: KeyRanges) {
    let name = table.name
    let (lost, doubtful) = (report.lost.count, report.doubtful.count)
    defer {
      if !table.namesRows {
        for place in lost..<report.lost.count { report.lost[place].primaryKeys = nil }
        for place in doubtful..<report.doubtful.count { report.doubtful[place].primaryKeys = nil }
      }
    }
    let evidence = salvage.evidence[NameKey(name)]
    var gone = table.lostKeys
    gone.formUnion(evidence?.lostKeys ?? KeyRanges())
    if !gone.isEmpty {
      report.lost.append(.init(.table, keys: gone, names: [name], "rows that cannot be read"))
    }
    let named = (evidence?.possibleKeys ?? KeyRanges()).subtracting(gone)
    if !named.isEmpty {
      report.lost.append(
        .init(
          .table, keys: named, isCertain: false, names: [name],
          "rows that are lost, if there were any: an index names them, and no page of the table has "
            + "them"))
    }
    if !table.gaps.isEmpty, evidence?.isComplete != true {
      report.lost.append(
        .init(.table, isCertain: false, names: [name], "rows on pages that cannot be read"))
    }
    for (place, keys) in table.lostValues.sorted(by: { $0.key < $1.key }) {
      report.lost.append(
        .init(
          .table, entity: name, property: table.columns[place].name, keys: keys,
          "had a value that cannot be read"))
    }
    if !table.surplusKeys.isEmpty {
      report.lost.append(
        .init(
          .table, keys: table.surplusKeys, names: [name],
          "rows had more values than their table has columns; those are left out"))
    }
    addDoubtfulForeignRows(table, evidence, refused)
  }

  private mutating func addDoubtfulForeignRows(
    _ table: TableSalvage, _ evidence: IndexEvidence?, _ refused: KeyRanges
  ) {
    let name = table.name
    let confirmed = evidence?.confirmedKeys ?? KeyRanges()
    if !confirmed.isEmpty {
      report.rebuilt.append(
        .init(
          .table, keys: confirmed, names: [name],
          "rows were found on pages to which no page leads, and an index names them"))
    }
    if salvage.foundTables.contains(NameKey(name)) {
      report.doubtful.append(
        .init(
          .table, names: [name],
          "pages were found by what their rows look like alone, and rows may be others'"))
    }
    if salvage.schema.table(name)?.sql?.unicodeScalars.contains("\u{FFFD}") == true {
      report.doubtful.append(
        .init(
          .table, names: [name],
          "its statement in sqlite_master is not valid UTF-8: columns may have had other names and kinds"
        ))
    }
    if salvage.copiedTables.contains(NameKey(name)) {
      report.doubtful.append(
        .init(
          .table, names: [name],
          "a page with rows like those of the model is in the store twice, and rows may be another table's"
        ))
    }
    for (keys, message) in [
      (
        table.misplacedKeys,
        "rows were found on pages in another one's place, and may be another table's"
      ),
      (table.doubtfulKeys, "rows whose records do not add up: values may be wrong"),
      (
        table.doubtfulOwnKeys,
        "rows whose row id may be wrong: it does not fit between its neighbours"
      ),
      (
        table.strayKeys.subtracting(confirmed),
        "rows on pages to which no page leads, and which no index names: they may have been deleted"
      ),
      (evidence?.unnamedKeys ?? KeyRanges(), Self.unnamed),
      (
        table.repeatedKeys,
        "rows had another one with the same row id and other values, which is left out"
      ),
    ] {
      let keys = keys.subtracting(refused)
      guard !keys.isEmpty else { continue }
      report.doubtful.append(.init(.table, keys: keys, names: [name], message))
    }
    for (found, message) in Self.doubts(of: table) {
      for (place, keys) in found.map({ ($0.key, $0.value.subtracting(refused)) })
      where !keys.isEmpty {
        report.doubtful.append(
          .init(.table, entity: name, property: table.columns[place].name, keys: keys, message))
      }
    }
    let contradicted = (evidence?.contradictedKeys ?? [:]).map {
      ($0.key.name, $0.value.subtracting(refused))
    }
    for (column, keys) in contradicted.sorted(by: { $0.0.precedesInBytes($1.0) })
    where !keys.isEmpty {
      report.doubtful.append(
        .init(
          .table, entity: name, property: column, keys: keys,
          "has another value in an index, and nothing tells which is right"))
    }
  }

  // MARK: Values of the model's tables

  /// Values of columns that the model has and their table had not: nothing tells whether there were any.
  mutating func addMissingColumns(in store: OutputStore) throws {
    for (name, column) in salvage.addedColumns {
      guard
        let place = salvage.binding.layout.tables.firstIndex(where: { $0.name == name }),
        let role = salvage.binding.layout.tables[place].columns.first(where: { $0.name == column })?
          .role,
        let (entity, property, subject) = Self.lostWith(role)
      else { continue }
      let table = store.layout.tables[place]
      guard let own = table.columns.first(where: { $0.role == role })?.name else { continue }
      let numbers = store.layout.hierarchy.concrete(of: entity).map {
        String(store.layout.entityNumbers[$0] ?? 0)
      }
      // Owners of members stand in the members' rows.
      let isMember = if case .owner = role { true } else { false }
      let condition = isMember ? "1" : "Z_ENT IN (\(numbers.joined(separator: ", ")))"
      let keys = try KeyRanges(
        store.connection.rows(
          "SELECT Z_PK FROM main.\(quoted(table.name)) WHERE \(condition) AND \(quoted(own)) IS NULL"
        ).compactMap { $0[0].integer })
      guard !keys.isEmpty else { continue }
      report.lost.append(
        .init(
          subject, entity: isMember ? table.root.rawValue : entity.rawValue, property: property,
          keys: keys, isCertain: false,
          "had values that are lost, if there were any: the column \(name).\(column) is missing"))
    }
  }

  /// Whose values a column held; nil where others tell them, or what is lost of them is named by the rows.
  private static func lostWith(
    _ role: Role
  ) -> (entity: EntityName, property: String, subject: RepairReport.Subject)? {
    switch role {
    case .attribute(let entity, let name): (entity, name, .value)
    case .leaf(let entity, let composite, let path):
      (entity, ([composite] + path).joined(separator: "."), .value)
    case .toOne(let entity, let name): (entity, name, .reference)
    case .owner(let entity, let name): (entity, "\(name) of \(entity)", .reference)
    case .targetEntity, .order: nil
    }
  }

  /// What is lost is not doubtful, too.
  mutating func settleDoubts() {
    func root(_ entity: String?) -> EntityName? {
      var found = entity.map { EntityName($0) }
      while let name = found, let above = salvage.model.hierarchy[name]?.superentity {
        found = above
      }
      return found
    }
    for place in report.doubtful.indices {
      let item = report.doubtful[place]
      guard let keys = item.primaryKeys, item.property != nil else { continue }
      let lost = KeyRanges(
        union: report.lost.filter { other in
          other.isCertain && other.subject == item.subject && other.property == item.property
            && root(other.entity) == root(item.entity)
        }.compactMap(\.primaryKeys))
      let left = keys.subtracting(lost)
      guard left != keys else { continue }
      report.doubtful[place].primaryKeys = left
      if item.count == keys.count { report.doubtful[place].count = left.count }
    }
    report.doubtful.removeAll { $0.property != nil && $0.primaryKeys?.isEmpty == true }
  }
}
