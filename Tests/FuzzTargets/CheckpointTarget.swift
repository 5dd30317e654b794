import CZstd
import Foundation
import GodwitCheckpoints
import GodwitDigests
import GodwitPlanning
import SystemPackage

enum CheckpointTarget {
  private static let fingerprint = [UInt8](repeating: 7, count: Checkpoint.fingerprintByteCount)
  /// Source: the table of ``Checkpoint``.
  private static let headerByteCount = 96

  /// As in the golden file.
  private static let name = CheckpointName(stage: .link, unit: 0x01_02_03)

  /// The first byte says how much of the file is put right, since no mutation finds a digest:
  /// nothing, the header for the frame that follows, or also the frame for the entries that follow.
  static func run(_ bytes: [UInt8]) throws {
    guard let mode = bytes.first, bytes.count > headerByteCount, mode & 3 > 0 else {
      return try read(bytes)
    }
    var file = Array(bytes[1...headerByteCount])
    var frame = Array(bytes[(headerByteCount + 1)...])
    if mode & 3 > 1 {
      replace(&file, at: 56, with: little(UInt64(frame.count)))
      frame = compressed(frame)
    }
    replace(&file, at: 0, with: Array("CDCKPT\r\n".utf8) + little(Checkpoint.formatVersion))
    replace(&file, at: 16, with: fingerprint)
    replace(&file, at: 64, with: SHA256.digest(of: frame))
    try read(file + frame)
  }

  private static func read(_ bytes: [UInt8]) throws {
    let path = FileTargets.write(bytes, to: "1.ckpt")
    let reader = try CheckpointReader(path: path, name: name, fingerprint: fingerprint)
    while let entry = try reader.next() {
      if entry.channel == Checkpoint.summaryChannel {
        _ = try JSONDecoder().decode(ShardSummary.self, from: Data(entry.payload))
      } else {
        FileTargets.decode(entry.payload)
      }
    }
  }

  private static func replace(_ bytes: inout [UInt8], at offset: Int, with other: [UInt8]) {
    bytes.replaceSubrange(offset..<offset + other.count, with: other)
  }

  private static func little(_ number: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: number.littleEndian) { Array($0) }
  }

  /// A frame with the checksum and the window that checkpoints have.
  private static func compressed(_ bytes: [UInt8]) -> [UInt8] {
    let context = ZSTD_createCCtx()
    defer { ZSTD_freeCCtx(context) }
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1)
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 19)
    var frame = [UInt8](repeating: 0, count: ZSTD_compressBound(bytes.count))
    let count = ZSTD_compress2(context, &frame, frame.count, bytes, bytes.count)
    hold("bytes can be compressed", ZSTD_isError(count) == 0)
    return Array(frame[..<count])
  }
}
