/// Reads the part of XML 1.0 that files of Core Data and Xcode are written in: elements,
/// attributes, character data, CDATA, character references and the five named ones.
///
/// Of our own, since Foundation's parser on Linux can crash on a damaged file. Comments,
/// processing instructions and the document type are skipped; the bytes are UTF-8; open
/// elements are a stack, so depth costs no recursion.
///
/// Source: W3C, Extensible Markup Language (XML) 1.0, sections 2 and 4.1.
struct MarkupReader {
  private let bytes: [UInt8]
  private var place = 0
  private var elements = 0

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    // A byte order mark is not a character data.
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { place = 3 }
  }

  mutating func document() throws(ArchiveError) -> MarkupElement {
    var open: [MarkupElement] = []
    while true {
      if place >= bytes.count {
        throw bad("an element is not closed, or a mark is missing")
      }
      if bytes[place] != UInt8(ascii: "<") {
        let text = try characterData()
        if !open.isEmpty {
          open[open.count - 1].text += text
        } else if !text.allSatisfy(\.isWhitespace) {
          throw bad("text stands outside of the root element")
        }
      } else if try skipMarkup() {
        continue
      } else if takes("<![CDATA[") {
        guard !open.isEmpty else { throw bad("text stands outside of the root element") }
        open[open.count - 1].text += try cdata()
      } else if takes("</") {
        guard let element = open.popLast(), try name() == element.name else {
          throw bad("a closing mark is not that of the open element")
        }
        skipSpace()
        guard takes(">") else { throw bad("a closing mark is not ended") }
        if open.isEmpty { return try end(with: element) }
        open[open.count - 1].children.append(element)
      } else {
        let (element, isClosed) = try openingMark()
        if !isClosed {
          guard open.count < MarkupElement.depthLimit else {
            throw .tooLarge(what: "levels", limit: MarkupElement.depthLimit)
          }
          open.append(element)
        } else if open.isEmpty {
          return try end(with: element)
        } else {
          open[open.count - 1].children.append(element)
        }
      }
    }
  }

  /// Behind the root element only comments, instructions and white space may come.
  private mutating func end(with root: MarkupElement) throws(ArchiveError) -> MarkupElement {
    skipSpace()
    while place < bytes.count {
      guard try skipMarkup() else { throw bad("something stands behind the root element") }
      skipSpace()
    }
    return root
  }
}

// MARK: - Marks

extension MarkupReader {
  private func bad(_ reason: String) -> ArchiveError {
    let end = min(place, bytes.count)
    let line = 1 + bytes[..<end].count { $0 == UInt8(ascii: "\n") }
    return .malformedXML(line: line, reason: reason)
  }

  private mutating func takes(_ mark: StaticString) -> Bool {
    let count = mark.utf8CodeUnitCount
    guard place + count <= bytes.count else { return false }
    for offset in 0..<count where bytes[place + offset] != (mark.utf8Start + offset).pointee {
      return false
    }
    place += count
    return true
  }

  /// Goes behind the next `mark`.
  private mutating func skip(behind mark: StaticString, _ what: String) throws(ArchiveError) {
    while place < bytes.count {
      if takes(mark) { return }
      place += 1
    }
    throw bad("\(what) is not ended")
  }

  /// Skips a comment, an instruction or the document type; false at anything else.
  private mutating func skipMarkup() throws(ArchiveError) -> Bool {
    if takes("<!--") {
      try skip(behind: "-->", "a comment")
    } else if takes("<?") {
      try skip(behind: "?>", "an instruction")
    } else if takes("<!DOCTYPE") {
      try skipDocumentType()
    } else {
      return false
    }
    return true
  }

  private mutating func skipDocumentType() throws(ArchiveError) {
    var inner = false
    while place < bytes.count {
      if takes("<!ENTITY") { throw bad("it declares an entity") }
      if takes("<!--") {
        try skip(behind: "-->", "a comment")
        continue
      }
      let byte = bytes[place]
      place += 1
      switch byte {
      case UInt8(ascii: "\""): try skip(behind: "\"", "a text")
      case UInt8(ascii: "'"): try skip(behind: "'", "a text")
      case UInt8(ascii: "["): inner = true
      case UInt8(ascii: "]"): inner = false
      case UInt8(ascii: ">") where !inner: return
      default: break
      }
    }
    throw bad("the document type is not ended")
  }

  private mutating func openingMark() throws(ArchiveError) -> (MarkupElement, isClosed: Bool) {
    place += 1
    elements += 1
    guard elements <= PropertyList.Limits.objects else {
      throw .tooLarge(what: "values", limit: PropertyList.Limits.objects)
    }
    var element = MarkupElement(name: try name())
    while true {
      let isSpaced = skipSpace()
      if takes("/>") { return (element, true) }
      if takes(">") { return (element, false) }
      guard isSpaced else { throw bad("a mark is not ended") }
      let key = try name()
      skipSpace()
      guard takes("=") else { throw bad("the attribute \(key) has no value") }
      skipSpace()
      let value = try attributeValue()
      guard element.attributes.updateValue(value, forKey: key) == nil else {
        throw bad("the attribute \(key) stands twice in one mark")
      }
    }
  }

