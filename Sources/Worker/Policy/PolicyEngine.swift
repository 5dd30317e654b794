import Synchronization

/// What a policy's ``MigrationManager`` and ``ManagedObject``s lead to: the engine of their stage, for as
/// long as the stage lasts.
///
/// A policy may keep them for longer, in a static variable. Nothing of the stage stays open by that, and to
/// use them is an error of the hook at hand: the next stage has other keys, and the next store other objects.
public final class PolicyEngine {
  /// Of the thread that the hooks run on.
  private struct AtWork: @unchecked Sendable { let stage: PolicyStageEngine }
  @TaskLocal private static var atWork: AtWork?

  private static let isOver = PolicyError.notNow(
    "an object or a manager of an earlier stage, entity mapping, shard or store cannot be used: it lasts as "
      + "long as its stage. Keep values or URIs, or pass objects on in the manager's userInfo")
  private static let made = Atomic<Int>(0)

  /// Tells the stages of a process apart.
  let number = made.add(1, ordering: .relaxed).newValue
  let mapping: CurrentEntityMapping
  /// Nil when the stage is over.
  @exclusivity(unchecked) private var stage: Unmanaged<PolicyStageEngine>?

  init(_ mapping: CurrentEntityMapping) { self.mapping = mapping }

  /// - Parameter stage: Calls ``end()`` before it goes, at the latest.
  func begin(_ stage: PolicyStageEngine) { self.stage = .passUnretained(stage) }

  func end() { stage = nil }

  /// Runs the hooks of a stage, which is over then: errors that nobody else could throw are theirs.
  static func working<Result>(for stage: PolicyStageEngine, _ body: () throws -> Result) rethrows
    -> Result
  {
    defer { stage.shared.end() }
    return try $atWork.withValue(AtWork(stage: stage), operation: body)
  }

  /// Does something in the stage; nil where it is over, which is told when the hook at hand returns.
  @inline(__always)
  @discardableResult
  func reach<Result>(_ body: (PolicyStageEngine) throws -> Result) rethrows -> Result? {
    guard let stage else {
      refuse()
      return nil
    }
    return try stage._withUnsafeGuaranteedRef { try body($0) }
  }

  /// Does something in the stage.
  ///
  /// - Throws: ``PolicyError/notNow(_:)`` where it is over, which is told also where the hook catches it.
  @inline(__always)
  func use<Result>(_ body: (PolicyStageEngine) throws -> Result) throws -> Result {
    guard let found = try reach(body) else { throw Self.isOver }
    return found
  }

  /// Has the hook at hand fail where the stage is over.
  @inline(__always)
  func requireStage() { if stage == nil { refuse() } }

  @inline(never)
  private func refuse() { Self.atWork?.stage.fail(Self.isOver) }
}
