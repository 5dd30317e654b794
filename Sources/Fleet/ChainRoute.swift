import Foundation
import GodwitDigests
import GodwitDurableFiles
import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

/// The steps of a run that takes several, whoever chose them: a chain of versions, or the stages
/// of a staged migration.
struct ChainRoute: Sendable {
  struct Step: Sendable {
    /// For people: `Shop → Shop 2: inferred`.
    var line: String
    var work: Work
  }

  enum Work: Sendable {
    case migration(MigrationStep)
    case handler(HandlerCall)
  }

  /// A call of a stage's handler.
  struct HandlerCall: Sendable {
    var phase: StageHandlerError.Phase
    /// The stage's name, for messages.
    var stage: String
    var model: ModelVersion
    var handler: CustomMigrationStage.Handler
  }

  var steps: [Step]
  var notes: [String]
  /// What the whole way drops; nil where only the steps know, each when it is planned.
  var losses: [Loss]?
  /// True where the store's version is not among the models given, see
  /// `MigrationRequest.guardsUnknownVersions`.
  var isOfUnknownVersion = false
  private var isOfMergedModel = false
  /// Names of the versions at both ends.
  var source: String
  var destination: String
  /// What tells it from a route of another kind in one run directory.
  private let kind: String

  var lines: [String] { steps.map(\.line) }

  init(_ chain: VersionChain) {
    kind = "chain 1"
    let lines = chain.lines
    steps = chain.path.steps.indices.map { step in
      Step(
        line: lines[step],
        work: .migration(chain.leg(step)))
    }
    notes = chain.notes
    losses = chain.losses
    isOfUnknownVersion = chain.isOfUnknownVersion
    isOfMergedModel = chain.isOfMergedModel
    source = chain.versions.first?.name ?? ""
    destination = chain.versions.last?.name ?? ""
  }

  init(_ path: StagedPath) {
    kind = "staged 1"
    steps = zip(path.lines, path.steps).compactMap { line, step in
      switch step {
      case .migration(let source, let destination):
        return Step(
          line: line, work: .migration(MigrationStep(source: source, destination: destination)))
      case .handler(let phase, let stage, let model):
        guard let handler = path.handler(phase, ofStage: stage) else { return nil }
        return Step(
          line: line,
          work: .handler(
            HandlerCall(
              phase: phase, stage: path.name(ofStage: stage), model: model, handler: handler)))
      }
    }
    notes = []
    losses = path.losses
    isOfUnknownVersion = path.isOfUnknownVersion
    source = path.source.name
    destination = path.destination.name
  }
}

extension ChainRoute {
  /// The step of a route that has no other: a migration like any other.
  var onlyMigration: MigrationStep? {
    guard steps.count == 1, case .migration(let leg) = steps[0].work else { return nil }
    return leg
  }

  /// What a person should know.
  func notes(for request: MigrationRequest) -> [String] {
    guard request.invalid != .fail, onlyMigration == nil else { return notes }
    return notes + [
      "--invalid and the key invalid have no effect in several steps: rows that a version's validation "
        + "refuses refuse the migration."
    ]
  }

  /// What later steps ask of rows that are there only once the steps before are done.
  ///
  /// - Parameter losses: Under ``LossPolicy/allow`` references without room are dropped, and refuse nothing.
  /// - Throws: `ModelError`.
  func laterConditions(_ losses: LossPolicy) throws -> [String] {
    try steps.indices.dropFirst().flatMap { place -> [String] in
      guard case .migration(let leg) = steps[place].work, leg.mappings.isEmpty else { return [] }
      let conditions = InferredMapping(
        source: try leg.source.hierarchy(), destination: try leg.destination.hierarchy()
      ).rowConditions
      func note(_ consequence: String, _ conditions: [RowCondition]) -> [String] {
        guard !conditions.isEmpty else { return [] }
        let named = conditions.prefix(3).map(\.refusal.message).joined(separator: "; ")
        let others = conditions.count > 3 ? "; or one of \(conditions.count - 3) more" : ""
        return [
          "Step \(place + 1), \(steps[place].line), \(consequence) where this holds of the rows that it finds, "
            + "which a plan cannot see: \(named)\(others)."
        ]
      }
      func isDropped(_ condition: RowCondition) -> Bool {
        if case .room = condition.question { losses == .allow } else { false }
      }
      return note("is refused", conditions.filter { !isDropped($0) })
        + note("drops references", conditions.filter(isDropped))
    }
  }

  /// SHA-256 in hexadecimal over everything that the steps depend on.
  func fingerprint(_ request: MigrationRequest) throws -> String {
    var digest = SHA256()
    func add(_ text: String) {
      digest.update(Array(text.utf8))
      digest.update([0])
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    add(kind)
    digest.update([UInt8](try encoder.encode(try StoreFiles(request.store).identity())))
    add(request.output?.string ?? "")
    add("\(request.acceptsDamage) \(request.renumbersKeys)")
    // Steps that are done lost what was allowed then.
    add("\(request.losses.rawValue) \(request.guardsUnknownVersions)")
    for step in steps {
      // Hashes do not cover defaults and renaming identifiers; the whole models do.
      switch step.work {
      case .migration(let leg):
        digest.update(try leg.source.hierarchy().identityBytes())
        digest.update(try leg.destination.hierarchy().identityBytes())
        for file in leg.mappings { add(try file.document.text()) }
      case .handler(let call):
        digest.update(try call.model.hierarchy().identityBytes())
        add("\(call.phase.rawValue) \(call.stage)")
      }
      add("step")
    }
    if let code = request.ownCodeDigest { add(code) }
    return Hexadecimal.text(of: digest.finish())
  }
}

extension ChainRoute {
  /// The request of one step. What the whole way loses was judged before the first one, so that a
  /// step may drop what was added on the way.
  func request(
    of leg: MigrationStep, _ request: MigrationRequest, store: FilePath, output: FilePath?
  ) -> MigrationRequest {
    var own = request.leg(leg, store: store, output: output)
    own.isOfMergedModel = isOfMergedModel
    own.isOfUnknownVersion = isOfUnknownVersion
    if losses != nil {
      own.guardsUnknownVersions = false
      if request.losses == .refuse { own.losses = .warn }
    }
    return own
  }

  /// Of the losses of a step and its plan, those that ``losses`` does not count.
  func losses(of result: MigrationResult, _ plan: MigrationPlan) -> [Loss] {
    losses == nil ? result.losses : plan.rowLosses ?? []
  }

  /// Why losses end the run.
  func refusals(of losses: [Loss], _ request: MigrationRequest) -> [Reason] {
    var request = request
    request.isOfUnknownVersion = isOfUnknownVersion
    return request.refusals(of: losses, from: source)
  }
}
