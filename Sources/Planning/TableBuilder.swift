import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Collects what one source table has to give, while the entities that read it are planned.
struct TableBuilder {
  let context: PlanContext
  let old: EntityTable
  private(set) var copyColumns: [String] = []
  private(set) var copyExpressions: [String] = []
  private(set) var linkColumns: [String] = []
  private(set) var pairQueries: [PairQuery] = []
  private(set) var programs: [EntityProgram] = []

  init(context: PlanContext, old: EntityTable) {
    self.context = context
    self.old = old
    let present = Set(context.store.columns(of: old.name).map(\.name))
    for column in old.columns where present.contains(column.name) {
      if column.isAttribute {
        copyColumns.append(column.name)
      } else {
        linkColumns.append(column.name)
      }
    }
  }

  // MARK: Entities

  mutating func add(destination: EntityName, source: EntityName, table: EntityTable) {
    var references = references(of: source)
    var attributes: [AttributeProgram] = []
    var relationships: [RelationshipProgram] = []
    for column in table.columns {
      let isOwn = context.destination.hierarchy.isKind(destination, of: context.bearer(of: column))
      if column.isAttribute {
        attributes.append(isOwn ? attribute(column, of: destination, from: source) : .null)
      } else {
        relationships.append(
          isOwn
            ? relationship(column, of: destination, from: source, references: &references) : .null)
      }
    }
    programs.append(
      EntityProgram(
        source: source, destination: destination, sourceNumber: context.sourceNumber(source),
        destinationNumber: context.destinationNumber(destination), attributes: attributes,
        relationships: relationships,
        sourceRules: RowRules(of: source, in: context.source, columns: copyColumns),
        destinationRules: RowRules(
          of: destination, in: context.destination, columns: table.columns.map(\.name)),
        references: references))
  }

  /// An entity without successor: its rows are looked at and left behind.
  mutating func addRemoved(_ source: EntityName) {
    guard context.source.hierarchy[source]?.isAbstract == false else { return }
    programs.append(
      EntityProgram(
        source: source, destination: nil, sourceNumber: context.sourceNumber(source),
        destinationNumber: 0, attributes: [], relationships: [],
        sourceRules: RowRules(of: source, in: context.source, columns: copyColumns),
        destinationRules: RowRules(of: source, in: context.source, columns: []),
        references: references(of: source)))
  }

  private func references(of source: EntityName) -> [ReferenceCheck] {
    context.source.hierarchy.properties(of: source).compactMap { declared in
      guard declared.property.isStored, let relationship = declared.property.relationship,
        !relationship.isToMany,
        let target = context.source.table(of: relationship.destinationEntity),
        let column = context.source.column(of: relationship.name, in: source),
        let key = linkColumns.firstIndex(of: column)
      else { return nil }
      let entityColumn = context.source.entityColumn(of: relationship.name, in: source)
      let orderColumn = context.source.orderColumn(of: relationship.name, in: source)
      return ReferenceCheck(
        relationship: relationship.name, key: key,
        entityColumn: entityColumn.flatMap(linkColumns.firstIndex(of:)),
        orderColumn: orderColumn.flatMap(linkColumns.firstIndex(of:)),
        targetTable: target.name, allowed: context.allowed(relationship.destinationEntity),
        surviving: [:])
    }
  }

  // MARK: Attributes

  private mutating func attribute(
    _ column: Column, of destination: EntityName, from source: EntityName
  ) -> AttributeProgram {
    switch column.role {
    case .attribute(_, let name):
      guard
        let new = context.destination.hierarchy.property(name, of: destination)?.property.attribute
      else { return .null }
      let match = context.inference.correspondence(of: name, in: destination)
      let was = match?.property.attribute
      if let derivation = new.derivationExpression, was?.derivationExpression != derivation {
        return derived(derivation, of: destination, from: source)
      }
      guard let was, let match,
        let column = context.source.column(of: match.property.name, in: source),
        let place = copyColumns.firstIndex(of: column)
      else { return new.defaultValue.map(AttributeProgram.constant) ?? .null }
      return matched(new, was, place)
    case .leaf(_, let composite, let path):
      guard let match = context.inference.correspondence(of: composite, in: destination) else {
        return .null
      }
      let leaves = context.source.leafColumns(of: match.property.name, in: source)
      let type = context.destination.leafColumns(of: composite, in: destination)
        .first { $0.path == path }?.type
      guard let leaf = leaves.first(where: { $0.path == path && $0.type == type }),
        let place = copyColumns.firstIndex(of: leaf.column)
      else { return .null }
      return .source(place)
    case .toOne, .targetEntity, .order, .owner:
      return .null
    }
  }

