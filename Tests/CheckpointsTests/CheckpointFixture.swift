import CZstd
import Foundation
import GodwitCheckpoints
import GodwitDigests
import SystemPackage

/// A folder of the test's own, removed with the value.
final class TemporaryFolder {
  let path: FilePath

  init() throws {
    path = FilePath(NSTemporaryDirectory() + "godwit-" + UUID().uuidString)
    try FileManager.default.createDirectory(
      atPath: path.string, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path.string) }

  func file(_ name: String) -> FilePath { path.appending(name) }

  func names() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path.string).sorted()
  }
}

struct TestEntry: Equatable {
  var channel: UInt8
  var key: Int64
  var payload: [UInt8]
}

let planFingerprint = [UInt8](0..<32)
/// What the checkpoints of these tests are the result of.
let unitName = CheckpointName(stage: .link, unit: 0x01_02_03)

func bytes(of path: FilePath) throws -> [UInt8] {
  [UInt8](try Data(contentsOf: URL(fileURLWithPath: path.string)))
}

func put(_ bytes: [UInt8], at path: FilePath) throws {
  try Data(bytes).write(to: URL(fileURLWithPath: path.string))
}

/// Writes a checkpoint with the writer.
func write(_ entries: [TestEntry], summary: [UInt8], to path: FilePath) throws {
  let writer = try CheckpointWriter(path: path, name: unitName, fingerprint: planFingerprint)
  for entry in entries {
    try entry.payload.withUnsafeBytes {
      try writer.append(channel: entry.channel, key: entry.key, $0)
    }
  }
  try writer.finish(summary: summary)
}

/// Reads a checkpoint to its end, the summary included.
func entries(
  of path: FilePath, name: CheckpointName = unitName, fingerprint: [UInt8] = planFingerprint
) throws -> [TestEntry] {
  let reader = try CheckpointReader(path: path, name: name, fingerprint: fingerprint)
  var entries: [TestEntry] = []
  while let entry = try reader.next() {
    entries.append(
      TestEntry(channel: entry.channel, key: entry.key, payload: Array(entry.payload)))
  }
  return entries
}

/// A checkpoint file made field by field, so that any of them can be wrong.
struct CraftedCheckpoint {
  var version: UInt16 = 2
  var stage: UInt8 = 2
  var reserved: UInt8 = 0
  var content: [UInt8] = []
  var entryCount: UInt64 = 0
  /// `nil` for what `content` has.
  var byteCount: UInt64?
  var windowLog: Int32 = 19
  var trailing: [UInt8] = []

  mutating func append(_ entry: TestEntry, claiming length: UInt32? = nil) {
    withUnsafeBytes(of: (length ?? UInt32(entry.payload.count)).littleEndian) { content += $0 }
    content.append(entry.channel)
    withUnsafeBytes(of: entry.key.littleEndian) { content += $0 }
    content += entry.payload
    entryCount += 1
  }

  /// An entry that ends the file as it should end.
  mutating func appendSummary() {
    append(TestEntry(channel: 1, key: 0, payload: Array("{}".utf8)))
  }

  func bytes() -> [UInt8] {
    let frame = compressed() + trailing
    var bytes = Array("CDCKPT\r\n".utf8)
    withUnsafeBytes(of: version.littleEndian) { bytes += $0 }
    bytes += [stage, reserved, 3, 2, 1, 0]
    bytes += planFingerprint
    withUnsafeBytes(of: entryCount.littleEndian) { bytes += $0 }
    withUnsafeBytes(of: (byteCount ?? UInt64(content.count)).littleEndian) { bytes += $0 }
    return bytes + SHA256.digest(of: frame) + frame
  }

  private func compressed() -> [UInt8] {
    let compressor = ZSTD_createCCtx()
    defer { ZSTD_freeCCtx(compressor) }
    ZSTD_CCtx_setParameter(compressor, ZSTD_c_checksumFlag, 1)
    ZSTD_CCtx_setParameter(compressor, ZSTD_c_windowLog, windowLog)
    ZSTD_CCtx_setParameter(compressor, ZSTD_c_contentSizeFlag, 0)
    var frame = [UInt8](repeating: 0, count: ZSTD_compressBound(content.count) + 64)
    // A stream of two pieces: in one piece, the window would be the content.
    return content.withUnsafeBytes { source in
      frame.withUnsafeMutableBytes { target in
        var input = ZSTD_inBuffer(src: source.baseAddress, size: source.count / 2, pos: 0)
        var output = ZSTD_outBuffer(dst: target.baseAddress, size: target.count, pos: 0)
        ZSTD_compressStream2(compressor, &output, &input, ZSTD_e_continue)
        input.size = source.count
        ZSTD_compressStream2(compressor, &output, &input, ZSTD_e_end)
        return Array(target[..<output.pos])
      }
    }
  }
}
