internal import SystemPackage

/// A finished piece of one stage, written once and never changed.
///
/// A checkpoint is a file. Its first 96 bytes are the header; the rest is one zstd frame with its
/// content checksum on and a window of at most 512 KiB. Integers are little-endian.
///
///     offset  size  field
///          0     8  magic: "CDCKPT\r\n"
///          8     2  format version, 2
///         10     1  stage: 1 copy, 2 link, 3 validate, 4 audit, 5 verify, 6 soundness,
///                      7 rows
///         11     1  zero
///         12     4  unit, from 0
///         16    32  plan fingerprint, SHA-256
///         48     8  number of entries in the frame, the summary among them
///         56     8  bytes in the frame, uncompressed
///         64    32  SHA-256 of the frame as stored
///
/// Uncompressed, the frame is a sequence of entries and nothing else:
///
///     offset  size  field
///          0     4  bytes in the payload, at most 1 GiB
///          4     1  channel
///          5     8  key, signed
///         13        payload
///
///     channel  key             payload
///           0  Z_PK or rowid   a row: a record in SQLite's format
///           1  0               the summary, JSON; exactly one, the last entry
///          2…  as the stage    more streams of rows of the same unit of work
///              says
package enum Checkpoint {
  /// The format this build reads and writes. A checkpoint of another version is discarded and its
  /// unit redone: a wrong bit in the version field must not stop a run for ever.
  package static let formatVersion: UInt16 = 2
  /// 1 GiB: more than SQLite keeps in a row (1 000 000 000 bytes) unless it was built to.
  package static let maximumPayloadBytes = 1 << 30
  /// Bytes in a plan's fingerprint.
  package static let fingerprintByteCount = 32

  package static let summaryChannel: UInt8 = 1

  static let magic: [UInt8] = Array("CDCKPT\r\n".utf8)
  static let headerByteCount = 96
  static let entryHeaderByteCount = 13
  /// log₂ of 512 KiB. Level −5 finds little farther away, and readers need that much memory.
  static let windowLog: Int32 = 19
  /// Faster than the disk, and less than half the bytes of Core Data's rows. What follows replaces parts
  /// of the level: of 455 MB of rows it makes 195 MB at 473 MB/s, where the level as it is makes 153 MB at
  /// 354 MB/s, and reading them is a quarter faster.
  static let compressionLevel: Int32 = -5
  /// log₂ of the entries, of 4 bytes, of the table of places.
  static let hashLog: Int32 = 14
  /// Shorter repetitions are not worth their place.
  static let minimumMatch: Int32 = 7
  /// Bytes that are passed over where nothing repeats.
  static let targetLength: Int32 = 24
}

/// The fields of a header that differ from file to file.
struct CheckpointHeader: Equatable {
  /// The stage and unit that the file is the result of.
  var name: CheckpointName
  var fingerprint: [UInt8]
  var entryCount: UInt64
  var byteCount: UInt64
  /// SHA-256 of the frame as stored.
  var frameDigest: [UInt8]

  init(
    name: CheckpointName, fingerprint: [UInt8], entryCount: UInt64, byteCount: UInt64,
    frameDigest: [UInt8]
  ) {
    self.name = name
    self.fingerprint = fingerprint
    self.entryCount = entryCount
    self.byteCount = byteCount
    self.frameDigest = frameDigest
  }

  /// Reads the header at the start of a file.
  init(parsing bytes: [UInt8], path: FilePath) throws {
    let magic = Checkpoint.magic
    guard bytes.starts(with: magic) else {
      // An empty or cut file that is right as far as it goes has ended too early.
      throw magic.starts(with: bytes)
        ? CheckpointError.truncated(path) : CheckpointError.notACheckpoint(path)
    }
    guard bytes.count >= 10 else { throw CheckpointError.truncated(path) }
    let version = UInt16(bytes[8]) | UInt16(bytes[9]) << 8
    guard version == Checkpoint.formatVersion else {
      throw CheckpointError.otherVersion(path, found: version)
    }
    guard bytes.count >= Checkpoint.headerByteCount else { throw CheckpointError.truncated(path) }
    guard let stage = Stage(checkpointNumber: bytes[10]), bytes[11] == 0 else {
      throw CheckpointError.damaged(path, .header)
    }
    let unit = bytes[12..<16].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    name = CheckpointName(stage: stage, unit: Int(unit))
    fingerprint = Array(bytes[16..<48])
    entryCount = bytes[48..<56].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    byteCount = bytes[56..<64].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    frameDigest = Array(bytes[64..<96])
  }

  /// The header's 96 bytes.
  var bytes: [UInt8] {
    var bytes = Checkpoint.magic
    bytes.reserveCapacity(Checkpoint.headerByteCount)
    withUnsafeBytes(of: Checkpoint.formatVersion.littleEndian) { bytes += $0 }
    bytes += [name.stage.checkpointNumber, 0]
    withUnsafeBytes(of: UInt32(name.unit).littleEndian) { bytes += $0 }
    bytes += fingerprint
    withUnsafeBytes(of: entryCount.littleEndian) { bytes += $0 }
    withUnsafeBytes(of: byteCount.littleEndian) { bytes += $0 }
    bytes += frameDigest
    return bytes
  }
}

extension Stage {
  /// The stage's number in a header. A number never changes its meaning.
  var checkpointNumber: UInt8 {
    switch self {
    case .copy: 1
    case .link: 2
    case .validate: 3
    case .audit: 4
    case .verify: 5
    case .soundness: 6
    case .rows: 7
    }
  }

  init?(checkpointNumber: UInt8) {
    guard let stage = Stage.allCases.first(where: { $0.checkpointNumber == checkpointNumber })
    else { return nil }
    self = stage
  }
}
