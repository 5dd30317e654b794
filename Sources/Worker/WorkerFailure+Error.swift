import GodwitCheckpoints
import GodwitDurableFiles
import GodwitSQLite

extension WorkerFailure {
  /// An error as the coordinator needs it: whether to try again, and what to tell.
  init(_ error: any Error) {
    switch error {
    case let failure as WorkerFailure:
      self = failure
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
      if case .externalData = error {
        self.init(kind: .damaged, code: 134_150, message: "\(error)")
      } else {
        self.init(kind: .internal, message: "\(error)")
      }
    default:
      self.init(kind: .internal, message: "\(error)")
    }
  }
}
