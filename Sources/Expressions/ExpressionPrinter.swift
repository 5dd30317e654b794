/// Writes expressions so that reading them gives the same tree.
///
/// Recursion is bounded: no tree is deeper than ``ExpressionLimits/depth``.
package enum ExpressionPrinter {
  /// How tightly a piece of text holds together; a looser one inside a tighter one needs
  /// parentheses.
  private enum Binding: Int, Comparable {
    case sum, product, power, sign, postfix

    static func < (a: Binding, b: Binding) -> Bool { a.rawValue < b.rawValue }
  }

  private static let operators: [String: (symbol: String, binding: Binding, right: Binding)] = [
    BuiltInFunction.Infix.add: ("+", .sum, .product),
    BuiltInFunction.Infix.subtract: ("-", .sum, .product),
    BuiltInFunction.Infix.multiply: ("*", .product, .power),
    BuiltInFunction.Infix.divide: ("/", .product, .power),
    BuiltInFunction.Infix.power: ("**", .power, .sign),
  ]

  static func text(_ value: ValueExpression) -> String { write(value).text }

  private static func text(_ value: ValueExpression, inside binding: Binding) -> String {
    let written = write(value)
    return written.binding < binding ? "(\(written.text))" : written.text
  }

  private static func list(_ values: [ValueExpression]) -> String {
    values.map(text).joined(separator: ", ")
  }

  private static func write(_ value: ValueExpression) -> (text: String, binding: Binding) {
    switch value {
    case .constant(let constant): return write(constant)
    case .variable(let name): return ("$" + name, .postfix)
    case .evaluatedObject: return ("SELF", .postfix)
    case .keyPath(let base, let keys):
      let path = keys.map(text).joined(separator: ".")
      if case .evaluatedObject = base, startsBare(keys) { return (path, .postfix) }
      if case .keyPath = base { return ("(\(text(base))).\(path)", .postfix) }
      return (text(base, inside: .postfix) + "." + path, .postfix)
    case .function(let receiver, let selector, let arguments):
      return ("FUNCTION(\(list([receiver, .constant(.string(selector))] + arguments)))", .postfix)
    case .call(let name, let arguments): return writeCall(name, arguments)
    case .aggregate(let members): return ("{\(list(members))}", .postfix)
    case .cast(let operand, let type): return ("CAST(\(text(operand)), \(quoted(type)))", .postfix)
    case .ternary(let test, let then, let otherwise):
      return ("TERNARY(\(text(test)), \(text(then)), \(text(otherwise)))", .postfix)
    case .subquery(let collection, let variable, let predicate):
      return ("SUBQUERY(\(text(collection)), $\(variable), \(text(predicate)))", .postfix)
    case .fetch(let request, let context, let countOnly):
      return ("FETCH(\(text(request)), \(text(context)), \(countOnly ? "YES" : "NO"))", .postfix)
    case .element(let collection, let place):
      return ("\(text(collection, inside: .postfix))[\(text(place))]", .postfix)
    case .assignment(let variable, let value):
      // As loose as can be: `$x := 1 + 2` takes everything behind it.
      return ("($\(variable) := \(text(value)))", .postfix)
    }
  }

  /// `godwit.x` could be taken for one of our functions.
  private static func startsBare(_ keys: [KeyPathElement]) -> Bool {
    if case .key("godwit") = keys.first { return false }
    return true
  }

  private static func write(_ constant: Constant) -> (String, Binding) {
    switch constant {
    case .null: ("NULL", .postfix)
    case .boolean(let boolean): (boolean ? "YES" : "NO", .postfix)
    case .integer(let integer): (String(integer), integer < 0 ? .sign : .postfix)
    case .real(let real): (real.description, real.sign == .minus ? .sign : .postfix)
    case .string(let string): (quoted(string), .postfix)
    }
  }

  private static func writeCall(
    _ name: String, _ arguments: [ValueExpression]
  ) -> (String, Binding) {
    if let found = operators[name], arguments.count == 2 {
      let left = text(arguments[0], inside: found.binding)
      return ("\(left) \(found.symbol) \(text(arguments[1], inside: found.right))", found.binding)
    }
    let function = BuiltInFunction.named(name, argumentCount: arguments.count)
    let short = function?.shortName ?? name
    let isSafe = BuiltInFunction.named(short, argumentCount: arguments.count)?.name == name
    return ("\(isSafe ? short : name)(\(list(arguments)))", .postfix)
  }

  private static func text(_ key: KeyPathElement) -> String {
    switch key {
    case .key(let key): Keywords.isPlainKey(key) ? key : "#" + key
    case .collectionOperator(let name): "@" + name
    }
  }

  private static func text(_ place: ElementPlace) -> String {
    switch place {
    case .first: "FIRST"
    case .last: "LAST"
    case .size: "SIZE"
    case .index(let index): text(index)
    }
  }

  package static func quoted(_ string: String) -> String {
    var result = "\""
    for scalar in string.unicodeScalars {
      switch scalar {
      case "\"", "\\": result += "\\" + String(scalar)
      case "\n": result += "\\n"
      case "\t": result += "\\t"
      case "\r": result += "\\r"
      case _
      where scalar.value < 0x20 || scalar.value == 0x7F || scalar.properties.isJoinControl
        || scalar.properties.generalCategory == .nonspacingMark
        || scalar.properties.generalCategory == .spacingMark
        || scalar.properties.generalCategory == .enclosingMark:
        // Marks would join the quotation mark or the letter before them.
        result += escaped(scalar)
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }

  private static func escaped(_ scalar: Unicode.Scalar) -> String {
    String(scalar).utf16.map { unit in
      let digits = String(unit, radix: 16)
      return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }.joined()
  }

  // MARK: - Predicates

  static func text(_ predicate: PredicateExpression) -> String {
    switch predicate {
    case .constant(let value): return value ? "TRUEPREDICATE" : "FALSEPREDICATE"
    case .comparison(let comparison): return text(comparison)
    case .and(let parts): return parts.map(part).joined(separator: " AND ")
    case .or(let parts): return parts.map(part).joined(separator: " OR ")
    // Parentheses would nest deeper than what was read, and could not be read any more.
    case .not(let inner):
      if case .not = inner { return "NOT " + text(inner) }
      return "NOT " + part(inner)
    }
  }

  /// Everything but a comparison stands in parentheses inside another predicate.
  private static func part(_ predicate: PredicateExpression) -> String {
    switch predicate {
    case .comparison, .constant: text(predicate)
    case .and, .or, .not: "(\(text(predicate)))"
    }
  }

  private static func text(_ comparison: Comparison) -> String {
    let modifier = comparison.modifier == .direct ? "" : comparison.modifier.rawValue + " "
    var letters = ""
    if comparison.options.contains(.caseInsensitive) { letters += "c" }
    if comparison.options.contains(.diacriticInsensitive) { letters += "d" }
    if comparison.options.contains(.normalized) { letters += "n" }
    if comparison.options.contains(.localeSensitive) { letters += "l" }
    let options = letters.isEmpty ? "" : "[\(letters)]"
    return modifier + text(comparison.left) + " \(comparison.operator.rawValue)\(options) "
      + text(comparison.right)
  }
}

extension ValueExpression: CustomStringConvertible {
  /// Core Data's syntax; `init(parsing:)` reads it back.
  public var description: String { ExpressionPrinter.text(self) }
}

extension PredicateExpression: CustomStringConvertible {
  /// Core Data's syntax; `init(parsing:)` reads it back.
  public var description: String { ExpressionPrinter.text(self) }
}
