import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// Counts the values of one property that an entity mapping does not keep and others of the entity do.
final class DroppedValues {
  private let plan: DroppedValue
  private let entity: String
  private let elsewhere: [any Association]
  /// Of ``DroppedValue/narrowing``, as chains of conversions.
  private let types: [[Int32]]?
  private let counted: [[Int32]]?
  private var rows = RowTally()

  init(_ plan: DroppedValue, _ mapping: EntityMappingPlan, _ context: MappedContext) throws {
    self.plan = plan
    entity = mapping.source?.rawValue ?? ""
    elsewhere = try plan.elsewhere.map(context.association)
    types = plan.narrowing?.types.map { [Int32($0.rawValue)] }
    counted = plan.narrowing?.counted?.map { [Int32($0.rawValue)] }
  }

  /// - Parameter columns: The object's ``EntityMappingPlan/linkColumns``.
  func look(at object: Int64, _ columns: UnsafePointer<RawValue>) throws {
    guard isLost(columns[plan.column]),
      try !elsewhere.contains(where: { try $0.destination(of: object) != nil })
    else { return }
    rows.add(object)
  }

  private func isLost(_ value: RawValue) -> Bool {
    guard let types else { return value.kind != .null }
    return NumericConversion.changes(value, by: types)
      && !(counted.map { NumericConversion.changes(value, by: $0) } ?? false)
  }

  /// What the objects so far lose.
  var loss: Loss? {
    types == nil
      ? Loss(unreadIn: plan.property, of: entity, rows)
      : Loss(narrowedIn: plan.property, of: entity, rows)
  }
}
