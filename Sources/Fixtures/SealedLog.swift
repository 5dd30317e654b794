import Foundation

/// Gives a write-ahead log salts of our own choice, so that equal stores have equal logs.
///
/// SQLite draws the two salts again for each log. They stand in the header and in every frame, and
/// every checksum covers those before it: all are written again.
///
///     offset  size  header, big-endian          offset  size  frame header
///          0     4  magic; odd: big-endian sums      0     4  page number
///          8     4  page size                        4     4  pages after commit, or 0
///         16     8  salts                            8     8  salts
///         24     8  checksum of the 24 before       16     8  checksum
///
/// Source: https://sqlite.org/fileformat2.html §4.1, §4.2.
enum SealedLog {
  private static let headerBytes = 32
  private static let frameHeaderBytes = 24

  static func seal(_ path: String, seed: UInt64) throws {
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    defer { try? file.close() }
    var header = [UInt8](try file.read(upToCount: headerBytes) ?? Data())
    guard header.count == headerBytes else { return }
    let isBigEndian = header[3] & 1 == 1
    let pageBytes = Int(header[8..<12].reduce(0) { $0 << 8 | UInt32($1) })
    guard (512...65_536).contains(pageBytes) else {
      throw FixtureError.notWritable(path: path, reason: "it is not a write-ahead log")
    }
    let salts = SplitMix64.seed(seed, "log")
    put(salts, into: &header, at: 16)
    var sum: (UInt32, UInt32) = (0, 0)
    add(header[0..<24], to: &sum, isBigEndian: isBigEndian)
    put(UInt64(sum.0) << 32 | UInt64(sum.1), into: &header, at: 24)
    try file.seek(toOffset: 0)
    try file.write(contentsOf: Data(header))
    let frameBytes = frameHeaderBytes + pageBytes
    var offset = UInt64(headerBytes)
    while let data = try file.read(upToCount: frameBytes), data.count == frameBytes {
      var frame = [UInt8](data)
      put(salts, into: &frame, at: 8)
      add(frame[0..<8], to: &sum, isBigEndian: isBigEndian)
      add(frame[frameHeaderBytes...], to: &sum, isBigEndian: isBigEndian)
      put(UInt64(sum.0) << 32 | UInt64(sum.1), into: &frame, at: 16)
      try file.seek(toOffset: offset)
      try file.write(contentsOf: Data(frame))
      offset += UInt64(frameBytes)
    }
    try file.truncate(atOffset: offset)
  }

  private static func add(
    _ bytes: ArraySlice<UInt8>, to sum: inout (UInt32, UInt32), isBigEndian: Bool
  ) {
    bytes.withUnsafeBytes { bytes in
      for offset in stride(from: 0, to: bytes.count, by: 8) {
        let first = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
        let second = bytes.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
        sum.0 &+= (isBigEndian ? first.bigEndian : first.littleEndian) &+ sum.1
        sum.1 &+= (isBigEndian ? second.bigEndian : second.littleEndian) &+ sum.0
      }
    }
  }

  private static func put(_ value: UInt64, into bytes: inout [UInt8], at offset: Int) {
    for index in 0..<8 {
      bytes[offset + index] = UInt8(truncatingIfNeeded: value >> UInt64(56 - 8 * index))
    }
  }
}
