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

  /// Reads an XML file.
  ///
  /// External entities are never loaded, and a file that declares an entity of its own is
  /// refused: no file of Core Data has one, and expanding them is a known way to exhaust memory.
  ///
  /// - Throws: ``ArchiveError``.
  /// - Complexity: O(*n*) in the number of bytes.
  package init(xml bytes: [UInt8]) throws {
    var reader = MarkupReader(bytes)
    self = try reader.document()
  }
}
