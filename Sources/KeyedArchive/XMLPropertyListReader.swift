import Foundation

/// Reads the XML form of a property list. Source: `plist(5)` and Apple's public DTD
/// `PropertyList-1.0.dtd`.
///
/// Keyed archives in this form spell a UID as a dictionary with the one key `CF$UID`.
enum XMLPropertyListReader {
  static func read(_ bytes: [UInt8]) throws -> PropertyList {
    // With the byte order marks of UTF-8 and UTF-16, and the other half of a unit of that.
    let whiteSpace: Set<UInt8> = [0x20, 0x09, 0x0A, 0x0D, 0xEF, 0xBB, 0xBF, 0xFE, 0xFF, 0x00]
    guard bytes.first(where: { !whiteSpace.contains($0) }) == UInt8(ascii: "<") else {
      throw ArchiveError.notAPropertyList
    }
    let root = try MarkupElement(xml: bytes)
    guard root.name == "plist", let content = root.children.first, root.children.count == 1 else {
      throw ArchiveError.notAPropertyList
    }
    return try value(content)
  }

  /// The depth of the tree is bounded by ``MarkupElement/depthLimit``.
  private static func value(_ element: MarkupElement) throws -> PropertyList {
    let isContainer = element.name == "array" || element.name == "dict"
    let isText = ["string", "integer", "real", "date", "data"].contains(element.name)
    guard isContainer || element.children.isEmpty, isText || trimmed(element.text).isEmpty else {
      throw odd(element)
    }
    switch element.name {
    case "true": return .boolean(true)
    case "false": return .boolean(false)
    case "string": return .string(element.text)
    case "integer": return try integer(element.text)
    case "real":
      guard let number = Double(trimmed(element.text)) else { throw odd(element) }
      return .real(number)
    case "date": return .date(try date(trimmed(element.text)))
    case "data":
      let text = trimmed(element.text)
      // Foundation takes white space alone for no data.
      if text.isEmpty { return .data([]) }
      guard let data = Data(base64Encoded: text, options: .ignoreUnknownCharacters) else {
        throw odd(element)
      }
      return .data([UInt8](data))
    case "array": return .array(try element.children.map(value))
    case "dict": return try dictionary(element)
    default: throw odd(element)
    }
  }

  private static func odd(_ element: MarkupElement) -> ArchiveError {
    .malformedXML(line: 1, reason: "<\(element.name.prefix(40))> holds no such value")
  }

  private static func trimmed(_ text: String) -> String {
    text.trimmingCharacters(in: .whitespacesAndNewlines)
  }

  private static func integer(_ text: String) throws -> PropertyList {
    let digits = trimmed(text)
    let wide = digits.hasPrefix("0x") ? Int128(digits.dropFirst(2), radix: 16) : Int128(digits)
    guard let wide else { throw ArchiveError.malformedXML(line: 1, reason: "an odd integer") }
    return Int64(exactly: wide).map(PropertyList.integer) ?? .wideInteger(wide)
  }

  private static func dictionary(_ element: MarkupElement) throws -> PropertyList {
    guard element.children.count.isMultiple(of: 2) else { throw odd(element) }
    var result = PropertyListDictionary()
    for place in stride(from: 0, to: element.children.count, by: 2) {
      let key = element.children[place]
      guard key.name == "key", key.children.isEmpty else { throw odd(element) }
      result[key.text] = try value(element.children[place + 1])
    }
    if result.count == 1, case .integer(let number)? = result["CF$UID"],
      let uid = UInt32(exactly: number)
    {
      return .uid(uid)
    }
    return .dictionary(result)
  }

  private static func date(_ text: String) throws -> Double {
    guard let seconds = PropertyListDate.seconds(text) else {
      throw ArchiveError.malformedXML(line: 1, reason: "an odd date")
    }
    return seconds
  }
}
