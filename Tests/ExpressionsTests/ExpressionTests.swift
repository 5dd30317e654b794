import Testing

@testable import GodwitExpressions

@Suite struct `A value expression` {
  @Test(arguments: [
    // what is written, and what it is printed as
    ("$source.amount", "$source.amount"),
    ("( $source.temperature - 32.0 )/1.8", "($source.temperature - 32.0) / 1.8"),
    ("1+2*3", "1 + 2 * 3"),
    ("(1+2)*3", "(1 + 2) * 3"),
    ("1-(2-3)", "1 - (2 - 3)"),  // subtraction is not associative
    ("(1-2)-3", "1 - 2 - 3"),
    ("2 ** 3 ** 2", "2 ** 3 ** 2"),
    ("-5", "-5"),
    ("- $source.a", "-1 * $source.a"),
    ("-9223372036854775808", "-9223372036854775808"),  // the least integer there is
    ("0x1F + 0b11 + 0o17", "31 + 3 + 15"),
    ("1e3", "1000.0"),
    ("\"a\\\"b\\u00e9\"", "\"a\\\"bé\""),
    ("nil", "NULL"), ("yes", "YES"), ("FALSE", "NO"),
    ("SELF.name", "name"),
    ("$source.#size", "$source.#size"),
    ("$source.#name", "$source.name"),  // an escape that was not needed
    ("$source.items.@distinctUnionOfSets.moods", "$source.items.@distinctUnionOfSets.moods"),
    ("($source.items).moods", "$source.items.moods"),
    ("($source.items.@sum.price).intValue", "($source.items.@sum.price).intValue"),
    ("(@sum.price).intValue", "(@sum.price).intValue"),
    ("@sum.price.intValue", "@sum.price.intValue"),
    ("$source.items[FIRST]", "$source.items[FIRST]"),
    ("$source.items[1 + 1].name", "$source.items[1 + 1].name"),
    ("add:to:($source.a, 1)", "$source.a + 1"),
    ("SUM({1, 2})", "sum({1, 2})"),
    ("now()", "now()"),
    ("random()", "random()"), ("random(5)", "random(5)"),
    (
      "godwit.bucket($source.metadata, \"extendedName\")",
      "godwit.bucket($source.metadata, \"extendedName\")"
    ),
    ("cast($source.day, 'NSNumber') + 3600", "CAST($source.day, \"NSNumber\") + 3600"),
    (
      "TERNARY($source.a > 1 && NOT $source.b == nil, 1, 'x')",
      "TERNARY($source.a > 1 AND (NOT $source.b == NULL), 1, \"x\")"
    ),
    (
      "SUBQUERY($source.items, $x, $x.price > 3).@count",
      "SUBQUERY($source.items, $x, $x.price > 3).@count"
    ),
    (
      "FUNCTION($manager, 'destinationInstancesForEntityMappingNamed:sourceInstances:', 'A', $source.b)",
      "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", \"A\", "
        + "$source.b)"
    ),
    ("$x := 1 + 2", "($x := 1 + 2)"),
  ])
  func `is printed so that it reads back`(written: String, printed: String) throws {
    let value = try ValueExpression(parsing: written)
    #expect(value.description == printed)
    #expect(try ValueExpression(parsing: value.description) == value)
  }