  /// Source: `core-data-migration.md` §2.2 (types), §2.4 (defaults).
  private func matched(_ new: AttributeDescription, _ was: AttributeDescription, _ place: Int)
    -> AttributeProgram
  {
    let fill = !new.traits.isOptional && was.traits.isOptional ? new.defaultValue : nil
    if new.type == .binary, was.type == .binary,
      new.allowsExternalBinaryDataStorage != was.allowsExternalBinaryDataStorage
    {
      return new.allowsExternalBinaryDataStorage ? .markedInline(place) : .unmarked(place)
    }
    if new.type != was.type, !was.type.keepsValues(as: new.type) {
      return .converted(place, new.type, fill)
    }
    return fill.map { .sourceOr(place, $0) } ?? .source(place)
  }

  /// The value of a derived attribute that the source does not have. A count is computed; for
  /// other derivations the value stays NULL until the object is saved, and the plan says so.
  private mutating func derived(
    _ derivation: String, of destination: EntityName, from source: EntityName
  ) -> AttributeProgram {
    guard derivation.hasPrefix("count:("), derivation.hasSuffix(")") else { return .null }
    let name = String(derivation.dropFirst("count:(".count).dropLast())
    guard
      let declared = context.destination.hierarchy.property(name, of: destination),
      let relationship = declared.property.relationship,
      let pairs = context.pairs(of: relationship, declaredBy: declared.entity)
    else { return .constant(.integer(0)) }
    let storage = pairs.storage
    let numbers = pairs.targets.keys.sorted().map(String.init).joined(separator: ", ")
    copyExpressions.append(
      """
      (SELECT count(*)
         FROM \(quoted(storage.table)) AS r JOIN \(quoted(storage.targetTable)) AS y
           ON y.Z_PK = r.\(quoted(storage.targetColumn))
        WHERE r.\(quoted(storage.ownerColumn)) = t.Z_PK AND y.Z_ENT IN (\(numbers)))
      """)
    return .source(copyColumns.count + copyExpressions.count - 1)
  }

  // MARK: Relationships

  private mutating func relationship(
    _ column: Column, of destination: EntityName, from source: EntityName,
    references: inout [ReferenceCheck]
  ) -> RelationshipProgram {
    switch column.role {
    case .toOne(let declaring, let name), .targetEntity(let declaring, let name),
      .order(let declaring, let name):
      guard
        let new = context.destination.hierarchy.property(name, of: destination)?
          .property.relationship
      else { return .null }
      if let match = context.inference.correspondence(of: name, in: destination),
        let was = match.property.relationship
      {
        guard !was.isToMany,
          let number = references.firstIndex(where: { $0.relationship == was.name })
        else { return .null }
        references[number].surviving = context.surviving(
          was.destinationEntity, as: new.destinationEntity)
        return carried(
          column.role, was, declaredBy: match.entity, source: source, references, number)
      }
      // Only the other side has a predecessor: the pairs are read from there.
      guard let inverse = context.destination.hierarchy.inverse(of: new),
        context.origin(of: inverse.relationship.name, in: inverse.entity) != nil,
        let query = pairQuery(named: name, new, declaredBy: declaring)
      else { return .null }
      return switch column.role {
      case .toOne: .pairedKey(query: query)
      case .targetEntity: .pairedEntity(query: query)
      default: .pairedOrder(query: query)
      }
    case .owner(let owner, let name):
      guard
        let new = context.destination.hierarchy.property(name, of: owner)?.property.relationship,
        let query = pairQuery(
          named: name, new, declaredBy: owner, rowsAreTargets: true)
      else { return .null }
      return .pairedKey(query: query)
    case .attribute, .leaf:
      return .null
    }
  }