  @discardableResult
  private mutating func skipSpace() -> Bool {
    let start = place
    while place < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[place]) { place += 1 }
    return place > start
  }

  private mutating func name() throws(ArchiveError) -> String {
    let start = place
    while place < bytes.count {
      switch bytes[place] {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "_"), UInt8(ascii: ":"), 0x80...:
        place += 1
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."):
        guard place > start else { throw bad("a name begins with \(bytes[place])") }
        place += 1
      default:
        guard place > start else { throw bad("a name is missing") }
        return try text(Array(bytes[start..<place]))
      }
    }
    throw bad("a mark is not ended")
  }
}

// MARK: - Text

extension MarkupReader {
  private func text(_ bytes: [UInt8]) throws(ArchiveError) -> String {
    guard let text = String(validating: bytes, as: UTF8.self) else { throw bad("it is not UTF-8") }
    return text
  }

  /// Up to the next mark, references replaced, line ends as line feeds.
  private mutating func characterData() throws(ArchiveError) -> String {
    var result: [UInt8] = []
    while place < bytes.count, bytes[place] != UInt8(ascii: "<") {
      try append(to: &result)
    }
    return try text(result)
  }

  private mutating func cdata() throws(ArchiveError) -> String {
    let start = place
    try skip(behind: "]]>", "character data")
    return try text(Array(bytes[start..<(place - 3)]))
  }

  private mutating func attributeValue() throws(ArchiveError) -> String {
    guard place < bytes.count else { throw bad("a mark is not ended") }
    let quote = bytes[place]
    guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") else {
      throw bad("an attribute's value has no quotation marks")
    }
    place += 1
    var result: [UInt8] = []
    while place < bytes.count {
      let byte = bytes[place]
      if byte == quote {
        place += 1
        return try text(result)
      }
      guard byte != UInt8(ascii: "<") else { throw bad("an attribute's value holds a <") }
      let isReference = byte == UInt8(ascii: "&")
      let start = result.count
      try append(to: &result)
      // White space that is written as itself counts as a space (XML 1.0, section 3.3.3).
      if !isReference, result[start] == 0x09 || result[start] == 0x0A { result[start] = 0x20 }
    }
    throw bad("an attribute's value is not ended")
  }

  /// One character, or what a reference stands for.
  private mutating func append(to result: inout [UInt8]) throws(ArchiveError) {
    let byte = bytes[place]
    switch byte {
    case UInt8(ascii: "&"): try appendReference(to: &result)
    case 0x0D:
      result.append(0x0A)
      place += 1
      if place < bytes.count, bytes[place] == 0x0A { place += 1 }
    case 0x09, 0x0A, 0x20...:
      result.append(byte)
      place += 1
    default: throw bad("it holds the control character \(byte)")
    }
  }

  private mutating func appendReference(to result: inout [UInt8]) throws(ArchiveError) {
    if takes("&lt;") {
      result.append(UInt8(ascii: "<"))
    } else if takes("&gt;") {
      result.append(UInt8(ascii: ">"))
    } else if takes("&amp;") {
      result.append(UInt8(ascii: "&"))
    } else if takes("&quot;") {
      result.append(UInt8(ascii: "\""))
    } else if takes("&apos;") {
      result.append(UInt8(ascii: "'"))
    } else {
      let radix = takes("&#x") ? 16 : takes("&#") ? 10 : 0
      guard radix > 0 else { throw bad("it refers to an unknown entity") }
      let digits = bytes[place...].prefix(8).prefix { $0 != UInt8(ascii: ";") }
      guard let scalar = scalar(digits, radix: radix), digits.endIndex < bytes.count,
        bytes[digits.endIndex] == UInt8(ascii: ";")
      else { throw bad("a character reference names no character") }
      place = digits.endIndex + 1
      result.append(contentsOf: Array(String(scalar).utf8))
    }
  }

  private func scalar(_ digits: ArraySlice<UInt8>, radix: Int) -> Unicode.Scalar? {
    guard let first = digits.first, first != UInt8(ascii: "+"), first != UInt8(ascii: "-"),
      let value = UInt32(String(decoding: digits, as: UTF8.self), radix: radix),
      value >= 0x20 || value == 0x09 || value == 0x0A || value == 0x0D,
      value != 0xFFFE, value != 0xFFFF
    else { return nil }
    return Unicode.Scalar(value)
  }
}
