import GodwitDigests
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

/// Collects what one source table has to give, while the entities that read it are planned.
struct TableBuilder {
  let context: PlanContext
  let old: EntityTable
  /// Tables of the source whose rows are counted anew: see ``PlanContext/countedStrays(in:)``.
  let recounted: Set<String>
  private(set) var copyColumns: [String] = []
  private(set) var copyExpressions: [String] = []
  private(set) var linkColumns: [String] = []
  private(set) var pairQueries: [PairQuery] = []
  private(set) var programs: [EntityProgram] = []

  init(context: PlanContext, old: EntityTable, recounted: Set<String> = []) {
    self.context = context
    self.old = old
    self.recounted = recounted
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
      if let counted = context.destination.hierarchy.countedRelationship(of: new, in: destination) {
        if let was, let match, was.type.keepsValues(as: new.type),
          keepsCount(of: counted, in: destination, was: was.countedRelationship),
          let column = context.source.column(of: match.property.name, in: source),
          let place = copyColumns.firstIndex(of: column)
        {
          return .source(place)
        }
        return count(of: counted, as: new.type, in: destination, from: source)
      }
      if let derivation = new.derivationExpression, was?.derivationExpression != derivation {
        return derived(new, of: destination)
      }
      guard let was, let match,
        let column = context.source.column(of: match.property.name, in: source),
        let place = copyColumns.firstIndex(of: column)
      else { return new.storedDefault.map(AttributeProgram.constant) ?? .null }
      return matched(new, was, place)
    case .leaf(_, let composite, let path):
      guard let match = context.inference.correspondence(of: composite, in: destination) else {
        return .null
      }
      let leaves = context.source.leafColumns(of: match.property.name, in: source)
      guard
        let new = context.destination.leafColumns(of: composite, in: destination)
          .first(where: { $0.path == path })?.attribute,
        let leaf = leaves.first(where: { $0.path == path && $0.type == new.type }),
        let place = copyColumns.firstIndex(of: leaf.column)
      else { return .null }
      return leaf.attribute.changedStorage(as: new, at: place) ?? .source(place)
    case .toOne, .targetEntity, .order, .owner:
      return .null
    }
  }

  /// Source: `core-data-migration.md` §2.2.
  private func matched(_ new: AttributeDescription, _ was: AttributeDescription, _ place: Int)
    -> AttributeProgram
  {
    let fill = new.filling(of: was)
    if let changed = was.changedStorage(as: new, at: place, filling: fill) { return changed }
    if new.type != was.type, !was.type.keepsValues(as: new.type) {
      return .converted(place, new.type, fill)
    }
    return fill.map { .sourceOr(place, $0) } ?? .source(place)
  }

  /// True when every object's count is what the source says: the same relationship is counted, and
  /// none of its pairs falls away.
  private func keepsCount(of name: String, in destination: EntityName, was: String?) -> Bool {
    guard let was, context.keepsPairs(of: name, in: destination, was: was),
      let source = context.predecessor(of: destination),
      let declared = context.source.hierarchy.property(was, of: source),
      let relationship = declared.property.relationship
    else { return false }
    let table = context.strayTable(of: relationship, declaredBy: declared.entity)
    return table.map { !recounted.contains($0) } ?? true
  }

  /// The number of an object's pairs in the destination, as the attribute's type stores it.
  private mutating func count(
    of name: String, as type: AttributeType, in destination: EntityName, from source: EntityName
  ) -> AttributeProgram {
    guard let declared = context.destination.hierarchy.property(name, of: destination),
      let relationship = declared.property.relationship
    else { return .null }
    let none = AttributeProgram.constant(type.storesReals ? .real(0) : .integer(0))
    let pairs = context.pairSet(of: relationship, declaredBy: declared.entity)
    let number = Int(context.sourceNumber(source))
    guard (pairs.parts + pairs.laterParts).contains(where: { $0.owners[number] != nil }) else {
      return none
    }
    let count = "(SELECT count(*) FROM (\(pairs.living.kept { "\($0.owner) = t.Z_PK" })))"
    return expression(type.storesReals ? "CAST(\(count) AS REAL)" : count)
  }

  private mutating func expression(_ text: String) -> AttributeProgram {
    if let known = copyExpressions.firstIndex(where: { $0.isSameName(as: text) }) {
      return .expression(known)
    }
    copyExpressions.append(text)
    return .expression(copyExpressions.count - 1)
  }

  /// What a derivation over the object's own texts gives, from what they are in the destination. Any
  /// other stays NULL until the object is saved, and the plan says so.
  private mutating func derived(
    _ new: AttributeDescription, of destination: EntityName
  ) -> AttributeProgram {
    guard
      let derivation = context.destination.hierarchy.textDerivation(of: new, in: destination),
      let text = derivation.derivedText({ text(of: $0, in: destination) })
    else { return .null }
    return expression(text)
  }

  /// What a text of the destination holds that is not derived.
  private func text(of attribute: String, in destination: EntityName) -> String? {
    guard
      let input = context.destination.hierarchy.property(attribute, of: destination)?.property
        .attribute
    else { return nil }
    let initial = Self.literal(input.defaultValue)
    guard let match = context.inference.correspondence(of: attribute, in: destination),
      let was = match.property.attribute, was.type == .string,
      let source = context.predecessor(of: destination),
      let column = context.source.column(of: match.property.name, in: source),
      copyColumns.contains(column)
    else { return initial }
    return input.filling(of: was) == nil
      ? "t.\(quoted(column))" : "coalesce(t.\(quoted(column)), \(initial))"
  }

  private static func literal(_ value: StoredDefault?) -> String {
    guard case .text(let text)? = value else { return "NULL" }
    return "CAST(X'\(Hexadecimal.text(of: Array(text.utf8)))' AS TEXT)"
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
      let pairs = context.pairSet(of: new, declaredBy: declaring)
      if case .order = column.role, !pairs.lists.isEmpty,
        let query = pairQuery("\(declaring).\(name)", pairs)
      {
        return .pairedOrder(query: query)
      }
      if let match = context.inference.correspondence(of: name, in: destination),
        let was = match.property.relationship, !was.isToMany,
        pairs.limit != .oneToOne || !context.needsMatching(new, declaredBy: declaring)
      {
        guard
          let number = references.firstIndex(where: { $0.relationship.isSameName(as: was.name) })
        else {
          return .null
        }
        references[number].surviving = context.surviving(
          was.destinationEntity, as: new.destinationEntity
        ).merging(context.strays(beside: was.destinationEntity, as: new.destinationEntity)) {
          known, _ in known
        }
        return carried(column.role, was, source: source, pairs, number)
      }
      guard let query = pairQuery("\(declaring).\(name)", pairs) else { return .null }
      return switch column.role {
      case .toOne: .pairedKey(query: query)
      case .targetEntity: .pairedEntity(query: query)
      default: .pairedOrder(query: query)
      }
    case .owner(let owner, let name):
      guard
        let new = context.destination.hierarchy.property(name, of: owner)?.property.relationship
      else { return .null }
      var pairs = context.pairSet(of: new, declaredBy: owner)
      // The row is the target, and the owner is the other object.
      pairs.swap()
      guard let query = pairQuery("\(owner).\(name)", pairs) else { return .null }
      return .pairedKey(query: query)
    case .attribute, .leaf:
      return .null
    }
  }

  private func carried(
    _ role: Role, _ was: RelationshipDescription, source: EntityName, _ pairs: PairSet,
    _ number: Int
  ) -> RelationshipProgram {
    switch role {
    case .toOne: return .key(reference: number)
    case .targetEntity: return .targetEntity(reference: number)
    default:
      // Places of two source relationships say nothing about each other.
      if pairs.parts.count <= 1, let column = context.source.orderColumn(of: was.name, in: source),
        let place = linkColumns.firstIndex(of: column)
      {
        return .order(place, reference: number)
      }
      let counts = pairs.parts.map { part in
        """
        (SELECT count(*)
           FROM \(quoted(part.storage.table))
          WHERE \(quoted(part.storage.targetColumn)) = ?1 AND Z_PK < ?2
            AND Z_ENT IN (\(PairSet.list(part.owners))))
        """
      }
      // Where nothing is a pair, only references to nothing are carried, which no list has.
      let count = counts.isEmpty ? "0 * ?1 * ?2" : counts.joined(separator: " + ")
      return .rank(reference: number, countSQL: "SELECT \(count)")
    }
  }

  /// The number of a query that gives, for rows of this table, the key at the other end.
  ///
  /// - Parameter pairs: Their owners are rows of this table.
  private mutating func pairQuery(_ label: String, _ pairs: PairSet) -> Int? {
    if let known = pairQueries.firstIndex(where: { $0.relationship.isSameName(as: label) }) {
      return known
    }
    guard !pairs.isEmpty else { return nil }
    let range: PairSet.Condition = { "\($0.owner) BETWEEN ?1 AND ?2" }
    let kept = pairs.placed(range)
    pairQueries.append(
      PairQuery(
        relationship: label,
        sql: """
          SELECT o, t, te, op
            FROM (\(PairSet.union([kept] + pairs.dangling(range))))
           ORDER BY o, te IS NULL, t
          """,
        rankSQL: pairs.placesOwners
          ? nil
          : "SELECT count(*) FROM (\(pairs.kept { "\($0.target) = ?1 AND \($0.owner) < ?2" }))"))
    return pairQueries.count - 1
  }
}
