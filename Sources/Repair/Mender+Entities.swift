import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

extension Mender {
  /// Rows whose `Z_ENT` is not an entity of their table, or one whose required values they lack while
  /// another entity's they have.
  func mendEntities() throws {
    for table in binding.layout.tables {
      let concrete = binding.hierarchy.concrete(of: table.root)
      guard !concrete.isEmpty else { continue }
      let candidates = concrete.map { Candidate($0, in: table, binding) }
      let numbers = candidates.map { String($0.number) }.joined(separator: ", ")
      let bad = "Z_ENT IS NULL OR typeof(Z_ENT) <> 'integer' OR Z_ENT NOT IN (\(numbers))"
      if candidates.count == 1 {
        let keys = try keys("SELECT Z_PK FROM \(quoted(table.name)) WHERE \(bad)")
        guard !keys.isEmpty else { continue }
        try connection.execute(
          "UPDATE \(quoted(table.name)) SET Z_ENT = \(candidates[0].number) WHERE \(bad)")
        rebuilt.append(
          .init(
            .entity, entity: concrete[0].rawValue, keys: keys,
            "was wrong; it is now the only entity of its table"))
        continue
      }
      // Rows that their own entity would not have.
      let misfits = candidates.map { "(Z_ENT = \($0.number) AND NOT (\($0.isComplete)))" }
      let suspects = try keys(
        "SELECT Z_PK FROM \(quoted(table.name)) WHERE \(bad) OR "
          + misfits.joined(separator: " OR "))
      guard !suspects.isEmpty else { continue }
      try judge(suspects, of: table, candidates)
    }
  }

  private func judge(
    _ suspects: KeyRanges, of table: EntityTable, _ candidates: [Candidate]
  ) throws {
    let scores = candidates.map { "(\($0.isComplete)), (\($0.strangers))" }.joined(separator: ", ")
    let statement = try connection.prepare(
      "SELECT Z_ENT, \(scores) FROM \(quoted(table.name)) WHERE Z_PK = ?1")
    let references = try references(to: table)
    var (certain, guessed): ([EntityName: KeyRanges], [EntityName: KeyRanges]) = ([:], [:])
    for range in suspects.ranges {
      for key in range {
        try statement.bind(1, key)
        guard try statement.step() else { continue }
        let own = statement.value(0).integer.flatMap { number in
          candidates.firstIndex { $0.number == number }
        }
        let facts = candidates.indices.map { place in
          (
            isComplete: statement.int64(Int32(1 + 2 * place)) != 0,
            strangers: statement.int64(Int32(2 + 2 * place))
          )
        }
        statement.reset()
        let fitting = candidates.indices.filter { facts[$0].isComplete && facts[$0].strangers == 0 }
        let named = references[key].flatMap { number in
          candidates.firstIndex { $0.number == number }
        }
        let choice: (place: Int, isCertain: Bool)
        if let named, own == nil || fitting.contains(named) {
          choice = (named, true)
        } else if let own {
          // Only a row that fits one other entity just so changes its own.
          guard fitting.count == 1 else { continue }
          choice = (fitting.first ?? own, true)
        } else if fitting.count == 1 {
          choice = (fitting[0], true)
        } else {
          let best = candidates.indices.min { a, b in
            (facts[a].isComplete ? 0 : 1, facts[a].strangers)
              < (facts[b].isComplete ? 0 : 1, facts[b].strangers)
          }
          choice = (best ?? 0, false)
        }
        if choice.place == own { continue }
        let entity = candidates[choice.place].entity
        _ = try connection.rows(
          "UPDATE \(quoted(table.name)) SET Z_ENT = ?1 WHERE Z_PK = ?2",
          [.integer(candidates[choice.place].number), .integer(key)])
        if choice.isCertain {
          certain[entity, default: KeyRanges()].insert(key)
        } else {
          guessed[entity, default: KeyRanges()].insert(key)
        }
      }
    }
    for (entity, keys) in certain.sorted(by: { $0.key < $1.key }) {
      rebuilt.append(
        .init(
          .entity, entity: entity.rawValue, keys: keys,
          "was wrong; it is now what references to the rows, or their values, show"))
    }
    for (entity, keys) in guessed.sorted(by: { $0.key < $1.key }) {
      doubtful.append(
        .init(
          .entity, entity: entity.rawValue, keys: keys,
          "was lost, and this is the entity that the values fit best"))
    }
  }

  /// `Z_ENT` that references to rows of a table say, where they agree.
  private func references(to table: EntityTable) throws -> [Int64: Int64] {
    var found: [Int64: Int64?] = [:]
    for other in binding.layout.tables {
      for column in other.columns {
        guard case .targetEntity(let entity, let property) = column.role,
          let relationship = hierarchy.property(property, of: entity)?.property.relationship,
          hierarchy.root(of: relationship.destinationEntity) == table.root,
          let key = binding.column(of: property, in: entity)
        else { continue }
        let statement = try connection.prepare(
          "SELECT DISTINCT \(quoted(key)), \(quoted(column.name)) FROM \(quoted(other.name)) "
            + "WHERE \(quoted(key)) IS NOT NULL AND typeof(\(quoted(column.name))) = 'integer'")
        while try statement.step() {
          let (key, number) = (statement.int64(0), statement.int64(1))
          if let known = found[key], known != number {
            found[key] = .some(nil)
          } else {
            found[key] = number
          }
        }
      }
    }
    return found.compactMapValues { $0 }
  }

  /// An entity that a row may belong to.
  private struct Candidate {
    let entity: EntityName
    let number: Int64
    /// For SQL: whether no required value is missing.
    let isComplete: String
    /// For SQL: how many values the row has that this entity does not have.
    let strangers: String

    init(_ entity: EntityName, in table: EntityTable, _ binding: StoreBinding) {
      self.entity = entity
      number = binding.number(of: entity)
      let hierarchy = binding.hierarchy
      var (required, own): ([String], Set<String>) = ([], [])
      for declared in hierarchy.properties(of: entity) where declared.property.isStored {
        guard let column = binding.column(of: declared.property.name, in: entity) else { continue }
        own.insert(column)
        if let attribute = declared.property.attribute, !attribute.mayBeNull {
          required.append("\(quoted(column)) IS NOT NULL")
        }
      }
      isComplete = required.isEmpty ? "1" : required.joined(separator: " AND ")
      let others = table.columns.filter { column in
        switch column.role {
        case .attribute(let declaring, _), .toOne(let declaring, _):
          !own.contains(column.name) && !hierarchy.isKind(entity, of: declaring)
        default: false
        }
      }
      strangers =
        others.isEmpty
        ? "0" : others.map { "(\(quoted($0.name)) IS NOT NULL)" }.joined(separator: " + ")
    }
  }
}