  private func carried(
    _ role: Role, _ was: RelationshipDescription, declaredBy declaring: EntityName,
    source: EntityName, _ references: [ReferenceCheck], _ number: Int
  ) -> RelationshipProgram {
    switch role {
    case .toOne: return .key(reference: number)
    case .targetEntity: return .targetEntity(reference: number)
    default:
      if let column = context.source.orderColumn(of: was.name, in: source),
        let place = linkColumns.firstIndex(of: column)
      {
        return .order(place, reference: number)
      }
      let key = quoted(linkColumns[references[number].key])
      let numbers = old.entities.filter { context.source.hierarchy.isKind($0, of: declaring) }
        .map { String(context.sourceNumber($0)) }
      return .rank(
        reference: number,
        countSQL: """
          SELECT count(*)
            FROM \(quoted(old.name))
           WHERE \(key) = ?1 AND Z_PK < ?2 AND Z_ENT IN (\(numbers.joined(separator: ", ")))
          """)
    }
  }

  /// The number of a query that gives, for rows of this table, the key at the other end.
  ///
  /// - Parameter rowsAreTargets: The relationship is declared at the other end: rows of this
  ///   table are its targets.
  private mutating func pairQuery(
    named name: String, _ relationship: RelationshipDescription,
    declaredBy entity: EntityName, rowsAreTargets: Bool = false
  ) -> Int? {
    let label = "\(entity).\(name)"
    if let known = pairQueries.firstIndex(where: { $0.relationship == label }) { return known }
    guard let pairs = context.pairs(of: relationship, declaredBy: entity) else { return nil }
    var storage = pairs.storage
    // From here on the owner is the row and the target is the other object.
    if rowsAreTargets { storage = storage.swapped }
    let others: [Int: Int64]
    let rows: [Int64]
    if rowsAreTargets {
      rows = pairs.targets.keys.sorted().map(Int64.init)
      others = Dictionary(uniqueKeysWithValues: pairs.owners.map { (Int($0), 0) })
    } else {
      rows = pairs.owners
      others = pairs.targets
    }
    // The row's place among the other object's members.
    let place = storage.inverseOrderColumn.map { "r." + quoted($0) }
    let cases = others.keys.sorted().map { "WHEN \($0) THEN \(others[$0] ?? 0)" }
    guard !cases.isEmpty, !rows.isEmpty else { return nil }
    let from = """
        FROM \(quoted(storage.table)) AS r
        JOIN \(quoted(storage.ownerTable)) AS x ON x.Z_PK = r.\(quoted(storage.ownerColumn))
        JOIN \(quoted(storage.targetTable)) AS y ON y.Z_PK = r.\(quoted(storage.targetColumn))
       WHERE x.Z_ENT IN (\(rows.map(String.init).joined(separator: ", ")))
         AND y.Z_ENT IN (\(others.keys.sorted().map(String.init).joined(separator: ", ")))
      """
    let row = "r." + quoted(storage.ownerColumn)
    let other = "r." + quoted(storage.targetColumn)
    pairQueries.append(
      PairQuery(
        relationship: label,
        sql: """
          SELECT \(row), \(other), CASE y.Z_ENT \(cases.joined(separator: " ")) END,
                 \(place ?? "NULL")
          \(from)
             AND \(row) BETWEEN ?1 AND ?2
           ORDER BY \(row), \(other)
          """,
        rankSQL: place == nil
          ? """
          SELECT count(*)
          \(from)
             AND \(other) = ?1 AND \(row) < ?2
          """ : nil))
    return pairQueries.count - 1
  }
}

extension AttributeType {
  /// True when every stored value of this type is, as it is, a value of the other: the wider
  /// integer types. Source: `core-data-sqlite-format.md` §5.
  func keepsValues(as other: AttributeType) -> Bool {
    let rank: [AttributeType: Int] = [.boolean: 0, .integer16: 1, .integer32: 2, .integer64: 3]
    guard let old = rank[self], let new = rank[other] else {
      return self == other || (self == .float && other == .double)
    }
    return old <= new && other != .boolean
  }
}
