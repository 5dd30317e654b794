import GodwitExpressions
import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite

/// A concrete entity of the destination, ready to be asked by name.
final class DestinationKind {
  let plan: DestinationEntityPlan
  let table: TablePlan
  let attributes: NameTable
  /// By their number in the entity.
  let columns: [AttributeColumn]
  /// Place → number of the attribute; −1 where the entity has none.
  let numbers: [Int]
  let composites: CompositeIndex
  let relationships: NameTable
  /// The record of a new object: `Z_ENT`, `Z_OPT` and the model's defaults.
  let template: [UInt8]
  /// Room for one row, for changing its record.
  let row: RowValues
  /// Attributes that follow others of the same object.
  let derivations: [Derivation]

  /// What is asked of an attribute for each object: no text, so that nothing is retained.
  struct AttributeColumn {
    let type: AttributeType
    let place: Int?
    let isExternal: Bool
  }

  struct Derivation {
    let place: Int
    let expression: ValueExpression
    let description: AttributeDescription
  }

  init(_ plan: DestinationEntityPlan, _ table: TablePlan) {
    self.plan = plan
    self.table = table
    attributes = NameTable(plan.attributes.map(\.name))
    columns = plan.attributes.map {
      AttributeColumn(type: $0.type, place: $0.place, isExternal: $0.isExternal)
    }
    var numbers = Array(repeating: -1, count: plan.defaults.count)
    for (number, attribute) in plan.attributes.enumerated().reversed() {
      if let place = attribute.place, numbers.indices.contains(place) { numbers[place] = number }
    }
    self.numbers = numbers
    composites = CompositeIndex(plan.attributes.map(\.name))
    relationships = NameTable(plan.relationships.map(\.name))
    derivations = plan.attributes.compactMap { attribute in
      guard let place = attribute.place, let text = attribute.derivation,
        let expression = try? ValueExpression(parsing: text)
      else { return nil }
      return Derivation(
        place: place, expression: expression,
        description: AttributeDescription(
          traits: PropertyTraits(name: attribute.name), type: attribute.type))
    }
    let code = AttributeProgramCode(plan.defaults)
    row = RowValues(count: 2 + plan.defaults.count)
    row.values[0] = .integer(plan.number)
    // Objects of a new store: they have been saved once.
    row.values[1] = .integer(1)
    for place in 0..<code.operations.count {
      row.values[2 + place] = code.operations[place].value
    }
    var record = RawBuffer()
    RecordFormat.encode(row.values, count: row.count, into: &record)
    template = [UInt8](record.bytes)
  }
}

/// The entities of the destination, by name and by number.
final class DestinationKinds {
  private let byName: [EntityName: DestinationKind]
  private let byNumber: [Int64: DestinationKind]
  /// Most questions are about the same entity as the one before.
  @exclusivity(unchecked) private var recent: DestinationKind?

  init(_ plan: MigrationPlan) {
    var (names, numbers) = ([EntityName: DestinationKind](), [Int64: DestinationKind]())
    for entity in plan.mapped?.destinationEntities ?? []
    where plan.tables.indices.contains(entity.table) {
      let kind = DestinationKind(entity, plan.tables[entity.table])
      names[entity.entity] = kind
      numbers[entity.number] = kind
    }
    byName = names
    byNumber = numbers
  }

  subscript(name: EntityName) -> DestinationKind? {
    if let recent, recent.plan.entity == name { return recent }
    recent = byName[name]
    return recent
  }

  subscript(number: Int64) -> DestinationKind? {
    if let recent, recent.plan.number == number { return recent }
    recent = byNumber[number]
    return recent
  }
}

/// An object that is being worked on, until others need the room: nobody keeps one beyond the next
/// question for an object.
final class WorkingObject {
  @exclusivity(unchecked) private(set) var kind: DestinationKind
  /// Place among the shard's objects of the same table, from 1.
  @exclusivity(unchecked) private(set) var ordinal: Int64
  /// Where its bytes are in the scratch rows, as long as it is not dirty.
  @exclusivity(unchecked) var home = 0
  /// `Z_ENT`, `Z_OPT` and the attribute columns, without what ``changes`` say.
  @exclusivity(unchecked) var record = RawBuffer(capacity: 256)
  /// Places among the attribute columns, and their new values; the last one counts.
  @exclusivity(unchecked) var changes: [Change] = []
  /// Values of transient attributes, which no store holds.
  @exclusivity(unchecked) var transients: [Int: ExpressionValue] = [:]
  /// Relationships that were set, by their number in the entity.
  @exclusivity(unchecked) var links: [(relationship: Int, targets: [LinkTargets.Target])] = []
  @exclusivity(unchecked) var isDirty = true
  /// Whether its derived attributes are of earlier values.
  @exclusivity(unchecked) var isUnderived = false

  struct Change {
    let place: Int
    var value: ExpressionValue
  }

  init(_ kind: DestinationKind, _ ordinal: Int64) {
    self.kind = kind
    self.ordinal = ordinal
  }

  /// Becomes another object, and keeps its memory.
  func renew(_ kind: DestinationKind, _ ordinal: Int64) {
    self.kind = kind
    self.ordinal = ordinal
    record.removeAll()
    // `removeAll` asks the runtime how to destroy each.
    while changes.popLast() != nil {}
    if !transients.isEmpty { transients = [:] }
    if !links.isEmpty { links = [] }
    isDirty = true
    isUnderived = false
  }
}
