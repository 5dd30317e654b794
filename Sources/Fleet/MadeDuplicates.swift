import GodwitBarriers
import GodwitCheckpoints
import GodwitCommit
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning

/// Objects that a mapping model made, or a policy, break a uniqueness constraint of the destination.
///
/// The keys are those of a store that is never published, so it says what the objects were made of, and who made
/// them: nothing may be wrong with the source.
struct MadeDuplicates: Error {
  var entity: String?
  var index: String
  var rows: RowTally
  /// `, made of …`, or nothing.
  var origin = ""
  /// Such as `the policy TagPolicy of PersonToPerson`.
  var makers: [String]

  /// 3. The rest is told by the mapping model.
  private static let mostMakers = 3

  init(entity: String?, index: String, rows: RowTally, makers: [String]) {
    (self.entity, self.index, self.rows, self.makers) = (entity, index, rows, makers)
  }

  /// - Parameters:
  ///   - plan: By mapping models.
  ///   - run: Where its objects are.
  init(
    entity: String?, index: String, rows: RowTally, _ plan: MigrationPlan, _ run: RunDirectory
  ) throws {
    let mapped = plan.mapped
    let mappings = mapped?.mappings ?? []
    let made: [(EntityName, Int?)] =
      (mapped?.destinationEntities ?? []).map { ($0.entity, $0.table) }
      + mappings.compactMap { mapping in mapping.destination.map { ($0, mapping.table) } }
    let table = made.first { $0.0.rawValue == entity }?.1
    let entities = Set(made.filter { $0.1 == table }.map(\.0))
    let objects = entities.flatMap { entity in
      rows.primaryKeys.map { ObjectOrigins.Object(entity: entity, key: $0) }
    }
    self.init(
      entity: entity, index: index, rows: rows,
      makers: mappings.filter { $0.table == table || $0.policy != nil }.map { mapping in
        mapping.policy.map { "the policy \($0) of \(mapping.name)" }
          ?? "the entity mapping \(mapping.name)"
      })
    origin = try ObjectOrigins(plan: plan, run: run).text(of: objects)
  }
}

extension MadeDuplicates: CustomStringConvertible {
  var description: String {
    let named = makers.prefix(Self.mostMakers).joined(separator: ", ")
    let rest = makers.count - Self.mostMakers
    return CommitError.duplicates(
      of: entity, in: index, rows, origin: " in the new store" + origin)
      + " Correct what may have made them (\(named)\(rest > 0 ? " and \(rest) more" : "")), or the values of the "
      + "source that it reads, or drop the constraint from the destination model."
  }
}
