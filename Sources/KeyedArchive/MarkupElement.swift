/// An element of an XML file, with its attributes and children.
///
/// Small on purpose: model files and property lists have no namespaces, no entities of their
/// own and no mixed content.
package struct MarkupElement: Sendable, Equatable {
  package var name: String
  package var attributes: [String: String]
  package var children: [MarkupElement]
  /// The character data directly inside the element, pieces joined.
  package var text: String

  package init(
    name: String, attributes: [String: String] = [:], children: [MarkupElement] = [],
    text: String = ""
  ) {
    self.name = name
    self.attributes = attributes
    self.children = children
    self.text = text
  }

  /// Children named `name`, in order.
  package func children(named name: String) -> [MarkupElement] {
    children.filter { $0.name == name }
  }

  /// The value of an attribute, or nil.
  package subscript(attribute: String) -> String? { attributes[attribute] }
}

extension MarkupElement {
  /// Elements inside elements. Model files have six, nested property lists a few more.
  package static let depthLimit = PropertyList.Limits.depth

  /// Reads an XML file in UTF-8, or in UTF-16 with a byte order mark, which every reader of XML takes (XML 1.0,
  /// section 4.3.3).
  ///
  /// External entities are never loaded, and a file that declares an entity of its own is
  /// refused: no file of Core Data has one, and expanding them is a known way to exhaust memory.
  ///
  /// - Throws: ``ArchiveError``.
  /// - Complexity: O(*n*) in the number of bytes.
  package init(xml bytes: [UInt8]) throws {
    var reader = MarkupReader(Self.utf8(ofUTF16: bytes) ?? bytes)
    self = try reader.document()
  }

  /// Nil for a file that is not UTF-16.
  private static func utf8(ofUTF16 bytes: [UInt8]) -> [UInt8]? {
    let isBigEndian = bytes.starts(with: [0xFE, 0xFF])
    guard isBigEndian || bytes.starts(with: [0xFF, 0xFE]), bytes.count.isMultiple(of: 2) else {
      return nil
    }
    let units = stride(from: 2, to: bytes.count, by: 2).lazy.map { place in
      let (first, second) = (UInt16(bytes[place]), UInt16(bytes[place + 1]))
      return isBigEndian ? first << 8 | second : second << 8 | first
    }
    return String(validating: units, as: UTF16.self).map { Array($0.utf8) }
  }
}
