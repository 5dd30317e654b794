import GodwitObjectModel
import GodwitPlanning

/// The two models of a migration, for policies that ask for them. Read when the first one does.
final class PolicyModels {
  private let plan: MigrationPlan
  private var known: [Bool: EntityHierarchy] = [:]

  init(_ plan: MigrationPlan) { self.plan = plan }

  /// - Throws: ``PolicyError/notNow(_:)`` where the plan does not carry the model; `ModelError`.
  func hierarchy(ofSource isSource: Bool) throws -> EntityHierarchy {
    if let found = known[isSource] { return found }
    let made = try isSource ? source() : plan.control.hierarchy()
    known[isSource] = made
    return made
  }

  private func source() throws -> EntityHierarchy {
    guard let bytes = plan.mapped?.sourceModel else {
      throw PolicyError.notNow("the migration's plan was made without its source model")
    }
    return try EntityHierarchy(modelCache: [UInt8](bytes))
  }
}

extension PolicyStageEngine {
  /// A model; after an error, which is told when the hook returns, one without entities.
  final func model(ofSource isSource: Bool) -> ManagedObjectModel {
    hierarchy(ofSource: isSource)?.model ?? ManagedObjectModel(entities: [])
  }

  final func hierarchy(ofSource isSource: Bool) -> EntityHierarchy? {
    do {
      return try context.mapped.policyModels.hierarchy(ofSource: isSource)
    } catch {
      attempt { throw error }
      return nil
    }
  }
}
