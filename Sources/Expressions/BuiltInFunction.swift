/// A function that expressions may call by name.
///
/// Source: `core-data-migration.md` §4.4. Names with the prefix `godwit.` have no counterpart of
/// Apple's.
package struct BuiltInFunction: Sendable, Hashable {
  /// The selector, as an archived expression has it: `sum:`, `add:to:`.
  package let name: String
  /// Least and most arguments.
  package let arguments: ClosedRange<Int>
  /// `+`, `-` … where there is one.
  package let infix: String?

  init(_ name: String, _ arguments: ClosedRange<Int>, infix: String? = nil) {
    self.name = name
    self.arguments = arguments
    self.infix = infix
  }

  /// As people write it: `sum` for `sum:`; with several arguments the whole selector.
  package var shortName: String {
    name.hasSuffix(":") && name.dropLast().allSatisfy { $0 != ":" }
      ? String(name.dropLast()) : name
  }

  /// Every function that can be called by name, operators included.
  package static let all: [BuiltInFunction] =
    ([
      "sum:", "count:", "min:", "max:", "average:", "median:", "mode:", "stddev:",
    ].map { BuiltInFunction($0, 1...ExpressionLimits.length) })
    + ([
      "sqrt:", "log:", "ln:", "exp:", "floor:", "ceiling:", "abs:", "trunc:", "random:",
      "uppercase:", "lowercase:", "length:", "canonical:", "onesComplement:", "noindex:",
    ].map { BuiltInFunction($0, 1...1) })
    + [
      BuiltInFunction("now", 0...0), BuiltInFunction("random", 0...0),
      BuiltInFunction(Infix.add, 2...2, infix: "+"),
      BuiltInFunction(Infix.subtract, 2...2, infix: "-"),
      BuiltInFunction(Infix.multiply, 2...2, infix: "*"),
      BuiltInFunction(Infix.divide, 2...2, infix: "/"),
      BuiltInFunction(Infix.power, 2...2, infix: "**"),
      BuiltInFunction("modulus:by:", 2...2), BuiltInFunction("bitwiseAnd:with:", 2...2),
      BuiltInFunction("bitwiseOr:with:", 2...2), BuiltInFunction("bitwiseXor:with:", 2...2),
      BuiltInFunction("leftshift:by:", 2...2), BuiltInFunction("rightshift:by:", 2...2),
      BuiltInFunction("distanceToLocation:fromLocation:", 2...2),
    ] + converters

  /// Selectors of the operators, in the order of their arguments: left, right.
  package enum Infix {
    /// `a + b`.
    package static let add = "add:to:"
    /// `a - b`.
    package static let subtract = "from:subtract:"
    /// `a * b`.
    package static let multiply = "multiply:by:"
    /// `a / b`.
    package static let divide = "divide:by:"
    /// `a ** b`.
    package static let power = "raise:toPower:"
  }

  /// Our own: a property in and out of a property-list dictionary in a binary attribute, and the
  /// changes of type that otherwise need a policy.
  static let converters: [BuiltInFunction] = [
    BuiltInFunction("godwit.bucket", 2...2),  // data, key
    BuiltInFunction("godwit.bucketSetting", 3...3),  // data, key, value
    // A number, UUID or URI; or a date and a format; or data and an encoding.
    BuiltInFunction("godwit.string", 1...2),
    BuiltInFunction("godwit.integer", 1...1),  // text
    BuiltInFunction("godwit.double", 1...1),  // text
    BuiltInFunction("godwit.decimal", 1...1),  // text
    BuiltInFunction("godwit.date", 1...2),  // seconds since 2001; or text, format
    BuiltInFunction("godwit.dateString", 2...2),  // date, format
    BuiltInFunction("godwit.seconds", 1...1),  // date → seconds since 2001
    BuiltInFunction("godwit.timestamp", 1...1),  // the same
    BuiltInFunction("godwit.uuid", 1...1),  // text
    BuiltInFunction("godwit.url", 1...1),  // text
    BuiltInFunction("godwit.data", 2...2),  // text, encoding
    BuiltInFunction("godwit.text", 2...2),  // data, encoding
  ]

  private static let byName: [String: BuiltInFunction] = {
    var result: [String: BuiltInFunction] = [:]
    for function in all { result[function.name.lowercased()] = function }
    // A short name never hides a full one: `random` takes nothing, `random:` one argument.
    for function in all where result[function.shortName.lowercased()] == nil {
      result[function.shortName.lowercased()] = function
    }
    return result
  }()

  /// The function of a name in either spelling, without regard to case.
  package static func named(_ name: String, argumentCount: Int) -> BuiltInFunction? {
    let key = name.lowercased()
    if let found = byName[key], found.arguments.contains(argumentCount) { return found }
    return byName[key + ":"] ?? byName[key]
  }

  static func suggestion(for name: String) -> String? {
    Spelling.closest(to: name, among: all.map(\.shortName))
  }
}

/// "Did you mean …": the nearest of the known names.
package enum Spelling {
  /// The name with the fewest edits, at most a third of its length; none when all are farther.
  package static func closest(to word: String, among names: [String]) -> String? {
    let short = word.lowercased().prefix(200)
    var best: (name: String, distance: Int)?
    for name in names {
      let limit = min(max(2, name.count / 3), 12)
      guard abs(name.count - short.count) <= limit else { continue }
      let found = distance(Array(short.utf8), Array(name.lowercased().utf8))
      if found <= limit, found < best?.distance ?? .max { best = (name, found) }
    }
    return best?.name
  }

  /// Levenshtein's distance in bytes.
  static func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
    var row = Array(0...b.count)
    for (i, x) in a.enumerated() {
      var diagonal = row[0]
      row[0] = i + 1
      for (j, y) in b.enumerated() {
        let cost = min(row[j] + 1, row[j + 1] + 1, diagonal + (x == y ? 0 : 1))
        diagonal = row[j + 1]
        row[j + 1] = cost
      }
    }
    return row[b.count]
  }
}