  @Test(arguments: [
    ("&source.amount", 0, ExpressionError.Problem.ampersand(name: "source")),
    ("$source.amount +", 16, .unexpected(found: "the end", expected: "a value")),
    ("$source.amount 5", 15, .unexpected(found: "5", expected: "the end or an operator")),
    ("\"open", 0, .openString),
    ("\"\\q\"", 1, .badEscape("\\q")),
    ("upercase($source.a)", 0, .unknownFunction("upercase", suggestion: "uppercase")),
    ("concat(1, 2)", 0, .unknownFunction("concat", suggestion: nil)),
    ("now(1)", 0, .wrongArgumentCount(function: "now", found: 1, expected: "0")),
    ("$source.a == 1", 0, .notAValue),
    ("12abc", 0, .badNumber("12a")),
    ("'it''s'", 4, .unexpected(found: "a text", expected: "the end or an operator")),
    ("size", 0, .unexpected(found: "the reserved word size", expected: "a value (or #size)")),
    ("1 § 2", 2, .unknownCharacter("§")),
    ("add:to:", 3, .unknownCharacter(":")),
    ("a.b:c: + 1", 3, .unknownCharacter(":")),
  ])
  func `says where and why it cannot be read`(
    text: String, offset: Int, problem: ExpressionError.Problem
  ) {
    #expect(throws: ExpressionError(problem, at: offset, in: text)) {
      try ValueExpression(parsing: text)
    }
  }

  @Test func `takes a keyword for a key after a point`() throws {
    #expect(try ValueExpression(parsing: "$source.size").description == "$source.#size")
  }

  @Test func `beyond the greatest integer is real`() throws {
    let value = try ValueExpression(parsing: "9223372036854775808")
    #expect(value == .constant(.real(9_223_372_036_854_775_808)))
  }

  @Test(arguments: ["(", "-", "{", "NOT ", "1[", "abs(", "TERNARY(", "$x:="])
  func `of any depth ends in an error, not in a crash`(opening: String) {
    #expect(throws: ExpressionError.self) {
      try ValueExpression(parsing: String(repeating: opening, count: 9_000 / opening.count))
    }
  }

  @Test(arguments: [
    "1" + String(repeating: "+1", count: 20_000),
    String(repeating: "1", count: ExpressionLimits.length + 1),
  ])
  func `of any length ends in an error, not in a crash`(text: String) {
    #expect(throws: ExpressionError.self) { try ValueExpression(parsing: text) }
  }

  @Test(arguments: 0..<400)
  func `drawn at random reads back as the same tree`(seed: UInt64) throws {
    var draw = ExpressionDraw(seed: seed)
    let value = draw.value(depth: 5)
    #expect(try ValueExpression(parsing: value.description) == value, "\(value)")
    let predicate = draw.predicate(depth: 4)
    #expect(try PredicateExpression(parsing: predicate.description) == predicate, "\(predicate)")
  }
}

@Suite struct `A predicate` {
  @Test(arguments: [
    ("image != nil", "image != NULL"),
    ("messageID < 10000", "messageID < 10000"),
    ("topicList.title MATCHES '[a-hA-H].*'", "topicList.title MATCHES \"[a-hA-H].*\""),
    ("a = 1 or b = 2 and c = 3", "a == 1 OR (b == 2 AND c == 3)"),
    ("(a = 1 or b = 2) and c = 3", "(a == 1 OR b == 2) AND c == 3"),
    ("name beginswith[cd] 'A'", "name BEGINSWITH[cd] \"A\""),
    ("SOME items.price > 3", "ANY items.price > 3"),
    ("NONE items.price > 3", "NOT ANY items.price > 3"),
    ("(a + 1) * 2 > 3", "(a + 1) * 2 > 3"),  // a parenthesis that holds a value
    ("((((a)))) == 1", "a == 1"),
    ("!(a == 1)", "NOT a == 1"),
    ("age BETWEEN {1, 10}", "age BETWEEN {1, 10}"),
    ("TRUEPREDICATE", "TRUEPREDICATE"),
    ("a => 1 && b =< 2 || c <> 3", "(a >= 1 AND b <= 2) OR c != 3"),
  ])
  func `is printed so that it reads back`(written: String, printed: String) throws {
    let predicate = try PredicateExpression(parsing: written)
    #expect(predicate.description == printed)
    #expect(try PredicateExpression(parsing: predicate.description) == predicate)
  }

  @Test(arguments: ["a", "a ==", "ANY a", "a LIKE[x] b", "a == 1 == 2", "NOT", "a AND b"])
  func `that is none is refused`(text: String) {
    #expect(throws: ExpressionError.self) { try PredicateExpression(parsing: text) }
  }
}
