extension ExpressionParser {
  /// A primary with the key paths and indexes behind it.
  mutating func parsePostfix() throws(ExpressionError) -> Piece {
    let isClosed = token == .symbol("(")
    return try parsePostfix(after: try parsePrimary(), isClosed: isClosed)
  }

  /// - Parameter isClosed: Whether the primary stood in parentheses: what follows is asked of what it comes
  ///   to then. `(x.@sum.a).b` is b of the sum, `x.@sum.a.b` the sum of all b.
  mutating func parsePostfix(
    after primary: Piece, isClosed: Bool = false
  ) throws(ExpressionError) -> Piece {
    var result = primary
    while true {
      if token == .symbol(".") {
        let base = try value(result)
        let keys = try parseKeys()
        if case .keyPath(let inner, let first) = base, !isClosed || first.areKeys {
          result.kind = .value(.keyPath(base: inner, keys: first + keys))
        } else {
          result = try piece(
            .keyPath(base: base, keys: keys), over: result.height, at: result.offset)
        }
      } else if token == .symbol("["), case .value(let base) = result.kind {
        try advance()
        let (place, height) = try parseElementPlace()
        try expect("]")
        result = try piece(
          .element(of: base, at: place), over: max(result.height, height), at: result.offset)
      } else {
        return result
      }
    }
  }

  /// `.a.b.@count`
  private mutating func parseKeys() throws(ExpressionError) -> [KeyPathElement] {
    var keys: [KeyPathElement] = []
    while try take(".") {
      switch token {
      case .identifier(let name): keys.append(.key(try key(name, at: offset)))
      case .escaped(let name): keys.append(.key(name))
      case .at(let name): keys.append(.collectionOperator(name))
      default: throw unexpected("a key")
      }
      try advance()
    }
    return keys
  }

  /// A key as it stands; a selector such as `add:to:` is none.
  private func key(_ name: String, at start: Int) throws(ExpressionError) -> String {
    let scalars = name.unicodeScalars
    guard let colon = scalars.firstIndex(of: ":") else { return name }
    let place = start + scalars.distance(from: scalars.startIndex, to: colon)
    throw failure(.unknownCharacter(":"), at: place)
  }

  private mutating func parseElementPlace() throws(ExpressionError) -> (ElementPlace, Int) {
    if try takeKeyword("FIRST") { return (.first, 0) }
    if try takeKeyword("LAST") { return (.last, 0) }
    if try takeKeyword("SIZE") { return (.size, 0) }
    let index = try nested { parser throws(ExpressionError) in try parser.parseAdditive() }
    return (.index(try value(index)), index.height)
  }

  private mutating func parsePrimary() throws(ExpressionError) -> Piece {
    let start = offset
    let current = token
    switch current {
    case .string(let string):
      try advance()
      return try piece(.constant(.string(string)), at: start)
    case .integer(let magnitude):
      try advance()
      return try piece(
        .constant(Int64(exactly: magnitude).map { .integer($0) } ?? .real(Double(magnitude))),
        at: start)
    case .real(let real):
      try advance()
      return try piece(.constant(.real(real)), at: start)
    case .variable(let name):
      try advance()
      guard try take(":=") else { return try piece(.variable(name), at: start) }
      let inner = try nested { parser throws(ExpressionError) in try parser.parseAdditive() }
      return try piece(
        .assignment(variable: name, value: try value(inner)), over: inner.height, at: start)
    case .escaped(let name):
      try advance()
      return try piece(.keyPath(base: .evaluatedObject, keys: [.key(name)]), at: start)
    case .at(let name):
      try advance()
      return try piece(
        .keyPath(base: .evaluatedObject, keys: [.collectionOperator(name)]), at: start)
    case .symbol("("):
      try advance()
      let inner = try nested { parser throws(ExpressionError) in try parser.parseOr() }
      try expect(")")
      return inner
    case .symbol("{"):
      try advance()
      let (members, height) = try parseList(closedBy: "}")
      return try piece(.aggregate(members), over: height, at: start)
    case .identifier(let name):
      try advance()
      return try parseWord(name, at: start)
    default:
      throw unexpected("a value")
    }
  }

