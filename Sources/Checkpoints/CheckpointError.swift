package import SystemPackage

/// Why a checkpoint cannot be written or read.
package enum CheckpointError: Error, Equatable, Sendable {
  /// The file does not begin as a checkpoint does.
  case notACheckpoint(FilePath)
  /// A checkpoint of another format version than this build reads.
  case otherVersion(FilePath, found: UInt16)
  /// A checkpoint of another plan.
  case otherPlan(FilePath)
  /// A checkpoint of another stage or unit, under the name of this one.
  case otherUnit(FilePath, found: CheckpointName)
  /// The file ends too early.
  case truncated(FilePath)
  /// The file's bytes are not those that were written.
  case damaged(FilePath, Damage)
  /// The operating system would not let the file be read.
  case unreadable(FilePath, Errno)
  /// An entry is larger than a checkpoint may hold. The checkpoint was not written.
  case entryTooLarge(FilePath, bytes: Int)
  /// libzstd failed: it has no memory left, most likely. The checkpoint was not written.
  case compressionFailed(FilePath, reason: String)

  /// Where a damaged checkpoint contradicts itself.
  package enum Damage: String, Sendable {
    case header = "the stage or the reserved byte of the header is invalid"
    case digest = "the SHA-256 of the frame is not the header's"
    case frame = "the zstd frame cannot be decompressed"
    case trailingBytes = "bytes follow the zstd frame"
    case recordCount = "the number of entries is not the header's"
    case byteCount = "the number of bytes in the frame is not the header's"
    case entryLength = "an entry is longer than what is left of the frame"
    case summary = "there is not exactly one summary, as the last entry"
  }
}

extension CheckpointError {
  package var path: FilePath {
    switch self {
    case .notACheckpoint(let path), .otherVersion(let path, _), .otherPlan(let path),
      .otherUnit(let path, _),
      .truncated(let path), .damaged(let path, _), .unreadable(let path, _),
      .entryTooLarge(let path, _), .compressionFailed(let path, _):
      path
    }
  }

  /// Whether this proves that this build can never use the file for its plan, so that it is
  /// discarded and its unit redone.
  package var provesUnusable: Bool {
    switch self {
    case .notACheckpoint, .otherVersion, .otherPlan, .otherUnit, .truncated, .damaged: true
    case .unreadable, .entryTooLarge, .compressionFailed: false
    }
  }
}

extension CheckpointError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .notACheckpoint(let path):
      "\(path) is not a checkpoint. \(discard)"
    case .otherVersion(let path, let found):
      "\(path) is a checkpoint of format \(found), and this build reads format "
        + "\(Checkpoint.formatVersion). \(discard)"
    case .otherPlan(let path):
      "\(path) belongs to another plan: the store, a model or the mapping has changed since. "
        + discard
    case .otherUnit(let path, let found):
      "\(path) holds the checkpoint \(found). \(discard)"
    case .truncated(let path):
      "\(path) ends too early. \(discard)"
    case .damaged(let path, let damage):
      "\(path) is damaged: \(damage.rawValue). Check the volume. \(discard)"
    case .unreadable(let path, let errno):
      "\(path) cannot be read: \(errno) (errno \(errno.rawValue)). "
        + "Check the volume and run again; the finished work is kept."
    case .entryTooLarge(let path, let bytes):
      "\(path): a row of \(bytes) bytes is more than the \(Checkpoint.maximumPayloadBytes) a "
        + "checkpoint may hold. Shorten the row's texts and binary data and run again."
    case .compressionFailed(let path, let reason):
      "\(path): zstd failed, \(reason). Free memory, or use fewer workers, and run again."
    }
  }

  private var discard: String { "Run again; only that unit is redone." }
}
