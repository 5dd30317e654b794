import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore

/// A store that has no entity in common with any of the models that it could be of: the versions of the
/// model that the destination is of, or all that were given where that is its only version.
///
/// Inference would drop every object and make an empty store of it, so it is refused. Entities are
/// compared by their names and renaming identifiers.
struct ForeignStore {
  /// 5. Enough to recognise a model by.
  private static let mostNames = 5

  private let store: [EntityName]
  private let models: [EntityName]

  /// Nil for a store that is not foreign, and where there is nothing to compare it with.
  init?(_ store: SourceStore, _ request: MigrationRequest) throws {
    let given = try Self.models(of: request)
    let known = Set(given.flatMap { Self.identifiers(of: $0.model) })
    let names = store.metadata.versionHashes.keys.sorted()
    guard !known.isEmpty, !names.isEmpty else { return nil }
    let own = try store.readableModel().map(Self.identifiers) ?? []
    guard known.isDisjoint(with: names.map(\.rawValue)), known.isDisjoint(with: own) else {
      return nil
    }
    self.store = names
    models = Set(given.flatMap { $0.model.entities.map(\.name) }).sorted()
  }

  private static func models(of request: MigrationRequest) throws -> [ModelVersion] {
    guard let destination = request.destination else { return request.models }
    let family = try request.given.family(of: destination) ?? []
    // A version that is given alone says nothing of those before it.
    return (family.count > 1 ? family : request.models) + [destination]
  }

  private static func identifiers(of model: ManagedObjectModel) -> [String] {
    model.entities.flatMap { [$0.name.rawValue, $0.mappingKey] }
  }

  /// 134020, `NSPersistentStoreIncompatibleSchemaError`: Core Data itself would make an empty store
  /// of it. Source: `core-data-migration.md` §1.4.
  ///
  /// - Parameter mismatches: Why no mapping model that was given says what becomes of its entities.
  func outcome(_ mismatches: [MappingMismatch] = []) -> PlanOutcome {
    .refused(
      code: 134_020,
      [
        Reason(
          reason: "foreign-store",
          message: "The store is foreign: it has no entity in common with the models given. It has "
            + "\(Self.text(store)); the models have \(Self.text(models)). Check the store's path "
            + "and --models. If the store does belong to them, give the version that wrote it, too."
        )
      ] + mismatches.map(Reason.init(mismatch:)))
  }

  private static func text(_ names: [EntityName]) -> String {
    let named = names.prefix(mostNames).map(\.rawValue)
    return names.count > mostNames
      ? named.joined(separator: ", ") + " and \(names.count - mostNames) more" : Loss.list(named)
  }
}
