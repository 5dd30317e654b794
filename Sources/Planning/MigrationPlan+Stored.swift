import FoundationEssentials
import GodwitDigests

/// Why the bytes of a plan are not used, although they may well be JSON.
package enum StoredPlanError: Error, Sendable, Equatable, CustomStringConvertible {
  /// A byte is another than when the plan was written.
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
  private static let mark = Array(#","digest":""#.utf8)
  private static let end = Array(#""}"#.utf8)

  /// The plan as JSON, with the SHA-256 of everything else as its last key.
  package func stored() throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let bytes = [UInt8](try encoder.encode(self))
    return bytes.dropLast() + Self.tail(of: bytes)
  }

  /// - Parameter stored: Of ``stored()``.
  /// - Throws: ``StoredPlanError``, or `DecodingError` for a plan of another layout.
  package init(stored: [UInt8]) throws {
    let count = Self.mark.count + 64 + Self.end.count
    guard stored.count > count else { throw StoredPlanError.altered }
    let bytes = stored.dropLast(count) + [UInt8(ascii: "}")]
    guard stored.suffix(count).elementsEqual(Self.tail(of: Array(bytes))) else {
      throw StoredPlanError.altered
    }
    self = try JSONDecoder().decode(MigrationPlan.self, from: Data(bytes))
  }

  private static func tail(of bytes: [UInt8]) -> [UInt8] {
    mark + Array(Hexadecimal.text(of: SHA256.digest(of: bytes)).utf8) + end
  }
}
