import GodwitDigests

/// Core Data's 32-byte digest of an entity's definition.
///
/// A store keeps one for each of its entities and opens under a model whose hashes are equal.
/// Source: `core-data-models.md` §6.
public struct VersionHash: Hashable, Sendable {
  /// Bytes in a version hash.
  public static let byteCount = SHA256.byteCount
  /// Always ``byteCount`` bytes.
  public let bytes: [UInt8]

  /// Nil unless there are exactly ``byteCount`` bytes.
  public init?(bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }

  /// Nil unless the text is 64 hexadecimal digits.
  public init?(hexadecimal text: String) {
    guard let bytes = Hexadecimal.bytes(of: text) else { return nil }
    self.init(bytes: bytes)
  }

  init(digestOf content: [UInt8]) { bytes = SHA256.digest(of: content) }

  /// 64 hexadecimal digits, small letters.
  public var hexadecimal: String { Hexadecimal.text(of: bytes) }
}

extension VersionHash: CustomStringConvertible {
  /// The 64 hexadecimal digits.
  public var description: String { hexadecimal }
}

extension VersionHash: Codable {
  /// Reads 64 hexadecimal digits.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let hash = VersionHash(hexadecimal: try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "A version hash is 64 hexadecimal digits.")
    }
    self = hash
  }

  /// Writes 64 hexadecimal digits.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(hexadecimal)
  }
}
