import GodwitCheckpoints
import GodwitDurableFiles
import GodwitMapping
import GodwitPlanning
import GodwitSQLite

extension Stage {
  /// Whether a stage goes over the assembled destination.
  var readsAssembled: Bool { self == .verify || self == .soundness }
}

extension WorkerFailure {
  /// A fault in what was just written says nothing about the source.
  init(assembled error: SQLiteError) {
    self.init(error)
    if kind == .damaged || error.isOutOfMemory {
      kind = .io
      message =
        "The new store cannot be read: \(error). The source is unchanged. Run again, and check the "
        + "disk if it happens twice."
    }
  }

  /// An error as the coordinator needs it: whether to try again, and what to tell.
  init(_ error: any Error) {
    switch error {
    case let failure as WorkerFailure:
      self = failure
    case let failure as PolicyFailure:
      self.init(failure)
    case let error as SQLiteError:
      if error.isOutOfSpace {
        self.init(kind: .outOfSpace, code: 134_180, message: "\(error)")
      } else if error.isCorruption {
        self.init(kind: .damaged, code: 134_180, message: "\(error)")
      } else {
        self.init(kind: .io, code: 134_180, message: "\(error)")
      }
    case let error as DurabilityError:
      self.init(kind: error.isOutOfSpace ? .outOfSpace : .io, message: "\(error)")
    case let error as CheckpointError:
      self.init(kind: .io, message: "\(error)")
    case let error as StageError:
      if case .wrongTarget(let entity, let key, let relationship, _) = error {
        self.init(
          kind: .refused, code: 134_110, message: "\(error)",
          reasons: [
            Reason(
              reason: "target-entity", entity: entity, property: relationship,
              message: "\(error)", primaryKeys: [key], count: 1)
          ])
        return
      }
      if case .externalData = error {
        self.init(kind: .damaged, code: 134_150, message: "\(error)")
      } else {
        self.init(kind: .internal, message: "\(error)")
      }
    case let error as EvaluationError:
      self.init(
        kind: .refused, code: error.code, message: "\(error)",
        reasons: [
          Reason(
            reason: "expression", entity: error.entity?.rawValue, property: error.property,
            message: "\(error)", primaryKeys: error.primaryKey.map { [$0] },
            count: error.primaryKey.map { _ in 1 })
        ])
    default:
      self.init(kind: .internal, message: "\(error)")
    }
  }
}
