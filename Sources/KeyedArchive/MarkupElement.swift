import Foundation

#if canImport(FoundationXML)
  import FoundationXML
#endif

/// An element of an XML file, with its attributes and children.
///
/// Small on purpose: model files and property lists have no namespaces, no entities of their
/// own and no mixed content.
public struct MarkupElement: Sendable, Equatable {
  public var name: String
  public var attributes: [String: String]
  public var children: [MarkupElement]
  /// The character data directly inside the element, pieces joined.
  public var text: String

  public init(
    name: String, attributes: [String: String] = [:], children: [MarkupElement] = [],
    text: String = ""
  ) {
    self.name = name
    self.attributes = attributes
    self.children = children
    self.text = text
  }

  /// Children named `name`, in order.
  public func children(named name: String) -> [MarkupElement] {
    children.filter { $0.name == name }
  }

  /// The value of an attribute, or nil.
  public subscript(attribute: String) -> String? { attributes[attribute] }
}

extension MarkupElement {
  /// Elements inside elements. Model files have six, nested property lists a few more.
  public static let depthLimit = PropertyList.Limits.depth

  /// Reads an XML file.
  ///
  /// External entities are never loaded, and a file that declares an entity of its own is
  /// refused: no file of Core Data has one, and expanding them is a known way to exhaust memory.
  ///
  /// - Throws: ``ArchiveError``.
  public init(xml bytes: [UInt8]) throws {
    guard !bytes.containsSequence(Array("<!ENTITY".utf8)) else {
      throw ArchiveError.malformedXML(line: 1, reason: "it declares an entity")
    }
    let builder = MarkupBuilder()
    let parser = XMLParser(data: Data(bytes))
    parser.shouldResolveExternalEntities = false
    parser.shouldProcessNamespaces = false
    parser.delegate = builder
    let finished = parser.parse()
    if let failure = builder.failure { throw failure }
    guard finished, let root = builder.root else {
      throw ArchiveError.malformedXML(
        line: max(parser.lineNumber, 1), reason: "an element is not closed, or a mark is missing")
    }
    self = root
  }
}

extension [UInt8] {
  /// True where `other` stands somewhere in the bytes.
  fileprivate func containsSequence(_ other: [UInt8]) -> Bool {
    guard let first = other.first, count >= other.count else { return false }
    return indices.dropLast(other.count - 1).contains { place in
      self[place] == first && self[place..<(place + other.count)].elementsEqual(other)
    }
  }
}

/// Collects the parser's events into a tree; the open elements are a stack.
private final class MarkupBuilder: NSObject, XMLParserDelegate {
  var root: MarkupElement?
  var failure: ArchiveError?
  private var open: [MarkupElement] = []
  private var elements = 0

  func parser(
    _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?,
    qualifiedName qName: String?, attributes attributeDict: [String: String]
  ) {
    elements += 1
    guard failure == nil else { return }
    guard open.count < MarkupElement.depthLimit else {
      failure = .tooLarge(what: "levels", limit: MarkupElement.depthLimit)
      return parser.abortParsing()
    }
    guard elements <= PropertyList.Limits.values else {
      failure = .tooLarge(what: "values", limit: PropertyList.Limits.values)
      return parser.abortParsing()
    }
    open.append(MarkupElement(name: elementName, attributes: attributeDict))
  }

  func parser(
    _ parser: XMLParser, didEndElement elementName: String, namespaceURI: String?,
    qualifiedName qName: String?
  ) {
    guard failure == nil, let element = open.popLast() else { return }
    if open.isEmpty {
      root = element
    } else {
      open[open.count - 1].children.append(element)
    }
  }

  func parser(_ parser: XMLParser, foundCharacters string: String) {
    guard !open.isEmpty else { return }
    open[open.count - 1].text += string
  }

  func parser(_ parser: XMLParser, foundCDATA block: Data) {
    guard !open.isEmpty else { return }
    open[open.count - 1].text += String(decoding: block, as: UTF8.self)
  }
}
