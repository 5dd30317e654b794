import FoundationEssentials
import GodwitDigests

/// JSON of a run directory or a state folder with the SHA-256 of everything else as its last key: another process
/// reads it than the one that wrote it, and in between a disk may change a byte that leaves it JSON.
package enum SealedJSON {
  private static let mark = Array(#","digest":""#.utf8)
  private static let end = Array(#""}"#.utf8)
  private static let (infinite, negative, none) = ("inf", "-inf", "nan")

  /// - Parameter value: One that is an object with at least one key in JSON.
  package static func bytes(of value: some Encodable) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    encoder.nonConformingFloatEncodingStrategy = .convertToString(
      positiveInfinity: infinite, negativeInfinity: negative, nan: none)
    let json = [UInt8](try encoder.encode(value))
    return json.dropLast() + tail(of: json)
  }

  /// - Parameter bytes: Of ``bytes(of:)``.
  /// - Throws: ``SealedJSONError``, or `DecodingError` for a value of another layout.
  package static func value<Value: Decodable>(
    _: Value.Type = Value.self, of bytes: [UInt8]
  ) throws -> Value {
    let count = mark.count + 64 + end.count
    guard bytes.count > count else { throw SealedJSONError.altered }
    let json = Array(bytes.dropLast(count)) + [UInt8(ascii: "}")]
    guard bytes.suffix(count).elementsEqual(tail(of: json)) else {
      throw SealedJSONError.altered
    }
    return try decoded(json)
  }

  /// - Parameter bytes: Of ``bytes(of:)``, or JSON without a digest, as earlier versions wrote it.
  /// - Throws: As ``value(_:of:)``.
  package static func value<Value: Decodable>(
    _: Value.Type = Value.self, ofSealedOrPlain bytes: [UInt8]
  ) throws -> Value {
    isSealed(bytes) ? try value(of: bytes) : try decoded(bytes)
  }

  /// Whether there is a digest at the end, be it the right one or not: the file is, or was, one of ``bytes(of:)``.
  package static func isSealed(_ bytes: [UInt8]) -> Bool {
    bytes.suffix(mark.count + 64 + end.count).starts(with: mark)
  }

  private static func decoded<Value: Decodable>(_ json: [UInt8]) throws -> Value {
    let decoder = JSONDecoder()
    decoder.nonConformingFloatDecodingStrategy = .convertFromString(
      positiveInfinity: infinite, negativeInfinity: negative, nan: none)
    return try decoder.decode(Value.self, from: Data(json))
  }

  private static func tail(of json: [UInt8]) -> [UInt8] {
    mark + Array(Hexadecimal.text(of: SHA256.digest(of: json)).utf8) + end
  }
}

/// Why the bytes of a file are not used, although they may well be JSON.
package enum SealedJSONError: Error, Sendable, Equatable, CustomStringConvertible {
  /// A byte is another than when the file was written.
  case altered

  package var description: String {
    switch self {
    case .altered: "it is not as it was written, or another version of godwit wrote it"
    }
  }
}

// A plan leads to tables, columns and entity mappings by their places in lists, and whoever follows it looks at no
// place twice. So bytes are a plan only as they were written.
extension MigrationPlan {
  /// The plan as ``SealedJSON``.
  package func stored() throws -> [UInt8] { try SealedJSON.bytes(of: self) }

  /// - Parameter stored: Of ``stored()``.
  /// - Throws: As ``SealedJSON/value(_:of:)``.
  package init(stored: [UInt8]) throws { self = try SealedJSON.value(of: stored) }
}
