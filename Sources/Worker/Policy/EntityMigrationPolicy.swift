import GodwitObjectModel

/// Code of a team's own for one entity mapping: what Core Data calls an entity migration policy.
///
/// A subclass overrides the hooks that it needs; those of this class do what Core Data's own do,
/// and `super` reaches them. The order of the hooks is Core Data's:
///
///     copy       beginEntityMapping
///                createDestinationInstances   for each source object
///                endInstanceCreation
///     link       createRelationships          for each destination object of the mapping
///                endRelationshipCreation
///     validate   performCustomValidation
///                endEntityMapping
///
/// Every stage may run in another process, so each begins with an instance of its own:
/// ``resumeEntityMapping(_:manager:)`` is called on that of the later stages. What has to come
/// along goes into ``MigrationManager/userInfo``.
///
/// Source: `core-data-migration.md` §5.1.
open class EntityMigrationPolicy {
  /// How much of its entity one instance sees.
  public enum Scope: Sendable, Equatable {
    /// All source objects of the entity mapping, one after the other, in one process: what is
    /// remembered of one is there for the next, as in Core Data.
    case entity
    /// Some: the entity may be cut into shards, each with an instance and hooks of its own. For
    /// policies that look at one source object at a time.
    case shard
  }

  /// Called in each stage, once for the entity mapping or once for each shard: see ``scope``.
  public required init() {}

  /// ``Scope/entity`` unless a subclass promises more.
  open class var scope: Scope { .entity }

  /// The selectors that `FUNCTION($entityPolicy, "selector:", …)` may name, colons included.
  open class var selectors: Set<String> { [] }

  /// Before the first source object.
  open func beginEntityMapping(
    _ mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {}

  /// Before the hooks of the link and of the validate stage, on the new instance that runs them.
  /// Core Data has no such hook, since it keeps one instance in one process.
  open func resumeEntityMapping(
    _ mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {}

  /// Makes whatever a source object becomes. By default one object of the mapping's destination
  /// entity, its attributes set by the attribute mappings, associated with the source object.
  ///
  /// An override that does not call `super` associates what it makes itself.
  open func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try manager.engine.use { try $0.createByDefault(source.usedReference) }
  }

  /// After the last source object.
  open func endInstanceCreation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {}

  /// Sets the relationships of an object that the mapping has made. By default those that the
  /// relationship mappings give, of the first source object that it is associated with.
  open func createRelationships(
    forDestination destination: ManagedObject, in mapping: CurrentEntityMapping,
    manager: MigrationManager
  ) throws {
    try manager.engine.use { try $0.linkByDefault(destination.usedReference) }
  }

  /// After the last destination object.
  open func endRelationshipCreation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {}

  /// Looks at the whole destination as it will be committed, without what `--invalid set-aside` took out
  /// and with what `--invalid default` gave. It can no longer be changed; throwing refuses the store.
  open func performCustomValidation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {}

  /// The last hook.
  open func endEntityMapping(_ mapping: CurrentEntityMapping, manager: MigrationManager) throws {}

  /// Answers `FUNCTION($entityPolicy, "selector:", …)`.
  ///
  /// - Parameters:
  ///   - selector: One of ``selectors``.
  ///   - arguments: As ``ManagedObject/value(forKey:)`` gives values; nil for nil.
  /// - Returns: A value as ``ManagedObject/setValue(_:forKey:)`` takes it.
  open func perform(
    _ selector: String, with arguments: [Any?], manager: MigrationManager
  ) throws -> Any? { nil }
}

/// The policies that an executable brings along, by the class names that mapping models give.
///
/// A mapping model of a Swift project says `Module.Class`, one of an Objective-C project `Class`;
/// whichever was registered, a name without module finds a class of that name, and the other way
/// round.
package struct PolicyRegistry: Sendable {
  private let policies: [String: EntityMigrationPolicy.Type]

  package init(_ policies: [String: EntityMigrationPolicy.Type] = [:]) {
    self.policies = policies
  }

  package var isEmpty: Bool { policies.isEmpty }

  /// As registered, in byte order.
  package var names: [String] { policies.keys.sorted { $0.precedesInBytes($1) } }

  package subscript(name: String) -> EntityMigrationPolicy.Type? {
    if let exact = policies[name] { return exact }
    let plain = Self.withoutModule(name)
    // In a fixed order, should two modules have classes of one name.
    return names.first { ($0 == plain) || (name == plain && Self.withoutModule($0) == plain) }
      .flatMap { policies[$0] }
  }

  private static func withoutModule(_ name: String) -> String {
    name.lastIndex(of: ".").map { String(name[name.index(after: $0)...]) } ?? name
  }
}
