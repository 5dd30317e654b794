import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitExpressions
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

extension Stage {
  /// Whether a stage goes over the assembled destination.
  var readsAssembled: Bool { self == .verify || self == .soundness }
}

extension WorkerFailure {
  /// A fault in what was just written says nothing about the source.
  init(assembled error: any Error) {
    self.init(error)
    if kind == .damaged || (error as? SQLiteError)?.isOutOfMemory == true {
      kind = .io
      message =
        "The new store cannot be read: \(error). The source is unchanged. Run again, and check the "
        + "disk if it happens twice."
    }
  }

  /// An error as the coordinator needs it: whether to try again, and what to tell.
  ///
  /// - Parameter source: The database that the source's rows are read from. Damage of any other is
  ///   a fault of the run directory.
  init(_ error: any Error, source: String?) {
    self.init(error)
    guard kind == .damaged, let error = error as? SQLiteError, let path = error.database,
      let source, path != source
    else { return }
    self.init(kind: .unusable, message: "\(error)")
  }

  private init(_ error: CheckpointError) {
    if error.provesUnusable {
      self.init(
        kind: .unusable, message: "\(error)", checkpoint: CheckpointName(path: error.path))
    } else if case .unreadable(_, let errno) = error {
      self.init(reading: errno, message: "\(error)")
    } else {
      self.init(kind: .io, message: "\(error)")
    }
  }

  init(_ error: any Error) {
    switch error {
    case let failure as WorkerFailure:
      self = failure
    case let failure as PolicyFailure:
      self.init(failure)
    case let error as SQLiteError:
      if error.isOutOfSpace {
        self.init(kind: .outOfSpace, code: 134_180, message: "\(error)")
      } else if error.isOfReadOnlyVolume {
        self.init(kind: .unwritable, message: "\(error)")
      } else if error.isCorruption {
        self.init(kind: .damaged, code: 134_150, message: "\(error)")
      } else if error.isRefused {
        self.init(
          kind: .refused, code: 134_110, message: "\(error)",
          reasons: [Reason(reason: "unsupported", message: "\(error)")])
      } else {
        self.init(kind: .io, code: 134_180, message: "\(error)")
      }
    case let error as DurabilityError:
      switch error {
      case .failed(DurabilityError.reading, _, let errno):
        self.init(reading: errno, message: "\(error)")
      case .failed(_, _, let errno): self.init(writing: errno, message: "\(error)")
      default: self.init(kind: .io, message: "\(error)")
      }
    case let error as CheckpointError:
      self.init(error)
    case .cannotRead(_, let errno) as StoreError:
      self.init(reading: Errno(rawValue: errno), message: "\(error)")
    case .cannotCopy(_, _, let errno) as StoreError:
      self.init(writing: Errno(rawValue: errno), message: "\(error)")
    case .inUse as StoreError, .changed as StoreError:
      self.init(kind: .io, message: "\(error)")
    case let error as StoreError:
      self.init(kind: .damaged, code: error.code, message: "\(error)")
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
      switch error {
      case .countOutOfRange(let limit, let key):
        self.init(
          kind: .refused, code: 134_110, message: "\(error)",
          reasons: [
            Reason(
              reason: "count-out-of-range", entity: limit.entity.rawValue,
              property: limit.attribute, message: "\(error)", primaryKeys: [key], count: 1)
          ])
      case .externalData:
        self.init(kind: .damaged, code: 134_150, message: "\(error)")
      case _ where error.isOfRunDirectory:
        self.init(kind: .unusable, message: "\(error)")
      default:
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
      guard let errno = Errno(underlying: error) else {
        self.init(kind: .internal, message: "\(error)")
        return
      }
      self.init(writing: errno, message: "\(error)")
    }
  }

  private init(writing errno: Errno, message: String) {
    switch errno {
    case .permissionDenied, .notPermitted, .readOnlyFileSystem:
      self.init(kind: .unwritable, message: message)
    default: self.init(reading: errno, message: message)
    }
  }

  private init(reading errno: Errno, message: String) {
    self.init(kind: errno.isOfFullVolume ? .outOfSpace : .io, message: message)
  }
}

extension Errno {
  /// The operating system's reason for an error, also where Foundation wraps it.
  package init?(underlying error: any Error) {
    if let errno = error as? Errno {
      self = errno
      return
    }
    let bridged = error as NSError
    if bridged.domain == NSPOSIXErrorDomain {
      self.init(rawValue: CInt(truncatingIfNeeded: bridged.code))
    } else if let inner = bridged.userInfo[NSUnderlyingErrorKey] as? any Error {
      self.init(underlying: inner)
    } else {
      return nil
    }
  }
}
