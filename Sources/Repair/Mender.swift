import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Makes rows keep the rules of `verify`, and accounts for each change.
///
/// Rules are those of `verify` itself, asked over the output while it has no indexes. What a rule
/// refuses becomes what Core Data would read as absent: NULL, a default, no pair. A row goes only
/// where a uniqueness constraint leaves no room for it.
final class Mender {
  let connection: Connection
  /// A store of the same schema without rows: tells tables and columns.
  let binding: StoreBinding
  var rebuilt: [RepairReport.Item] = []
  var lost: [RepairReport.Item] = []
  var doubtful: [RepairReport.Item] = []
  /// Rows that references lead to and that are not there, by table.
  var missingTargets: [String: KeyRanges] = [:]
  /// References that were taken away: by the table and column that held them.
  var clearedReferences: [String: KeyRanges] = [:]

  let hierarchy: EntityHierarchy
  let rules: [RowRule]

  init(_ connection: Connection, _ binding: StoreBinding) {
    self.connection = connection
    self.binding = binding
    hierarchy = binding.hierarchy
    rules = StoreSoundness.rowRules(binding)
  }

  /// Everything, in the order in which one change may ask for another.
  func mend() throws {
    // Nothing is journaled, so a statement that fails would leave the file half changed.
    try connection.execute("BEGIN")
    try mendEntities()
    try mendVersions()
    try mendAttributes()
    // A pair whose sides agree has its partner; what that leaves to uniqueness may end other pairs.
    try mendReferences()
    if try mendUniqueness() { try mendReferences(isAgain: true) }
    try mendPairs()
    try mendOrder()
    try mendCounts()
    try connection.execute("COMMIT")
  }

  /// The keys of all rows that break a rule.
  func keys(_ rule: RowRule) throws -> KeyRanges { try keys(selection(rule)) }

  func keys(_ sql: String) throws -> KeyRanges {
    let statement = try connection.prepare(sql)
    var found: [Int64] = []
    while try statement.step() {
      // Damage may have put something else there, and that is no key to tell of.
      if let key = statement.value(0).integer { found.append(key) }
    }
    return KeyRanges(found)
  }

  /// For SQL: the rows that break a rule.
  func selection(_ rule: RowRule) -> String {
    "SELECT \(rule.key) FROM \(rule.source) WHERE \(rule.condition)"
  }

  /// `Z_OPT` counts the saves of an object, from 1.
  private func mendVersions() throws {
    for table in binding.layout.tables {
      let bad = "typeof(Z_OPT) <> 'integer' OR Z_OPT < 1"
      let keys = try keys("SELECT Z_PK FROM \(quoted(table.name)) WHERE \(bad)")
      guard !keys.isEmpty else { continue }
      try connection.execute("UPDATE \(quoted(table.name)) SET Z_OPT = 1 WHERE \(bad)")
      rebuilt.append(
        .init(
          .object, entity: table.root.rawValue, keys: keys,
          "had no valid Z_OPT, which counts the saves of an object; it is 1 now"))
    }
  }

  // MARK: Many-to-many relationships

  private func mendPairs() throws {
    for join in binding.joinTables {
      for rule in StoreSoundness.pairRules(join, binding)
      where rule.kind == .dangling || rule.kind == .targetEntity {
        let count = try connection.rows(
          "SELECT count(*) FROM \(rule.source) WHERE \(rule.condition)"
        ).first?.first?.integer
        guard let count, count > 0 else { continue }
        let keys = try keys(rule)
        try connection.execute(
          "DELETE FROM \(quoted(join.name)) WHERE rowid IN "
            + "(SELECT a.rowid FROM \(rule.source) WHERE \(rule.condition))")
        lost.append(
          .init(
            .pair, entity: join.entity.rawValue, property: join.relationship, count: count,
            keys: keys,
            rule.kind == .dangling
              ? "has pairs one of whose objects does not exist; they are left out"
              : "has pairs with an object of a wrong entity; they are left out"))
      }
    }
  }

