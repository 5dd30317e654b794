import Foundation

/// Searching texts as `NSString` does: a letter with an accent is one character, however it is written, and
/// not found by the letter alone. ASCII has one way to write it.
enum TextSearch {
  private static func isASCII(_ text: String) -> Bool { text.utf8.allSatisfy { $0 < 0x80 } }

  /// The whole text where the separator is empty or does not occur.
  static func split(_ text: String, by separator: String) -> [String] {
    if separator.isEmpty || isASCII(text) && isASCII(separator) {
      return ByteSearch.split(text, by: separator)
    }
    let whole = text as NSString
    var parts: [String] = []
    var rest = NSRange(location: 0, length: whole.length)
    while rest.length > 0 {
      let found = whole.range(of: separator, options: [], range: rest)
      guard found.location != NSNotFound, found.length > 0 else { break }
      let start = rest.location
      parts.append(
        whole.substring(with: NSRange(location: start, length: found.location - start)))
      let end = found.location + found.length
      rest = NSRange(location: end, length: whole.length - end)
    }
    parts.append(whole.substring(with: rest))
    return parts
  }

  static func begins(_ text: String, with start: String) -> Bool {
    if start.isEmpty || isASCII(text) && isASCII(start) {
      return text.utf8.starts(with: start.utf8)
    }
    return (text as NSString).hasPrefix(start)
  }

  static func ends(_ text: String, with end: String) -> Bool {
    if end.isEmpty || isASCII(text) && isASCII(end) {
      return text.utf8.reversed().starts(with: end.utf8.reversed())
    }
    return (text as NSString).hasSuffix(end)
  }
}

/// Searching texts byte by byte: code points count, not what they look like together.
enum ByteSearch {
  /// A text to look for. Each byte of what it is looked for in is compared at most twice, whatever both hold:
  /// the algorithm of Knuth, Morris and Pratt.
  struct Needle {
    let bytes: [UInt8]
    /// For each beginning of the needle, how long its longest own end is that is a beginning, too.
    private let borders: [Int]

    init(_ text: String) {
      let bytes = Array(text.utf8)
      var borders = Array(repeating: 0, count: bytes.count)
      var length = 0
      for place in bytes.indices.dropFirst() {
        while length > 0, bytes[place] != bytes[length] { length = borders[length - 1] }
        if bytes[place] == bytes[length] { length += 1 }
        borders[place] = length
      }
      (self.bytes, self.borders) = (bytes, borders)
    }

    /// Where it begins, at or behind `start`.
    func find(in hay: UnsafeBufferPointer<UInt8>, from start: Int) -> Int? {
      if bytes.isEmpty { return start }
      var length = 0
      for place in start..<max(start, hay.count) {
        while length > 0, hay[place] != bytes[length] { length = borders[length - 1] }
        if hay[place] == bytes[length] { length += 1 }
        if length == bytes.count { return place - length + 1 }
      }
      return nil
    }
  }

  static func contains(_ text: String, _ needle: String) -> Bool {
    var text = text
    return text.withUTF8 { Needle(needle).find(in: $0, from: 0) != nil }
  }

  /// The whole text where the separator is empty or does not occur.
  static func split(_ text: String, by separator: String) -> [String] {
    let needle = Needle(separator)
    guard !needle.bytes.isEmpty else { return [text] }
    var text = text
    return text.withUTF8 { hay in
      var parts: [String] = []
      var start = 0
      while let found = needle.find(in: hay, from: start) {
        parts.append(String(decoding: hay[start..<found], as: UTF8.self))
        start = found + needle.bytes.count
      }
      parts.append(String(decoding: hay[start...], as: UTF8.self))
      return parts
    }
  }
}

/// Parts of paths, as `NSString` takes them.
enum PathTexts {
  static func withoutTrailingSlashes(_ path: String) -> String {
    var units = path.utf8[...]
    while units.count > 1, units.last == UInt8(ascii: "/") { units.removeLast() }
    return String(decoding: units, as: UTF8.self)
  }

