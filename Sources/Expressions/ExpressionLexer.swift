/// A piece of an expression's text.
enum ExpressionToken: Equatable {
  case identifier(String)
  /// `#size`: an identifier that is never a keyword.
  case escaped(String)
  case variable(String)
  /// `@count`, without the `@`.
  case at(String)
  case string(String)
  /// The digits without a sign; a magnitude beyond `UInt64` is real.
  case integer(UInt64)
  case real(Double)
  case symbol(String)
  case end

  var description: String {
    switch self {
    case .identifier(let name): name
    case .escaped(let name): "#" + name
    case .variable(let name): "$" + name
    case .at(let name): "@" + name
    case .string: "a text"
    case .integer(let value): String(value)
    case .real(let value): String(value)
    case .symbol(let symbol): symbol
    case .end: "the end"
    }
  }
}

/// Cuts an expression's text into tokens. Source: `core-data-migration.md` §4.2.
///
/// It goes by Unicode scalars: a quotation mark or a dot before a combining mark is what it is.
struct ExpressionLexer {
  private let text: String
  private let scalars: [Unicode.Scalar]
  private var place = 0

  init(_ text: String) throws(ExpressionError) {
    guard text.utf8.count <= ExpressionLimits.length else {
      throw ExpressionError(.tooLong, at: 0, in: String(text.prefix(200)))
    }
    self.text = text
    scalars = Array(text.unicodeScalars)
  }

  /// Longest first.
  private static let symbols = [
    ":=", "**", "==", "!=", "<>", "<=", ">=", "=<", "=>", "&&", "||", "=", "<", ">", "!", "+", "-",
    "*", "/", "(", ")", "[", "]", "{", "}", ",", ".",
  ].map { (text: $0, scalars: Array($0.unicodeScalars)) }

  /// The next token and where it begins.
  mutating func next() throws(ExpressionError) -> (token: ExpressionToken, offset: Int) {
    while place < scalars.count, scalars[place].properties.isWhitespace { place += 1 }
    let start = place
    guard place < scalars.count else { return (.end, start) }
    let scalar = scalars[place]
    switch scalar {
    case "\"", "'": return (.string(try string(closedBy: scalar)), start)
    case "$", "@", "#":
      place += 1
      let name = word()
      guard !name.isEmpty else { throw failure(.unknownCharacter(Character(scalar)), start) }
      return (
        scalar == "$" ? .variable(name) : scalar == "@" ? .at(name) : .escaped(name), start
      )
    default: break
    }
    if scalar.isASCIIDigit || (scalar == "." && peek(1)?.isASCIIDigit == true) {
      return (try number(), start)
    }
    if Self.beginsWord(scalar) { return (.identifier(wordOrSelector()), start) }
    for symbol in Self.symbols where scalars[place...].starts(with: symbol.scalars) {
      place += symbol.scalars.count
      return (.symbol(symbol.text), start)
    }
    if scalar == "&" {
      place += 1
      throw failure(.ampersand(name: word()), start)
    }
    throw failure(.unknownCharacter(Character(scalar)), start)
  }

  private func failure(_ problem: ExpressionError.Problem, _ offset: Int) -> ExpressionError {
    ExpressionError(problem, at: offset, in: text)
  }

  private func peek(_ ahead: Int) -> Unicode.Scalar? {
    place + ahead < scalars.count ? scalars[place + ahead] : nil
  }

  /// A letter, but no mark that belongs to the letter before it.
  static func beginsWord(_ scalar: Unicode.Scalar) -> Bool {
    scalar == "_" || scalar.properties.isAlphabetic && !isMark(scalar)
  }

  static func continuesWord(_ scalar: Unicode.Scalar) -> Bool {
    beginsWord(scalar) || scalar.properties.numericType != nil || isMark(scalar)
  }

