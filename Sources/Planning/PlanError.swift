import GodwitObjectModel
import GodwitPersistentStore

/// Why a store cannot be planned for, though it can be read.
///
/// In every case nothing was written but, perhaps, a private clone in the run directory.
package enum PlanError: Error, Sendable {
  /// No given model, nor the store's own, has the version hashes that the store records.
  case missingSourceModel(store: String, differing: [Reason])
  /// No destination was named and the models given have no current version: what is so of each of them.
  case noDestination(models: [String])
  /// Several of the models given have a version of the name that was asked for, and the store is of none
  /// of them.
  case ambiguousDestination(String, of: [String])
  /// The store's version is not among those given, and several models have the same of its entities.
  case ambiguousModel([String], entities: [EntityName])
  /// A mapping model says nothing of its versions and fits several steps of a chain.
  case ambiguousMapping(file: String, steps: [String])
  /// Two of the mapping models that were given say the same.
  case repeatedMapping(file: String, first: String)
  /// The store has the entities of several configurations, which differ in the destination.
  case ambiguousConfiguration([String], version: String)
  /// The store has the entities of a configuration that the destination does not have.
  case missingConfiguration([String], version: String)
  /// The configuration that the store would be of has no entities.
  case emptyConfiguration(String, version: String)
  /// The configuration that the store would be of has sub-entities and not their superentities.
  case incompleteConfiguration(
    String, version: String, lacking: [(entity: EntityName, superentity: EntityName)])
  /// The store breaks rules that Core Data's own stores keep.
  case damaged(store: String, [StoreFinding])
  /// The store uses something that cannot be carried faithfully.
  case unsupported(store: String, what: String)
}

extension PlanError {
  /// No version of these is a current one.
  static func noDestination(among versions: [ModelVersion]) throws -> PlanError {
    .noDestination(models: try ModelVersion.lacks(ofCurrent: versions))
  }

  /// Core Data's error code, where it has one. Source: `core-data-migration.md` §1.4.
  package var code: Int? {
    switch self {
    case .missingSourceModel: 134_130
    case .noDestination, .ambiguousDestination, .ambiguousModel, .ambiguousMapping,
      .repeatedMapping, .ambiguousConfiguration, .missingConfiguration, .emptyConfiguration,
      .incompleteConfiguration:
      nil
    case .damaged: 134_150
    case .unsupported: 134_110
    }
  }

  /// Whether it is the store that forbids a migration, and not what the command was given.
  package var liesInTheStore: Bool {
    switch self {
    case .missingSourceModel, .noDestination, .ambiguousDestination, .ambiguousModel,
      .ambiguousMapping, .repeatedMapping:
      false
    case .ambiguousConfiguration, .missingConfiguration, .emptyConfiguration,
      .incompleteConfiguration, .damaged, .unsupported:
      true
    }
  }

  package var reasons: [Reason] {
    switch self {
    case .missingSourceModel(_, let differing): differing
    case .noDestination, .ambiguousDestination, .ambiguousModel, .ambiguousMapping,
      .repeatedMapping, .ambiguousConfiguration, .missingConfiguration, .emptyConfiguration,
      .incompleteConfiguration:
      []
    case .damaged(_, let findings): findings.map(Reason.init(finding:))
    case .unsupported(_, let what): [Reason(reason: "unsupported", message: what)]
    }
  }
}

extension PlanError {
  /// 5. Enough to recognise a model by.
  private static let mostNames = 5

  private static func text(_ entities: [EntityName]) -> String {
    let names = entities.prefix(mostNames).map(\.rawValue)
    let rest = entities.count - names.count
    return Loss.list(names) + (rest > 0 ? " and \(rest) more" : "")
  }
}

extension Reason {
  package init(finding: StoreFinding) {
    self.init(
      reason: finding.kind.rawValue, entity: finding.entity, property: finding.property,
      message: finding.description, primaryKeys: finding.examples.isEmpty ? nil : finding.examples,
      count: finding.examples.isEmpty ? nil : finding.count)
  }
}

extension PlanError {
  private static func advice(on findings: [StoreFinding]) -> String {
    // What no option takes says so itself.
    if findings.contains(where: { $0.message.contains("godwit repair") }) { return "" }
    return " Restore it from a backup, "
      + (findings.allSatisfy(Damage.isAcceptable)
        ? "save what can be saved with `godwit repair`, or carry on with --accept-damage."
        : "or save what can be saved with `godwit repair`.")
  }
}

extension PlanError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .missingSourceModel(let store, let differing):
      "\(store): no model has the version hashes that the store records"
        + (differing.isEmpty ? "" : " (" + differing.map(\.message).joined(separator: "; ") + ")")
        + ". Give the version that wrote it with --models."
    case .noDestination(let models):
      "\(models.isEmpty ? "No model was given" : models.joined(separator: "; "))"
        + ". Name the destination with --to."
    case .ambiguousDestination(let name, let models):
      "\(models.joined(separator: " and ")) have a version \(name) each, and the store is of none of these "
        + "models. Name the destination by its path, such as \(models[0]):\(name)."
    case .ambiguousModel(let models, let entities):
      "The store's version is not among the models given, and \(models.joined(separator: " and ")) have the "
        + "same of its entities, \(Self.text(entities)). Give the version that wrote the store, or leave out "
        + "the models that it is not of."
    case .ambiguousMapping(let file, let steps):
      "\(file) fits " + steps.joined(separator: " and ")
        + " and does not say which it is for: it has no version hashes, and names no two of the "
        + "models given. Give the versions that it was made for, or write source-model and "
        + "destination-model into it."
    case .repeatedMapping(let file, let first):
      (file == first ? "\(file) is given twice" : "\(file) says the same as \(first)")
        + ": every object would exist twice. Give the mapping model once."
    case .ambiguousConfiguration(let names, let version):
      "The store has the entities of the configurations \(names.joined(separator: " and ")), which "
        + "differ in \(version), and no store says of which one it is. Remove the others from a copy "
        + "of the source version, and give that with --models: version hashes stay the same."
    case .missingConfiguration(let names, let version):
      "The store has the entities of the configuration \(names.joined(separator: " or ")), and no "
        + "configuration of \(version) has their successors and none of the others'. Give a configuration "
        + "of \(version) that name."
    case .emptyConfiguration(let name, let version):
      "The configuration \(name) of \(version), which the store would be of, has no entities: all objects would be "
        + "dropped, and whether Core Data opens a store without entities for it is not known. Give the configuration "
        + "the entities that the store is to keep, in the application's model, too."
    case .incompleteConfiguration(let name, let version, let lacking):
      "The configuration \(name) of \(version) has "
        + lacking.map { "\($0.entity) and not its superentity \($0.superentity)" }
        .joined(separator: ", ")
        + ". Which entities Core Data expects in such a store is not known. Add to the configuration what it "
        + "lacks, in the application's model, too."
    case .damaged(let store, let findings):
      "\(store) is damaged: " + findings.prefix(5).map(\.description).joined(separator: "; ")
        + (findings.count > 5 ? "; and \(findings.count - 5) more" : "")
        + ". The source is unchanged." + Self.advice(on: findings)
    case .unsupported(let store, let what):
      "\(store): \(what). The source is unchanged."
    }
  }
}