  static func lastComponent(_ path: String) -> String {
    let path = withoutTrailingSlashes(path)
    guard path != "/", let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return path }
    return String(decoding: path.utf8[path.utf8.index(after: slash)...], as: UTF8.self)
  }

  static func pathExtension(_ path: String) -> String {
    let name = lastComponent(path).utf8
    guard let dot = name.lastIndex(of: UInt8(ascii: ".")), dot != name.startIndex else { return "" }
    return String(decoding: name[name.index(after: dot)...], as: UTF8.self)
  }

  static func withoutLast(_ path: String) -> String {
    let path = withoutTrailingSlashes(path)
    guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "" }
    let head = String(decoding: path.utf8[..<slash], as: UTF8.self)
    return head.isEmpty ? "/" : withoutTrailingSlashes(head)
  }

  static func withoutExtension(_ path: String) -> String {
    let path = withoutTrailingSlashes(path)
    let name = lastComponent(path).utf8
    guard let dot = name.lastIndex(of: UInt8(ascii: ".")), dot != name.startIndex,
      !name.elementsEqual("..".utf8)
    else { return path }
    return String(
      decoding: path.utf8.dropLast(name.distance(from: dot, to: name.endIndex)), as: UTF8.self)
  }

  /// One slash between the two, and none at the end.
  static func appending(_ component: String, to path: String) -> String {
    if path.isEmpty { return withoutTrailingSlashes(component) }
    let path = withoutTrailingSlashes(path)
    let rest = withoutTrailingSlashes(String(component.drop { $0 == "/" }))
    if rest.isEmpty { return path }
    return path == "/" ? path + rest : path + "/" + rest
  }
}

/// The number at the beginning of a text, as `-[NSString integerValue]` reads it: blanks are
/// skipped, the rest after the digits does not matter, no digits are 0.
struct NumberScan {
  /// Clamped to the range.
  var integer: Int64 = 0
  var real: Double = 0

  init(_ text: String) {
    let units = Array(text.utf8.prefix(2_000))
    var place = 0
    while place < units.count, Self.isBlank(units[place]) { place += 1 }
    let start = place
    let isNegative = place < units.count && units[place] == UInt8(ascii: "-")
    if isNegative || (place < units.count && units[place] == UInt8(ascii: "+")) { place += 1 }
    func isDigit(_ place: Int) -> Bool {
      place < units.count && units[place] >= UInt8(ascii: "0") && units[place] <= UInt8(ascii: "9")
    }
    var isFull = false
    var digits = 0
    while isDigit(place) {
      let digit = Int64(units[place] - UInt8(ascii: "0"))
      let (tenfold, a) = integer.multipliedReportingOverflow(by: 10)
      let (sum, b) = tenfold.addingReportingOverflow(isNegative ? -digit : digit)
      if a || b { isFull = true } else if !isFull { integer = sum }
      place += 1
      digits += 1
    }
    if isFull { integer = isNegative ? .min : .max }
    if place < units.count, units[place] == UInt8(ascii: ".") {
      place += 1
      while isDigit(place) {
        place += 1
        digits += 1
      }
    }
    guard digits > 0 else { return }
    if place < units.count, units[place] | 0x20 == UInt8(ascii: "e") {
      var end = place + 1
      if end < units.count, units[end] == UInt8(ascii: "-") || units[end] == UInt8(ascii: "+") {
        end += 1
      }
      if isDigit(end) {
        while isDigit(end) { end += 1 }
        place = end
      }
    }
    var spelled = String(decoding: units[start..<place], as: UTF8.self)
    if spelled.hasSuffix(".") { spelled.removeLast() }
    if spelled.hasPrefix("+") { spelled.removeFirst() }
    real = Double(spelled) ?? 0
  }

  private static func isBlank(_ unit: UInt8) -> Bool {
    unit == 0x20 || (unit >= 0x09 && unit <= 0x0D)
  }

  /// `-[NSString boolValue]`: blanks, a sign and zeros are skipped; then Y, T or a digit is true.
  static func boolean(_ text: String) -> Bool {
    var rest = text.utf8.prefix(2_000).drop { isBlank($0) }
    if rest.first == UInt8(ascii: "-") || rest.first == UInt8(ascii: "+") { rest.removeFirst() }
    guard let first = rest.drop(while: { $0 == UInt8(ascii: "0") }).first else { return false }
    return "YyTt123456789".utf8.contains(first)
  }
}
