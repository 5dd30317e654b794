/// Reads the text of a value expression or a predicate.
///
/// One pass over the tokens, one token ahead, no going back: a parenthesis may hold either kind,
/// so every level returns a piece that is one or the other, and asks for the kind it needs.
///
/// Source: `core-data-migration.md` §4.2.
struct ExpressionParser {
  /// A piece of the tree with its height, so that no text can build a tree too deep to walk.
  struct Piece {
    enum Kind {
      case value(ValueExpression)
      case predicate(PredicateExpression)
    }

    var kind: Kind
    var height: Int
    var offset: Int
  }

  private let text: String
  private var lexer: ExpressionLexer
  private(set) var token: ExpressionToken
  private(set) var offset: Int
  private var openLevels = 0
  private var mostLevels = 0

  init(_ text: String) throws(ExpressionError) {
    self.text = text
    lexer = try ExpressionLexer(text)
    (token, offset) = try lexer.next()
  }

  mutating func wholeValue() throws(ExpressionError) -> ValueExpression {
    let found = try value(parseOr())
    try expectEnd()
    try expectReadable(ExpressionPrinter.text(found))
    return found
  }

  mutating func wholePredicate() throws(ExpressionError) -> PredicateExpression {
    let found = try predicate(parseOr())
    try expectEnd()
    try expectReadable(ExpressionPrinter.text(found))
    return found
  }

  /// What is written has parentheses that what was read need not have had. Beside the bound they could
  /// make it unreadable.
  private func expectReadable(_ written: @autoclosure () -> String) throws(ExpressionError) {
    // A level has up to three when it is written.
    guard mostLevels > ExpressionLimits.depth / 2 / 3 else { return }
    var again = try ExpressionParser(written())
    do {
      _ = try again.parseOr()
    } catch  where error.problem == .tooDeep {
      throw failure(.tooDeep, at: 0)
    }
  }

  private func expectEnd() throws(ExpressionError) {
    if token != .end { throw unexpected("the end or an operator") }
  }
}

// MARK: - Tokens and pieces

extension ExpressionParser {
  mutating func advance() throws(ExpressionError) {
    (token, offset) = try lexer.next()
  }

  func failure(_ problem: ExpressionError.Problem, at place: Int? = nil) -> ExpressionError {
    ExpressionError(problem, at: place ?? offset, in: text)
  }

  func unexpected(_ expected: String) -> ExpressionError {
    failure(.unexpected(found: token.description, expected: expected))
  }

  mutating func take(_ symbol: String) throws(ExpressionError) -> Bool {
    guard token == .symbol(symbol) else { return false }
    try advance()
    return true
  }

  mutating func expect(_ symbol: String) throws(ExpressionError) {
    guard try take(symbol) else { throw unexpected(symbol) }
  }

  /// The keyword at hand in capitals; escaped identifiers are none.
  var keyword: String? {
    if case .identifier(let name) = token { name.uppercased() } else { nil }
  }

  mutating func takeKeyword(_ word: String) throws(ExpressionError) -> Bool {
    guard keyword == word else { return false }
    try advance()
    return true
  }

  func value(_ piece: Piece) throws(ExpressionError) -> ValueExpression {
    guard case .value(let value) = piece.kind else {
      throw failure(.notAValue, at: piece.offset)
    }
    return value
  }

  func predicate(_ piece: Piece) throws(ExpressionError) -> PredicateExpression {
    guard case .predicate(let predicate) = piece.kind else {
      throw failure(.notAPredicate, at: piece.offset)
    }
    return predicate
  }

  func piece(
    _ value: ValueExpression, over height: Int = 0, at start: Int
  ) throws(ExpressionError) -> Piece {
    guard height < ExpressionLimits.depth else { throw failure(.tooDeep, at: start) }
    return Piece(kind: .value(value), height: height + 1, offset: start)
  }

  func piece(
    _ predicate: PredicateExpression, over height: Int = 0, at start: Int
  ) throws(ExpressionError) -> Piece {
    guard height < ExpressionLimits.depth else { throw failure(.tooDeep, at: start) }
    return Piece(kind: .predicate(predicate), height: height + 1, offset: start)
  }

  /// Runs one level deeper; the parser's own recursion is bounded here.
  mutating func nested(
    _ parse: (inout ExpressionParser) throws(ExpressionError) -> Piece
  ) throws(ExpressionError) -> Piece {
    // Each open parenthesis costs a dozen stack frames, so it has a bound of its own.
    guard openLevels < ExpressionLimits.depth / 2 else { throw failure(.tooDeep) }
    openLevels += 1
    mostLevels = max(mostLevels, openLevels)
    defer { openLevels -= 1 }
    return try parse(&self)
  }
}

// MARK: - Predicates

extension ExpressionParser {
  mutating func parseOr() throws(ExpressionError) -> Piece {
    try chain(of: { parser throws(ExpressionError) in try parser.parseAnd() }, by: ["OR", "||"]) {
      .or($0)
    }
  }

  private mutating func parseAnd() throws(ExpressionError) -> Piece {
    try chain(of: { parser throws(ExpressionError) in try parser.parseNot() }, by: ["AND", "&&"]) {
      .and($0)
    }
  }

  private mutating func chain(
    of part: (inout ExpressionParser) throws(ExpressionError) -> Piece, by words: [String],
    _ join: ([PredicateExpression]) -> PredicateExpression
  ) throws(ExpressionError) -> Piece {
    let first = try part(&self)
    guard isAt(words) else { return first }
    var parts = [try predicate(first)]
    var height = first.height
    while isAt(words) {
      try advance()
      let next = try part(&self)
      parts.append(try predicate(next))
      height = max(height, next.height)
    }
    return try piece(join(parts), over: height, at: first.offset)
  }

