import GodwitDurableFiles
import GodwitPlanning
import GodwitWorker
import SystemPackage

/// `K.start-ATTEMPT`: written before anything else is done.
struct AttemptStart: Codable, Sendable, Equatable {
  var host: String
  var process: Int32
  /// Seconds since 1970-01-01 UTC.
  var time: Double
  /// The scheduler's name for the task, where one said it; how often it was started again.
  var job: String?
  var restarts: Int?
}

/// A line of `K.results-ATTEMPT`: one of its members.
struct BundleLine: Codable, Sendable {
  var result: BundleResult?
  /// Where somebody wants to know what happens to single stores.
  var event: RunEvent?
  /// The store of the event.
  var store: String?
  /// A unit that was performed, with what it cost.
  var unit: FinishedTask?

  /// The line as it is written, with a digest: each of its keys may be missing.
  var text: String {
    get throws { String(decoding: try SealedJSON.bytes(of: self), as: UTF8.self) }
  }

  /// The whole lines of a file from an offset on, and the offset after them.
  ///
  /// - Throws: ``ClusterError/badResults(path:offset:)`` for a whole line that cannot be read: it may tell of
  ///   a commit, and nothing else does.
  static func read(_ path: FilePath, from offset: Int64) throws -> (lines: [BundleLine], Int64) {
    let file = try RegularFile.open(path, isPrivate: true)
    defer { try? file.close() }
    var bytes: [UInt8] = []
    while bytes.count < byteLimit {
      let piece = try [UInt8](unsafeUninitializedCapacity: 1 << 20) { buffer, count in
        count = try file.read(
          fromAbsoluteOffset: offset + Int64(bytes.count),
          into: UnsafeMutableRawBufferPointer(buffer))
      }
      if piece.isEmpty { break }
      bytes += piece
    }
    guard let end = bytes.lastIndex(of: UInt8(ascii: "\n")) else { return ([], offset) }
    // A line that is not whole is of an attempt that died, and another one does the store again.
    let lines = try bytes[..<end].split(separator: UInt8(ascii: "\n")).map { line in
      guard let read: BundleLine = try? SealedJSON.value(ofSealedOrPlain: Array(line)) else {
        throw ClusterError.badResults(path: path.string, offset: offset + Int64(line.startIndex))
      }
      return read
    }
    return (lines, offset + Int64(end + 1))
  }

  /// 64 MiB at a time.
  private static let byteLimit = 64 << 20
}