  // MARK: Ordered relationships

  private func mendOrder() throws {
    for entity in hierarchy.order {
      for property in hierarchy[entity]?.properties ?? [] {
        guard let relationship = property.relationship, property.isStored, !relationship.isToMany,
          let table = binding.table(of: entity),
          let key = binding.column(of: relationship.name, in: entity),
          let order = binding.orderColumn(of: relationship.name, in: entity)
        else { continue }
        let own = hierarchy.subtree(of: entity).map { String(binding.number(of: $0)) }
        let found = try mendOrder(
          table.name, id: "Z_PK", owner: key, order: order,
          where: "Z_ENT IN (\(own.joined(separator: ", ")))")
        report(found, entity, relationship.name)
      }
    }
    for join in binding.joinTables {
      for (order, owner, member, entity, name) in [
        (
          join.firstOrderColumn, join.secondColumn, join.firstColumn, join.entity, join.relationship
        ),
        (
          join.secondOrderColumn, join.firstColumn, join.secondColumn, join.inverseEntity,
          join.inverse
        ),
      ] {
        guard let order else { continue }
        let found = try mendOrder(
          join.name, id: "rowid", owner: owner, order: order, tie: member, where: "1")
        report(found, entity, name)
      }
    }
  }

  private func report(_ keys: KeyRanges, _ entity: EntityName, _ property: String) {
    guard !keys.isEmpty else { return }
    lost.append(
      .init(
        .order, entity: entity.rawValue, property: property, keys: keys,
        "had no place of its own in an ordered relationship; those without one now follow by Z_PK"))
  }

  /// Gives the members of lists with missing or repeated places new ones, in the order that is left.
  ///
  /// - Returns: The members that had none of their own.
  private func mendOrder(
    _ table: String, id: String, owner: String, order: String, tie: String = "Z_PK",
    where condition: String
  ) throws -> KeyRanges {
    let (name, key, place) = (quoted(table), quoted(owner), quoted(order))
    let member = quoted(tie)
    let bad = """
      SELECT \(key) FROM \(name) WHERE \(condition) AND \(key) IS NOT NULL
       GROUP BY \(key)
      HAVING count(DISTINCT \(place)) < count(*) OR sum(typeof(\(place)) <> 'integer') > 0
      """
    let keys = try keys(
      """
      SELECT \(member) FROM (
        SELECT \(member), \(place) AS p, count(*) OVER (PARTITION BY \(key), \(place)) AS n
          FROM \(name) WHERE \(condition) AND \(key) IN (\(bad)))
       WHERE n > 1 OR typeof(p) <> 'integer'
      """)
    guard !keys.isEmpty else { return keys }
    try connection.execute(
      """
      UPDATE \(name)
         SET \(place) = 1024 + 1024 * ranked.n
        FROM (SELECT \(id) AS id, row_number() OVER (
                PARTITION BY \(key)
                ORDER BY typeof(\(place)) <> 'integer', \(place), \(member)) AS n
                FROM \(name) WHERE \(condition) AND \(key) IN (\(bad))) AS ranked
       WHERE \(name).\(id) = ranked.id
      """)
    return keys
  }

  // MARK: Derived attributes

  private func mendCounts() throws {
    for (rule, column) in StoreSoundness.countRules(binding) {
      let keys = try keys(rule)
      guard !keys.isEmpty, let entity = rule.entity, let table = binding.table(of: entity) else {
        continue
      }
      try connection.execute(
        """
        UPDATE \(quoted(table.name)) SET \(quoted(column)) = counted.n
          FROM (SELECT a.Z_PK AS id, ifnull(c.n, 0) AS n FROM \(rule.source)
                 WHERE \(rule.condition)) AS counted
         WHERE \(quoted(table.name)).Z_PK = counted.id
        """)
      rebuilt.append(
        .init(
          .value, entity: entity.rawValue, property: rule.property, keys: keys,
          "is derived, and counted again"))
    }
  }
}
