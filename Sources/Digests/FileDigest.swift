/// A digest of a file's bytes, in order, that is made as fast as the file is read.
///
/// SHA-256 over the ``RowHash`` of each MiB, whose length is its number from 0; the last one may be
/// shorter. It finds what a disk or a mistake changes, not a forger's work.
public struct FileDigest: ~Copyable {
  /// 1 MiB: every piece but the last has as many bytes.
  public static let pieceBytes = 1 << 20

  private var digest = SHA256()
  private var pieces = 0

  public init() {}

  /// Takes in the next piece.
  public mutating func add(_ piece: UnsafeRawBufferPointer) {
    var hash = RowHash(length: pieces)
    hash.add(piece)
    let words = hash.words
    pieces += 1
    digest.update(bigEndian(words.high) + bigEndian(words.low) + bigEndian(UInt64(piece.count)))
  }

  /// 64 hexadecimal digits.
  public mutating func finish() -> String { Hexadecimal.text(of: digest.finish()) }

  private func bigEndian(_ word: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: word >> (56 - 8 * UInt64($0))) }
  }
}
