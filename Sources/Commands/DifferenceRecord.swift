import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning

/// What `model diff` says.
struct DifferenceRecord: Encodable {
  /// A configuration that does not have the same entities in both versions.
  struct Configuration: Encodable {
    var name: String
    /// Its entities in the source; nil where that has no such configuration.
    var before: [String]?
    /// Its entities in the destination; nil where that has no such configuration.
    var after: [String]?

    var line: String {
      switch (before, after) {
      case (_?, nil): "- configuration \(name)"
      case (nil, let after?): "+ configuration \(name): \(after.joined(separator: ", "))"
      case (let before, let after):
        "configuration \(name): "
          + ((after ?? []).filter { before?.contains($0) == false }.map { "+ \($0)" }
          + (before ?? []).filter { after?.contains($0) == false }.map { "- \($0)" })
          .joined(separator: ", ")
      }
    }
  }

  var event = "diff"
  var source: String
  var destination: String
  /// Stores of one open under the other.
  var isCompatible: Bool
  /// A mapping model can be inferred, as far as the models decide.
  var isLightweight: Bool
  var code: Int?
  var difference: ModelDifference
  /// Those of which the entities change, in the order of their names.
  var configurations: [Configuration]
  var reasons: [Refusal]
  /// What only the rows of a store can tell: each as in Refusal.
  var conditions: [Refusal]
  var notes: [InferenceNote]
  /// What a store with rows of every entity would lose, and beside that a store of one configuration.
  var losses: [InferredLoss]
  /// Whether a condition allows no rows of an entity at all.
  private let needsEmptyStore: Bool

  private enum CodingKeys: String, CodingKey {
    case event, source, destination, isCompatible, isLightweight, code, difference, configurations
    case reasons, conditions, notes, losses
  }

  init(_ pair: ModelPair) {
    source = pair.source.name
    destination = pair.destination.name
    isCompatible = pair.isCompatible
    isLightweight = isCompatible || pair.inference.isPossible
    difference = ModelDifference(
      source: pair.inference.source, destination: pair.inference.destination)
    configurations = Self.configurations(pair.source.model, pair.destination.model)
    reasons = isCompatible ? [] : pair.inference.refusals
    code = isLightweight ? nil : 134_190
    conditions = isCompatible ? [] : pair.inference.changedRowConditions.map(\.refusal)
    // Nothing is migrated: all that can be said is what will not be done.
    notes = pair.inference.notes.filter { !pair.isCompatible || $0.isRename }
    notes += isCompatible ? Self.misreadings(pair) : Self.unkeptConstraints(pair)
    losses = (isCompatible ? [] : pair.inference.losses) + pair.inference.configurationLosses
    needsEmptyStore =
      !isCompatible
      && pair.inference.changedRowConditions.contains {
        if case .noRows = $0.question { true } else { false }
      }
  }

  /// Whether a store with rows of every entity would be refused, or would lose something, or one of a configuration.
  /// Likewise where its values would be read as those of other properties.
  var fails: Bool {
    !isLightweight || !losses.isEmpty || needsEmptyStore
      || notes.contains { $0.kind == .readOtherwise }
  }

  /// What the version hashes do not cover.
  private static func misreadings(_ pair: ModelPair) -> [InferenceNote] {
    UnhashedDifference.between(
      given: pair.inference.destination, own: pair.inference.source
    ).storage.filter { !$0.isCarried }.map {
      InferenceNote(
        .readOtherwise, entity: $0.entity, property: $0.path,
        message:
          "a store that \(pair.source.name) wrote is not as \(pair.destination.name) reads it: \($0). "
          + "A hash modifier in \(pair.destination.name) has it migrated")
    }
  }

  /// Constraints of which `migrate` only notes that nothing keeps them.
  private static func unkeptConstraints(_ pair: ModelPair) -> [InferenceNote] {
    let known = StoreLayout(pair.inference.source).problems
    return StoreLayout(pair.inference.destination).problems.compactMap { problem in
      guard case .unknownConstraint(let properties, let entity) = problem, !known.contains(problem)
      else { return nil }
      return InferenceNote(
        .constraintNotKept, entity: entity,
        property: properties.count == 1 ? properties[0] : nil,
        message: String("\(problem)".dropLast()))
    }
  }

  private static func configurations(
    _ source: ManagedObjectModel, _ destination: ManagedObjectModel
  ) -> [Configuration] {
    let names = Set(source.configurations.keys).union(destination.configurations.keys)
    return names.sorted { $0.precedesInBytes($1) }.compactMap { name in
      let (before, after) = (source.configurations[name], destination.configurations[name])
      guard before.map(Set.init) != after.map(Set.init) else { return nil }
      return Configuration(
        name: name, before: before?.map(\.rawValue), after: after?.map(\.rawValue))
    }
  }

  var lines: [String] {
    var lines: [String] = []
    if !difference.isEmpty { lines += difference.entities.flatMap(\.lines) }
    lines += configurations.map(\.line)
    lines += notes.map { "note: \($0.message)" }
    if isCompatible {
      lines.append(
        "\(destination) is compatible with \(source): "
          + (losses.isEmpty
            ? "nothing to migrate." : "only stores of configurations that change are migrated."))
      if notes.contains(where: \.isRename) {
        lines.append(
          "Version hashes do not cover renaming identifiers, so that nothing is renamed. Give the "
            + "entities or properties a hash modifier to have it done.")
      }
    } else if isLightweight {
      lines.append("Lightweight: a mapping model from \(source) to \(destination) is inferred.")
      lines += conditions.map {
        "unless the rows forbid it (\($0.code)): \($0.place): \($0.message)"
      }
    } else {
      lines.append("Not lightweight (Core Data 134190):")
      lines += reasons.map { "  \($0.place): \($0.text)" }
    }
    lines += losses.map { "lost: \($0.message)" }
    return lines
  }
}