  /// Combining marks, and the joiners that some scripts write within a word.
  private static func isMark(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .spacingMark, .enclosingMark: true
    default: scalar.value == 0x200C || scalar.value == 0x200D
    }
  }

  private mutating func word() -> String {
    let start = place
    while let scalar = peek(0), Self.continuesWord(scalar) { place += 1 }
    return Self.text(scalars[start..<place])
  }

  private static func text(_ scalars: ArraySlice<Unicode.Scalar>) -> String {
    String(String.UnicodeScalarView(scalars))
  }

  /// A word, or a selector such as `add:to:`.
  private mutating func wordOrSelector() -> String {
    var result = word()
    while peek(0) == ":", peek(1) != "=" {
      place += 1
      result += ":" + word()
    }
    return result
  }

  private mutating func string(closedBy quote: Unicode.Scalar) throws(ExpressionError) -> String {
    let start = place
    place += 1
    var result = String.UnicodeScalarView()
    while let scalar = peek(0) {
      place += 1
      if scalar == quote { return String(result) }
      guard scalar == "\\" else {
        result.append(scalar)
        continue
      }
      guard let escape = peek(0) else { break }
      place += 1
      switch escape {
      case "n": result.append("\n")
      case "t": result.append("\t")
      case "r": result.append("\r")
      case "\\", "\"", "'": result.append(escape)
      case "u": result.append(contentsOf: try escapedScalar())
      default: throw failure(.badEscape("\\\(escape)"), place - 2)
      }
    }
    throw failure(.openString, start)
  }

  /// `\uXXXX`; two in a row may be the halves of a surrogate pair.
  private mutating func escapedScalar() throws(ExpressionError) -> [Unicode.Scalar] {
    let start = place - 2
    guard let first = hexadecimals() else { throw failure(.badEscape("\\u"), start) }
    if let scalar = Unicode.Scalar(first) { return [scalar] }
    if (0xD800..<0xDC00).contains(first), peek(0) == "\\", peek(1) == "u" {
      place += 2
      if let second = hexadecimals(), (0xDC00..<0xE000).contains(second),
        let scalar = Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
      {
        return [scalar]
      }
    }
    throw failure(.badEscape("\\u" + String(first, radix: 16)), start)
  }

  private mutating func hexadecimals() -> UInt32? {
    guard place + 4 <= scalars.count else { return nil }
    let digits = scalars[place..<place + 4]
    guard digits.allSatisfy({ $0.isASCII && $0.properties.isHexDigit }) else { return nil }
    place += 4
    return UInt32(Self.text(digits), radix: 16)
  }

  private mutating func number() throws(ExpressionError) -> ExpressionToken {
    let start = place
    if scalars[place] == "0", let mark = peek(1), let radix = Self.radixes[mark] {
      place += 2
      let digits = word()
      guard let value = UInt64(digits, radix: radix) else {
        throw failure(.badNumber("0\(mark)\(digits)"), start)
      }
      return .integer(value)
    }
    var isReal = false
    digits()
    if peek(0) == ".", peek(1)?.isASCIIDigit == true {
      isReal = true
      place += 1
      digits()
    }
    if let mark = peek(0), mark == "e" || mark == "E" {
      let sign = peek(1) == "-" || peek(1) == "+" ? 1 : 0
      if peek(1 + sign)?.isASCIIDigit == true {
        isReal = true
        place += 1 + sign
        digits()
      }
    }
    let written = Self.text(scalars[start..<place])
    if let next = peek(0), Self.beginsWord(next) {
      throw failure(.badNumber(written + String(Character(next))), start)
    }
    if !isReal, let value = UInt64(written) { return .integer(value) }
    guard let value = Double(written), value.isFinite else {
      throw failure(.badNumber(written), start)
    }
    return .real(value)
  }

  private static let radixes: [Unicode.Scalar: Int] = [
    "x": 16, "X": 16, "o": 8, "O": 8, "b": 2, "B": 2,
  ]

  private mutating func digits() {
    while peek(0)?.isASCIIDigit == true { place += 1 }
  }
}

extension Unicode.Scalar {
  fileprivate var isASCIIDigit: Bool { ("0"..."9").contains(self) }
}
