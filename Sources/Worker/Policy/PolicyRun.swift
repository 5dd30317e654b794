import GodwitCheckpoints
import GodwitDurableFiles
import GodwitExpressions
import GodwitPlanning
import GodwitSQLite

/// A policy's instance at work in one stage of one shard: calls its hooks, and says where an
/// error came up.
struct PolicyRun {
  let policy: EntityMigrationPolicy
  let name: String
  let engine: PolicyStageEngine
  let manager: MigrationManager

  var mapping: CurrentEntityMapping { engine.shared.mapping }

  init(_ context: ShardContext, _ engine: PolicyStageEngine) throws {
    name = engine.mapping.policy ?? ""
    guard let type = context.policies[name] else {
      throw StageError.missingPolicy(name, mapping: engine.mapping.name)
    }
    policy = type.init()
    self.engine = engine
    manager = MigrationManager(engine.shared)
  }

  /// Runs a hook. What the file system or SQLite say keeps its kind, so that a full disk is not
  /// taken for the policy's refusal; everything else is the policy's error.
  func perform(
    _ hook: String, for object: ObjectReference? = nil, _ body: () throws -> Void
  ) throws {
    engine.atHand = object
    do {
      do {
        try body()
      } catch {
        try engine.throwFailure()
        throw error
      }
      try engine.throwFailure()
    } catch {
      switch error {
      case is SQLiteError, is DurabilityError, is CheckpointError, is StageError,
        is EvaluationError, is PolicyFailure:
        throw error
      default:
        throw PolicyFailure(
          policy: name, mapping: mapping.name, hook: hook, entity: object?.entity.rawValue,
          primaryKey: object?.primaryKey, isCancellation: engine.cancellation != nil,
          error: error)
      }
    }
  }
}

extension PolicyRun {
  /// Answers `FUNCTION($entityPolicy, "selector:", …)`; nil for a selector that is not the policy's.
  var selectorAnswer: (String, [ExpressionValue]) throws -> ExpressionValue? {
    { [policy, manager, unowned engine] selector, arguments in
      guard type(of: policy).selectors.contains(selector) else { return nil }
      var found: ExpressionValue?
      // It is called by a hook, for that one's object.
      try perform("perform \(selector)", for: engine.atHand) {
        let value = try policy.perform(
          selector, with: arguments.map { try argument($0) }, manager: manager)
        found = try value.map(ExpressionValue.init(native:)) ?? .null
      }
      return found
    }
  }
}

extension PolicyRun {
  /// What a selector is called with.
  private func argument(_ value: ExpressionValue) throws -> Any? {
    switch value {
    case .helper(.manager): manager
    case .helper(.entityMapping): mapping
    case .helper(.entityPolicy): policy
    case .helper:
      throw PolicyError.notNow(
        "a selector takes values, objects, $manager, $entityMapping and $entityPolicy only")
    case .object(let object) where object.store == .destination && object.primaryKey == 0:
      throw PolicyError.notNow(
        "$destination cannot be passed to a selector while its attributes are being set. Set them in "
          + "createDestinationInstances, after super has made the object")
    default: value.native(in: engine.shared)
    }
  }
}

extension PolicyRegistry {
  /// What planning needs to know.
  ///
  /// - Parameter codeDigest: Of the running executable, see ``RegisteredPolicies/codeDigest``.
  package func registered(codeDigest: @escaping @Sendable () -> String) -> RegisteredPolicies {
    RegisteredPolicies(codeDigest: codeDigest) { name in
      self[name].map { type in
        RegisteredPolicies.Policy(
          name: name, selectors: type.selectors, seesWholeEntity: type.scope == .entity)
      }
    }
  }
}

/// How far a key lies between a shard's first and last.
struct ProgressMeter {
  private let low: Double
  private let span: Double

  init(_ source: Connection, _ table: String, _ keys: ClosedRange<Int64>) throws {
    let ends = try source.rows(
      "SELECT min(Z_PK), max(Z_PK) FROM \(quoted(table)) WHERE Z_PK BETWEEN ?1 AND ?2",
      [.integer(keys.lowerBound), .integer(keys.upperBound)]
    ).first
    low = ends?.first?.number ?? 0
    span = max(1, (ends?.last?.number ?? 0) - low + 1)
  }

  func progress(at key: Int64) -> Float { Float(max(0, min(1, (Double(key) - low) / span))) }
}
