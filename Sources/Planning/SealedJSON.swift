import FoundationEssentials
import GodwitDigests

/// JSON of a run directory with the SHA-256 of everything else as its last key: another process reads it than the one
/// that wrote it, and in between a disk may change a byte that leaves it JSON.
package enum SealedJSON {
  private static let mark = Array(#","digest":""#.utf8)
  private static let end = Array(#""}"#.utf8)

  /// - Parameter json: An object with at least one key.
  package static func sealed(_ json: [UInt8]) -> [UInt8] { json.dropLast() + tail(of: json) }

  /// - Parameter bytes: Of ``sealed(_:)``.
  /// - Returns: The JSON without the seal.
  /// - Throws: ``SealedJSONError``.
  package static func opened(_ bytes: [UInt8]) throws -> [UInt8] {
    let count = mark.count + 64 + end.count
    guard bytes.count > count else { throw SealedJSONError.altered }
    let json = bytes.dropLast(count) + [UInt8(ascii: "}")]
    guard bytes.suffix(count).elementsEqual(tail(of: Array(json))) else {
      throw SealedJSONError.altered
    }
    return Array(json)
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
  package func stored() throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return SealedJSON.sealed([UInt8](try encoder.encode(self)))
  }

  /// - Parameter stored: Of ``stored()``.
  /// - Throws: ``SealedJSONError``, or `DecodingError` for a plan of another layout.
  package init(stored: [UInt8]) throws {
    self = try JSONDecoder().decode(
      MigrationPlan.self, from: Data(try SealedJSON.opened(stored)))
  }
}
