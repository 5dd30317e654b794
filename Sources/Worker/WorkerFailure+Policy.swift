import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitExpressions
import GodwitPlanning
import GodwitSQLite

extension WorkerFailure {
  /// An error out of a policy's hook. It keeps its identity; its code is the failure's where it is
  /// one of Core Data's own.
  ///
  /// What a hook met that is not a fault of its own, a full disk, a damaged page or an expression
  /// that cannot be evaluated, is judged as it would be anywhere else.
  ///
  /// Source of the codes: `core-data-migration.md` §1.4, §5.1.
  init(_ failure: PolicyFailure) {
    switch failure.error {
    case is SQLiteError, is DurabilityError, is CheckpointError, is StageError,
      is EvaluationError, is WorkerFailure:
      self.init(failure.error)
      return
    default: break
    }
    let identity = Reason.OwnError(failure.error)
    let general = failure.isCancellation ? 134_120 : 134_170
    self.init(
      kind: .refused, code: identity.domain == NSCocoaErrorDomain ? identity.code : general,
      message: failure.description,
      reasons: [
        Reason(
          reason: failure.isCancellation ? "cancelled" : "policy", entity: failure.entity,
          message: failure.description, error: identity)
      ])
  }
}

extension Reason.OwnError {
  package init(_ error: any Error) {
    let bridged = error as NSError
    self.init(
      type: String(reflecting: Swift.type(of: error)), domain: bridged.domain, code: bridged.code,
      description: error.ownDescription)
  }
}

extension PolicyFailure: CustomStringConvertible {
  package var description: String {
    let place = [
      "in \(hook)", entity.map { $0 + (primaryKey.map { " with Z_PK \($0)" } ?? "") },
    ].compactMap(\.self).joined(separator: ", ")
    return
      "the policy \(policy) of \(mapping) \(isCancellation ? "cancelled the migration" : "failed") "
      + "\(place): \(error.ownDescription)"
  }
}
