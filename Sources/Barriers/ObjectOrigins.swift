import GodwitCheckpoints
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitWorker
import SystemPackage

/// What the destination's objects were made of, for whoever names one that no store has.
///
/// An object that got a new key, and was refused or set aside, can only be found by the source object
/// that it comes from.
package struct ObjectOrigins: Sendable {
  /// An object of either store.
  package struct Object: Hashable, Sendable {
    package var entity: EntityName
    package var key: Int64

    package init(entity: EntityName, key: Int64) { (self.entity, self.key) = (entity, key) }
  }

  private let plan: MigrationPlan
  private let run: RunDirectory

  /// - Parameter plan: By mapping models. All of its shards must have been copied.
  package init(plan: MigrationPlan, run: RunDirectory) {
    self.plan = plan
    self.run = run
  }

  /// Whether an object of the destination has the key of the object that it was made of.
  private var areKept: Bool {
    plan.mapped?.mappings.allSatisfy { $0.policy == nil && !$0.assignsKeys } ?? true
  }

  /// Gives what every object was made of; an object that was made of several comes as often.
  package func forEach(_ body: (_ source: Object, _ destination: Object) throws -> Void) throws {
    guard plan.mapped != nil else { return }
    // With mapping models the written store is not asked.
    try ObjectPairs(plan: plan, run: run, written: FilePath("")).forEach {
      kind, source, destination in
      try body(
        Object(entity: kind.source, key: source),
        Object(entity: kind.destination, key: destination))
    }
  }

  /// The findings, each with the source objects of its examples where their keys are not the same.
  package func named(_ findings: [StoreFinding]) throws -> [StoreFinding] {
    guard !areKept else { return findings }
    func objects(of finding: StoreFinding) -> [Object] {
      finding.entity.map { entity in
        finding.examples.map { Object(entity: EntityName(entity), key: $0) }
      } ?? []
    }
    let wanted = Set(findings.flatMap(objects))
    var origins: [Object: Object] = [:]
    try forEach { source, destination in
      if wanted.contains(destination), origins[destination] == nil { origins[destination] = source }
    }
    return findings.map { finding in
      var finding = finding
      finding.message += Self.text(objects(of: finding).compactMap { origins[$0] })
      return finding
    }
  }

  /// `, made of Person with Z_PK 1, 2`; empty where objects have the keys of what they were made of, or were
  /// made of nothing.
  package func text(of objects: [Object]) throws -> String {
    guard !areKept else { return "" }
    let wanted = Set(objects)
    var found: Set<Object> = []
    try forEach { source, destination in
      if wanted.contains(destination) { found.insert(source) }
    }
    return Self.text(found.sorted { ($0.entity, $0.key) < ($1.entity, $1.key) })
  }

  private static func text(_ found: [Object]) -> String {
    guard !found.isEmpty else { return "" }
    let named = Set(found.map(\.entity)).sorted().map { entity in
      "\(entity) with Z_PK "
        + found.filter { $0.entity == entity }.map { "\($0.key)" }.joined(separator: ", ")
    }
    return ", made of \(named.joined(separator: " and "))"
  }
}
