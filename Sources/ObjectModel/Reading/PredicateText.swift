import GodwitKeyedArchive

/// The text of an archived predicate, in the spelling of predicate format strings.
///
/// For people and for settings that are never evaluated here. Source: `core-data-models.md` §4
/// (classes and keys) and the public raw values of `NSComparisonPredicate.Operator`.
enum PredicateText {
  /// Expressions inside expressions; also what stops an archive whose predicate holds itself.
  static let depthLimit = 24

  private static let operators: [Int64: String] = [
    0: "<", 1: "<=", 2: ">", 3: ">=", 4: "==", 5: "!=", 6: "MATCHES", 7: "LIKE", 8: "BEGINSWITH",
    9: "ENDSWITH", 10: "IN", 99: "CONTAINS", 100: "BETWEEN",
  ]

  static func text(of value: ArchivedValue) -> String {
    // Wide and shallow archives are bounded too: shared parts could be printed again and again.
    var budget = 4_096
    return predicate(value, depth: 0, budget: &budget)
  }

  private static func predicate(_ value: ArchivedValue, depth: Int, budget: inout Int) -> String {
    budget -= 1
    guard depth < depthLimit, budget > 0, let predicate = value.object else { return "…" }
    switch predicate.className {
    case "NSCompoundPredicate":
      var parts: [String] = []
      for part in predicate.elements("NSSubpredicates") {
        parts.append(self.predicate(part, depth: depth + 1, budget: &budget))
      }
      switch predicate.integer("NSCompoundPredicateType") ?? 0 {
      case 0: return "NOT (\(parts.joined(separator: ", ")))"
      case 1: return parts.isEmpty ? "TRUEPREDICATE" : joined(parts, by: " AND ")
      default: return parts.isEmpty ? "FALSEPREDICATE" : joined(parts, by: " OR ")
      }
    case "NSComparisonPredicate":
      let comparison = predicate.object("NSPredicateOperator")
      let type = comparison?.integer("NSOperatorType") ?? -1
      let flags = comparison?.integer("NSOptions") ?? comparison?.integer("NSFlags") ?? 0
      let quantifier = ["", "ALL ", "ANY "]
      let modifier = Int(clamping: comparison?.integer("NSModifier") ?? 0)
      let left = side(predicate["NSLeftExpression"], depth: depth, budget: &budget)
      let right = side(predicate["NSRightExpression"], depth: depth, budget: &budget)
      let suffix = (flags & 1 != 0 ? "c" : "") + (flags & 2 != 0 ? "d" : "")
      return (quantifier.indices.contains(modifier) ? quantifier[modifier] : "")
        + "\(left) \(operators[type] ?? "?")\(type > 3 && !suffix.isEmpty ? "[\(suffix)]" : "")"
        + " \(right)"
    case "NSTruePredicate": return "TRUEPREDICATE"
    case "NSFalsePredicate": return "FALSEPREDICATE"
    default: return predicate.className
    }
  }

  private static func joined(_ parts: [String], by word: String) -> String {
    parts.count == 1 ? parts[0] : parts.map { "(\($0))" }.joined(separator: word)
  }

  private static func side(_ value: ArchivedValue?, depth: Int, budget: inout Int) -> String {
    value.map { expression($0, depth: depth + 1, budget: &budget) } ?? "nil"
  }

  private static func expression(_ value: ArchivedValue, depth: Int, budget: inout Int) -> String {
    budget -= 1
    guard depth < depthLimit, budget > 0 else { return "…" }
    guard let expression = value.object, value.string == nil, value.number == nil else {
      return constant(value)
    }
    switch expression.className {
    case "NSSelfExpression": return "SELF"
    case "NSConstantValueExpression":
      return expression["NSConstantValue"].map(constant) ?? "nil"
    case "NSVariableExpression": return "$" + (expression.string("NSVariable") ?? "")
    case "NSKeyPathSpecifierExpression": return expression.string("NSKeyPath") ?? ""
    case "NSKeyPathExpression":
      let path = list(expression.elements("NSArguments"), depth: depth, budget: &budget)
        .joined(separator: ".")
      guard let operand = expression["NSOperand"],
        operand.object?.className != "NSSelfExpression"
      else { return path }
      return self.expression(operand, depth: depth + 1, budget: &budget) + "." + path
    case "NSFunctionExpression":
      let arguments = list(expression.elements("NSArguments"), depth: depth, budget: &budget)
      return "\(expression.string("NSSelectorName") ?? "")(\(arguments.joined(separator: ", ")))"
    case "NSAggregateExpression":
      let parts = list(expression.elements("NSCollection"), depth: depth, budget: &budget)
      return "{\(parts.joined(separator: ", "))}"
    default: return constant(value)
    }
  }

  private static func list(
    _ values: [ArchivedValue], depth: Int, budget: inout Int
  ) -> [String] {
    var parts: [String] = []
    for value in values {
      guard budget > 0 else { break }
      parts.append(expression(value, depth: depth + 1, budget: &budget))
    }
    return parts
  }

  private static func constant(_ value: ArchivedValue) -> String {
    if let text = value.string { return quoted(text) }
    if let seconds = value.date { return "CAST(\(seconds), \"NSDate\")" }
    switch value.number {
    case .integer(let number)?: return "\(number)"
    case .some(let number): return "\(number.double)"
    case nil: return value.object?.className ?? "nil"
    }
  }

  private static func quoted(_ text: String) -> String {
    var result = "\""
    for character in text.unicodeScalars {
      if character == "\"" || character == "\\" { result.unicodeScalars.append("\\") }
      result.unicodeScalars.append(character)
    }
    return result + "\""
  }
}