  private func isAt(_ words: [String]) -> Bool {
    if let keyword { return words.contains(keyword) }
    if case .symbol(let symbol) = token { return words.contains(symbol) }
    return false
  }

  private mutating func parseNot() throws(ExpressionError) -> Piece {
    let start = offset
    guard keyword == "NOT" || token == .symbol("!") else { return try parseComparison() }
    try advance()
    let inner = try nested { parser throws(ExpressionError) in try parser.parseNot() }
    return try piece(.not(try predicate(inner)), over: inner.height, at: start)
  }

  private mutating func parseComparison() throws(ExpressionError) -> Piece {
    let start = offset
    var modifier = Comparison.Modifier.direct
    var isNone = false
    switch keyword {
    case "ANY", "SOME": modifier = .any
    case "ALL": modifier = .all
    case "NONE":
      modifier = .any
      isNone = true
    default: break
    }
    if modifier != .direct { try advance() }
    let left = try parseAdditive()
    guard let comparison = comparisonOperator else {
      if modifier != .direct { throw unexpected("a comparison") }
      return left
    }
    try advance()
    let options = try parseOptions()
    let right = try parseAdditive()
    let height = max(left.height, right.height)
    let result = PredicateExpression.comparison(
      Comparison(
        try value(left), comparison, try value(right), modifier: modifier, options: options))
    return try piece(isNone ? .not(result) : result, over: height + (isNone ? 1 : 0), at: start)
  }

  private var comparisonOperator: Comparison.Operator? {
    switch token {
    case .symbol("="), .symbol("=="): .equal
    case .symbol("!="), .symbol("<>"): .notEqual
    case .symbol("<"): .less
    case .symbol(">"): .greater
    case .symbol("<="), .symbol("=<"): .lessOrEqual
    case .symbol(">="), .symbol("=>"): .greaterOrEqual
    default: keyword.flatMap { Self.wordOperators[$0] }
    }
  }

  private static let wordOperators: [String: Comparison.Operator] = [
    "BETWEEN": .between, "IN": .in, "CONTAINS": .contains, "BEGINSWITH": .beginsWith,
    "ENDSWITH": .endsWith, "LIKE": .like, "MATCHES": .matches,
  ]

  private mutating func parseOptions() throws(ExpressionError) -> Comparison.Options {
    guard try take("[") else { return [] }
    guard case .identifier(let letters) = token else { throw unexpected("an option") }
    var options: Comparison.Options = []
    for letter in letters {
      switch letter {
      case "c", "C": options.insert(.caseInsensitive)
      case "d", "D": options.insert(.diacriticInsensitive)
      case "n", "N": options.insert(.normalized)
      case "l", "L": options.insert(.localeSensitive)
      default: throw failure(.unknownOption(letter))
      }
    }
    try advance()
    try expect("]")
    return options
  }
}

// MARK: - Arithmetic

extension ExpressionParser {
  mutating func parseAdditive() throws(ExpressionError) -> Piece {
    try operators(["+": BuiltInFunction.Infix.add, "-": BuiltInFunction.Infix.subtract]) {
      parser throws(ExpressionError) in try parser.parseProduct()
    }
  }

  private mutating func parseProduct() throws(ExpressionError) -> Piece {
    try operators(["*": BuiltInFunction.Infix.multiply, "/": BuiltInFunction.Infix.divide]) {
      parser throws(ExpressionError) in
      try parser.operators(["**": BuiltInFunction.Infix.power]) {
        parser throws(ExpressionError) in try parser.parseUnary()
      }
    }
  }

  private mutating func operators(
    _ names: [String: String],
    of part: (inout ExpressionParser) throws(ExpressionError) -> Piece
  ) throws(ExpressionError) -> Piece {
    var left = try part(&self)
    while case .symbol(let symbol) = token, let name = names[symbol] {
      try advance()
      let right = try part(&self)
      left = try piece(
        .call(name, [try value(left), try value(right)]), over: max(left.height, right.height),
        at: left.offset)
    }
    return left
  }

  /// A minus before a number belongs to the number; elsewhere it multiplies by −1.
  private mutating func parseUnary() throws(ExpressionError) -> Piece {
    let start = offset
    guard try take("-") else { return try parsePostfix() }
    switch token {
    case .integer(let magnitude):
      let constant: Constant =
        magnitude <= UInt64(Int64.max) + 1
        ? .integer(Int64(truncatingIfNeeded: 0 &- magnitude)) : .real(-Double(magnitude))
      try advance()
      return try parsePostfix(after: try piece(.constant(constant), at: start))
    case .real(let real):
      try advance()
      return try parsePostfix(after: try piece(.constant(.real(-real)), at: start))
    default:
      let inner = try nested { parser throws(ExpressionError) in try parser.parseUnary() }
      return try piece(
        .call(BuiltInFunction.Infix.multiply, [.constant(.integer(-1)), try value(inner)]),
        over: inner.height, at: start)
    }
  }
}

extension ValueExpression {
  /// Reads Core Data's expression syntax.
  package init(parsing text: String) throws(ExpressionError) {
    var parser = try ExpressionParser(text)
    self = try parser.wholeValue()
  }
}

extension PredicateExpression {
  /// Reads Core Data's predicate syntax.
  package init(parsing text: String) throws(ExpressionError) {
    var parser = try ExpressionParser(text)
    self = try parser.wholePredicate()
  }
}
