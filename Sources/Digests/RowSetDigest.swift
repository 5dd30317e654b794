/// A digest of a set of rows, whatever their order and however they are divided.
///
/// The sum, modulo 2¹²⁸, of a 128-bit hash of each row. Rows that occur twice count twice, so two
/// equal digests mean equal multisets, but for a chance of about 2⁻¹²⁸. The hash is fast and *not*
/// cryptographic: it finds our mistakes and the disk's, not a forger's work.
public struct RowSetDigest: Sendable, Hashable {
  @usableFromInline var rows: Int
  @usableFromInline var high: UInt64
  @usableFromInline var low: UInt64

  /// How many rows.
  @inlinable public var count: Int { rows }

  /// The digest of no rows.
  public init() {
    rows = 0
    high = 0
    low = 0
  }

  /// Takes in one row. Which bytes stand for a row is the caller's to say.
  @inlinable
  public mutating func add(_ row: UnsafeRawBufferPointer) {
    var hash = RowHash(length: row.count)
    hash.add(row)
    add(hash)
  }

  /// Takes in one row by its hash.
  @inlinable @inline(__always)
  public mutating func add(_ row: RowHash) {
    let hash = row.words
    rows &+= 1
    add(high: hash.high, low: hash.low)
  }

  public mutating func add(_ row: [UInt8]) { row.withUnsafeBytes { add($0) } }

  /// Takes in the rows of another digest: that of another shard, say.
  public static func += (digest: inout RowSetDigest, other: RowSetDigest) {
    digest.rows &+= other.rows
    digest.add(high: other.high, low: other.low)
  }

  @inlinable @inline(__always)
  mutating func add(high otherHigh: UInt64, low otherLow: UInt64) {
    let (sum, carry) = low.addingReportingOverflow(otherLow)
    low = sum
    high = high &+ otherHigh &+ (carry ? 1 : 0)
  }
}

extension RowSetDigest {
  /// The sum as 32 hexadecimal digits, most significant first.
  public var hexText: String { hexDigits(high) + hexDigits(low) }
}

extension RowSetDigest: CustomStringConvertible {
  public var description: String { "\(count) rows, \(hexText)" }
}

/// As JSON: `{"rows": 3, "sum": "00112233445566778899aabbccddeeff"}`.
extension RowSetDigest: Codable {
  private enum CodingKeys: String, CodingKey { case rows, sum }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    rows = try container.decode(Int.self, forKey: .rows)
    let text = try container.decode(String.self, forKey: .sum)
    guard rows >= 0, text.utf8.count == 32, let bytes = Hexadecimal.bytes(of: text) else {
      throw DecodingError.dataCorruptedError(
        forKey: .sum, in: container,
        debugDescription: "A row digest has a count of rows and 32 hexadecimal digits.")
    }
    high = bytes[..<8].reduce(0) { $0 << 8 | UInt64($1) }
    low = bytes[8...].reduce(0) { $0 << 8 | UInt64($1) }
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(count, forKey: .rows)
    try container.encode(hexText, forKey: .sum)
  }
}

private func hexDigits(_ number: UInt64) -> String {
  let digits = String(number, radix: 16)
  return String(repeating: "0", count: 16 - digits.utf8.count) + digits
}
