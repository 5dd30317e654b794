/// The name of an entity, as the model spells it.
///
/// A type of its own, so that no call can take a table (`ZTRADE`) for an entity (`Trade`).
/// Names are compared byte by byte in UTF-8, and so are equal only where their scalars are: Core
/// Data compares and orders them so, and Swift's `String` does not.
public struct EntityName: RawRepresentable, Hashable, Sendable {
  /// The name as text, unchanged.
  public let rawValue: String
  /// Takes any text as the name. Whether a model has such an entity is not checked.
  public init(rawValue: String) { self.rawValue = rawValue }
  /// Takes any text as the name. Whether a model has such an entity is not checked.
  public init(_ name: String) { rawValue = name }

  /// Equal where they have the same Unicode scalars.
  public static func == (a: EntityName, b: EntityName) -> Bool {
    a.rawValue.isSameName(as: b.rawValue)
  }

  /// Equal names have equal hashes.
  public func hash(into hasher: inout Hasher) { rawValue.hashScalars(into: &hasher) }
}

extension EntityName: Comparable {
  /// In the order of their bytes in UTF-8.
  public static func < (a: EntityName, b: EntityName) -> Bool {
    a.rawValue.precedesInBytes(b.rawValue)
  }
}

extension EntityName: ExpressibleByStringLiteral {
  /// Lets a literal stand for a name: `"Trade"`.
  public init(stringLiteral value: String) { rawValue = value }
}

extension EntityName: CustomStringConvertible {
  /// The name itself.
  public var description: String { rawValue }
}

extension EntityName: Codable {
  /// Reads the name as a string.
  public init(from decoder: any Decoder) throws {
    rawValue = try decoder.singleValueContainer().decode(String.self)
  }

  /// Writes the name as a string.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(rawValue)
  }
}

extension String {
  /// Byte order of the UTF-8 text: capitals before small letters, no normalisation.
  package func precedesInBytes(_ other: String) -> Bool {
    utf8.lexicographicallyPrecedes(other.utf8)
  }
}
