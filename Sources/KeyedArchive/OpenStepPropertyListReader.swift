/// Reads the old form of a property list, as NeXTSTEP and OpenStep wrote it, and as the description
/// of a dictionary without numbers and dates of its own still reads:
///
///     { name = "A cake"; tags = (sweet, "for two"); badge = <0fbd77 1c2735ae>; }
///
/// Every value is a text, data, an array or a dictionary; numbers are texts. The description of data
/// in recent frameworks, `{length = 3, bytes = 0x0fbd77}`, is no property list and is refused.
///
/// Source: Apple's "Old-Style ASCII Property Lists" (Property List Programming Guide).
struct OpenStepPropertyListReader {
  private let bytes: [UInt8]
  private var place = 0
  private var count = 0

  static func read(_ text: String) throws -> PropertyList {
    var reader = OpenStepPropertyListReader(bytes: Array(text.utf8))
    let value = try reader.value(depth: 0)
    try reader.skip()
    guard reader.place == reader.bytes.count else {
      throw reader.odd("something follows the property list")
    }
    return value
  }

  private init(bytes: [UInt8]) { self.bytes = bytes }

  private func odd(_ reason: String) -> ArchiveError { .malformed(offset: place, reason: reason) }

  private var next: UInt8? { place < bytes.count ? bytes[place] : nil }

  /// Skips white space and comments.
  private mutating func skip() throws {
    while let byte = next {
      if byte == 0x20 || (0x09...0x0D).contains(byte) {
        place += 1
      } else if byte == UInt8(ascii: "/"), bytes[place...].starts(with: "//".utf8) {
        place = bytes[place...].firstIndex { $0 == 0x0A || $0 == 0x0D } ?? bytes.count
      } else if byte == UInt8(ascii: "/"), bytes[place...].starts(with: "/*".utf8) {
        place += 2
        while place < bytes.count, !bytes[place...].starts(with: "*/".utf8) { place += 1 }
        guard place < bytes.count else { throw odd("a comment does not end") }
        place += 2
      } else {
        return
      }
    }
  }

  private mutating func take(_ byte: Unicode.Scalar) throws -> Bool {
    try skip()
    guard next == UInt8(ascii: byte) else { return false }
    place += 1
    return true
  }

  private mutating func value(depth: Int) throws -> PropertyList {
    guard depth < PropertyList.Limits.depth else {
      throw ArchiveError.tooLarge(what: "levels of containers", limit: PropertyList.Limits.depth)
    }
    count += 1
    guard count <= PropertyList.Limits.objects else {
      throw ArchiveError.tooLarge(what: "values", limit: PropertyList.Limits.objects)
    }
    if try take("{") { return .dictionary(try dictionary(depth: depth + 1)) }
    if try take("(") { return .array(try array(depth: depth + 1)) }
    if try take("<") { return .data(try data()) }
    return try text()
  }

  private mutating func dictionary(depth: Int) throws -> PropertyListDictionary {
    var result = PropertyListDictionary()
    while try !take("}") {
      guard let key = try text().string else { throw odd("a key has half of a character") }
      guard try take("=") else { throw odd("a key has no value") }
      result[key] = try value(depth: depth)
      // The last pair need not end.
      guard try take(";") else {
        guard try take("}") else { throw odd("a pair does not end") }
        return result
      }
    }
    return result
  }

  private mutating func array(depth: Int) throws -> [PropertyList] {
    var result: [PropertyList] = []
    while try !take(")") {
      result.append(try value(depth: depth))
      guard try take(",") else {
        guard try take(")") else { throw odd("an array does not end") }
        return result
      }
    }
    return result
  }

  private mutating func data() throws -> [UInt8] {
    var (result, high): ([UInt8], UInt8?) = ([], nil)
    while let byte = next, byte != UInt8(ascii: ">") {
      place += 1
      if byte == 0x20 || (0x09...0x0D).contains(byte) { continue }
      guard let digit = Self.digit(byte) else { throw odd("data holds something else than digits") }
      if let first = high {
        result.append(first << 4 | digit)
        high = nil
      } else {
        high = digit
      }
    }
    guard try take(">"), high == nil else { throw odd("data does not end") }
    return result
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  // MARK: Texts

  private mutating func text() throws -> PropertyList {
    try skip()
    if next == UInt8(ascii: "\"") || next == UInt8(ascii: "'") { return try quotedText() }
    let start = place
    while let byte = next, Self.isPlain(byte) { place += 1 }
    guard place > start else { throw odd("a value is missing") }
    return .string(String(decoding: bytes[start..<place], as: UTF8.self))
  }

  /// Letters, digits and what descriptions leave without quotes.
  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"), UInt8(ascii: "$"),
      UInt8(ascii: "/"), UInt8(ascii: ":"), UInt8(ascii: "."), UInt8(ascii: "-"):
      true
    default: false
    }
  }

  private mutating func quotedText() throws -> PropertyList {
    let quote = bytes[place]
    place += 1
    var units: [UInt16] = []
    var plain: [UInt8] = []
    func flush() { units += Array(String(decoding: plain, as: UTF8.self).utf16); plain = [] }
    while let byte = next, byte != quote {
      place += 1
      guard byte == UInt8(ascii: "\\") else {
        plain.append(byte)
        continue
      }
      flush()
      units.append(try escape())
    }
    guard next == quote else { throw odd("a text does not end") }
    place += 1
    flush()
    return PropertyList(text: units)
  }

  /// `\n`, `\U00e9` or, in octal and NeXTSTEP's own character set, `\351`; the latter only in ASCII,
  /// where the two agree.
  private mutating func escape() throws -> UInt16 {
    guard let byte = next else { throw odd("a text does not end") }
    place += 1
    switch byte {
    case UInt8(ascii: "a"): return 0x07
    case UInt8(ascii: "b"): return 0x08
    case UInt8(ascii: "f"): return 0x0C
    case UInt8(ascii: "n"): return 0x0A
    case UInt8(ascii: "r"): return 0x0D
    case UInt8(ascii: "t"): return 0x09
    case UInt8(ascii: "v"): return 0x0B
    case UInt8(ascii: "U"), UInt8(ascii: "u"):
      var (unit, digits): (UInt16, Int) = (0, 0)
      while digits < 4, let digit = next.flatMap(Self.digit) {
        unit = unit << 4 | UInt16(digit)
        place += 1
        digits += 1
      }
      guard digits == 4 else { throw odd("an escape has too few digits") }
      return unit
    case UInt8(ascii: "0")...UInt8(ascii: "7"):
      var (unit, digits) = (UInt16(byte - UInt8(ascii: "0")), 1)
      while digits < 3, let digit = next, (UInt8(ascii: "0")...UInt8(ascii: "7")).contains(digit) {
        unit = unit << 3 | UInt16(digit - UInt8(ascii: "0"))
        place += 1
        digits += 1
      }
      guard unit < 0x80 else { throw odd("an octal escape is not ASCII") }
      return unit
    default: return UInt16(byte)
    }
  }
}