  /// What begins with a bare word: a literal, a call or a key path.
  private mutating func parseWord(_ name: String, at start: Int) throws(ExpressionError) -> Piece {
    if token == .symbol("(") { return try parseCall(name, at: start) }
    switch name.uppercased() {
    case "NULL", "NIL": return try piece(.constant(.null), at: start)
    case "TRUE", "YES": return try piece(.constant(.boolean(true)), at: start)
    case "FALSE", "NO": return try piece(.constant(.boolean(false)), at: start)
    case "SELF": return try piece(.evaluatedObject, at: start)
    case "TRUEPREDICATE": return try piece(PredicateExpression.constant(true), at: start)
    case "FALSEPREDICATE": return try piece(PredicateExpression.constant(false), at: start)
    case let word where Keywords.reserved.contains(word):
      throw failure(
        .unexpected(found: "the reserved word \(name)", expected: "a value (or #\(name))"),
        at: start)
    default: break
    }
    guard name == "godwit", token == .symbol(".") else {
      let key = try key(name, at: start)
      return try piece(.keyPath(base: .evaluatedObject, keys: [.key(key)]), at: start)
    }
    let keys = try parseKeys()
    if token == .symbol("("), keys.count == 1, case .key(let function) = keys[0] {
      return try parseCall("godwit." + function, at: start)
    }
    return try piece(.keyPath(base: .evaluatedObject, keys: [.key(name)] + keys), at: start)
  }

  /// Arguments up to the closing mark; the opening one is taken.
  private mutating func parseList(
    closedBy mark: String
  ) throws(ExpressionError) -> ([ValueExpression], Int) {
    var members: [ValueExpression] = []
    var height = 0
    if try take(mark) { return (members, height) }
    repeat {
      let member = try nested { parser throws(ExpressionError) in try parser.parseAdditive() }
      members.append(try value(member))
      height = max(height, member.height)
    } while try take(",")
    try expect(mark)
    return (members, height)
  }

  private mutating func parseCall(
    _ name: String, at start: Int
  ) throws(ExpressionError) -> Piece {
    try expect("(")
    switch name.uppercased() {
    case "TERNARY":
      let test = try parseNestedPredicate()
      try expect(",")
      let (values, height) = try parseList(closedBy: ")")
      try check("TERNARY", values.count + 1, 3...3, at: start)
      return try piece(
        .ternary(try predicate(test), then: values[0], otherwise: values[1]),
        over: max(test.height, height), at: start)
    case "SUBQUERY":
      let collection = try nested { parser throws(ExpressionError) in try parser.parseAdditive() }
      try expect(",")
      guard case .variable(let variable) = token else { throw unexpected("a variable") }
      try advance()
      try expect(",")
      let test = try parseNestedPredicate()
      try expect(")")
      return try piece(
        .subquery(
          collection: try value(collection), variable: variable, predicate: try predicate(test)),
        over: max(collection.height, test.height), at: start)
    default:
      let (arguments, height) = try parseList(closedBy: ")")
      return try piece(try call(name, arguments, at: start), over: height, at: start)
    }
  }

  private mutating func parseNestedPredicate() throws(ExpressionError) -> Piece {
    try nested { parser throws(ExpressionError) in try parser.parseOr() }
  }

  private func check(
    _ function: String, _ count: Int, _ allowed: ClosedRange<Int>, at start: Int
  ) throws(ExpressionError) {
    guard !allowed.contains(count) else { return }
    let expected =
      allowed.lowerBound == allowed.upperBound
      ? String(allowed.lowerBound)
      : allowed.upperBound >= ExpressionLimits.length
        ? "at least \(allowed.lowerBound)" : "\(allowed.lowerBound) to \(allowed.upperBound)"
    throw failure(
      .wrongArgumentCount(function: function, found: count, expected: expected), at: start)
  }

  private func call(
    _ name: String, _ arguments: [ValueExpression], at start: Int
  ) throws(ExpressionError) -> ValueExpression {
    switch name.uppercased() {
    case "FUNCTION":
      guard arguments.count >= 2, case .constant(.string(let selector)) = arguments[1] else {
        throw failure(
          .unexpected(
            found: "something else", expected: "FUNCTION(receiver, \"selector:\", arguments …)"),
          at: start)
      }
      return .function(
        receiver: arguments[0], selector: selector, arguments: Array(arguments.dropFirst(2)))
    case "CAST":
      guard arguments.count == 2, case .constant(.string(let type)) = arguments[1] else {
        throw failure(
          .unexpected(found: "something else", expected: "CAST(value, \"type\")"), at: start)
      }
      return .cast(arguments[0], type: type)
    case "FETCH":
      guard arguments.count == 3, case .constant(.boolean(let countOnly)) = arguments[2] else {
        throw failure(
          .unexpected(found: "something else", expected: "FETCH(request, context, YES or NO)"),
          at: start)
      }
      return .fetch(request: arguments[0], context: arguments[1], countOnly: countOnly)
    default:
      guard let function = BuiltInFunction.named(name, argumentCount: arguments.count) else {
        throw failure(
          .unknownFunction(name, suggestion: BuiltInFunction.suggestion(for: name)), at: start)
      }
      try check(function.shortName, arguments.count, function.arguments, at: start)
      return .call(function.name, arguments)
    }
  }
}
