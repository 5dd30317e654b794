import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// Counts the values of one property that an entity mapping does not read and others of the entity do.
final class DroppedValues {
  private let plan: DroppedValue
  private let entity: String
  private let elsewhere: [any Association]
  private var rows = RowTally()

  init(_ plan: DroppedValue, _ mapping: EntityMappingPlan, _ context: MappedContext) throws {
    self.plan = plan
    entity = mapping.source?.rawValue ?? ""
    elsewhere = try plan.elsewhere.map(context.association)
  }

  /// - Parameter columns: The object's ``EntityMappingPlan/linkColumns``.
  func look(at object: Int64, _ columns: UnsafePointer<RawValue>) throws {
    guard columns[plan.column].kind != .null,
      try !elsewhere.contains(where: { try $0.destination(of: object) != nil })
    else { return }
    rows.add(object)
  }

  /// What the objects so far lose.
  var loss: Loss? { Loss(unreadIn: plan.property, of: entity, rows) }
}
