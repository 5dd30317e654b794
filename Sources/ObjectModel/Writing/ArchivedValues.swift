import Foundation
import GodwitKeyedArchive

/// Default values, expressions and predicates as archives hold them.
extension ArchivedModelWriter {
  mutating func defaultValue(_ attribute: AttributeDescription) -> KeyedArchiveWriter.Reference {
    guard let value = attribute.defaultValue else { return part(.defaultValue, of: attribute) }
    switch (attribute.type, value) {
    case (.boolean, .integer(let number)): return archive.value(.boolean(number != 0))
    case (.date, .integer(let number)): return date(Double(number))
    case (.date, .real(let seconds)): return date(seconds)
    case (.decimal, .integer(let number)): return decimal("\(number)")
    case (.decimal, .real(let number)): return decimal("\(number)")
    case (.double, .integer(let number)), (.float, .integer(let number)):
      return archive.value(.real(Double(number)))
    case (.uuid, .blob(let bytes)):
      return archive.object("NSUUID", [("NS.uuidbytes", .data(bytes))])
    case (.uri, .text(let text)):
      return archive.object(
        "NSURL",
        [
          ("NS.base", KeyedArchiveWriter.Reference.null.uid),
          ("NS.relative", archive.string(text).uid),
        ])
    case (_, .integer(let number)): return archive.value(.integer(number))
    case (_, .real(let number)): return archive.value(.real(number))
    case (_, .text(let text)): return archive.string(text)
    case (_, .blob(let bytes)): return archive.value(.data(bytes))
    }
  }

  /// As it was read.
  mutating func part(
    _ part: ArchivedPart, of attribute: AttributeDescription
  ) -> KeyedArchiveWriter.Reference {
    attribute.archived[part].flatMap { try? KeyedArchive(bytes: $0) }.map { archive.copy($0) }
      ?? .null
  }

  mutating func date(_ seconds: Double) -> KeyedArchiveWriter.Reference {
    archive.object("NSDate", [("NS.time", .real(seconds))])
  }

  /// A decimal from the shortest text of a number: sign, digits, exponent.
  private mutating func decimal(_ text: String) -> KeyedArchiveWriter.Reference {
    let isNegative = text.hasPrefix("-")
    let parts = text.drop { $0 == "-" }.split(separator: "e", maxSplits: 1)
    var exponent = parts.count > 1 ? Int(parts[1]) ?? 0 : 0
    let number = (parts.first ?? "0").split(separator: ".", maxSplits: 1)
    let fraction = number.count > 1 && number[1] != "0" ? number[1] : ""
    exponent -= fraction.count
    guard var mantissa = UInt128(String(number.first ?? "0") + fraction),
      (-128...127).contains(exponent)
    else {
      // Infinite, or outside of what a decimal holds; a plain number reads as well.
      return archive.value(.real(Double(text) ?? 0))
    }
    var bytes: [UInt8] = []
    for _ in 0..<16 {
      bytes.append(UInt8(truncatingIfNeeded: mantissa))
      mantissa >>= 8
    }
    let words = 8 - bytes.reversed().prefix { $0 == 0 }.count / 2
    return archive.object(
      "NSDecimalNumberPlaceholder",
      [
        ("NS.mantissa.bo", .integer(1)), ("NS.compact", .boolean(true)),
        ("NS.length", .integer(Int64(words))), ("NS.mantissa", .data(bytes)),
        ("NS.negative", .boolean(isNegative)), ("NS.exponent", .integer(Int64(exponent))),
      ])
  }

  // MARK: Expressions

  private mutating func selfExpression() -> PropertyList {
    archive.object("NSSelfExpression", [("NSExpressionType", .integer(1))]).uid
  }

  mutating func constant(_ value: KeyedArchiveWriter.Reference) -> KeyedArchiveWriter.Reference {
    archive.object(
      "NSConstantValueExpression",
      [("NSConstantValue", value.uid), ("NSExpressionType", .integer(0))])
  }

  /// A key path below `SELF`, or below a variable. Source: archives of a store with fetched
  /// properties and derived attributes (`core-data-models.md` §4).
  mutating func keyPath(_ path: String, variable: String? = nil) -> KeyedArchiveWriter.Reference {
    let specifier = archive.object(
      "NSKeyPathSpecifierExpression",
      [("NSKeyPath", archive.string(path).uid), ("NSExpressionType", .integer(10))])
    let operand =
      variable.map { name in
        archive.object(
          "NSVariableExpression",
          [("NSVariable", archive.string(name).uid), ("NSExpressionType", .integer(2))]
        ).uid
      } ?? selfExpression()
    let isPlainKey = variable == nil && !path.unicodeScalars.contains(".")
    return archive.object(
      "NSKeyPathExpression",
      [
        ("NSOperand", operand),
        (
          "NSSelectorName",
          archive.string(isPlainKey ? "valueForKey:" : "valueForKeyPath:").uid
        ),
        ("NSExpressionType", .integer(isPlainKey ? 3 : 4)),
        (
          "NSArguments", archive.collection([specifier], className: "NSMutableArray").uid
        ),
      ])
  }

  /// A derivation expression from its hashed text: a function over key paths, or a key path.
  mutating func derivation(_ text: String) -> KeyedArchiveWriter.Reference {
    guard text.hasSuffix(")"), let open = text.firstIndex(of: "("), open != text.startIndex,
      case let inside = text[text.index(after: open)...].dropLast(),
      !inside.contains("("), !inside.contains(")")
    else { return keyPath(text) }
    // The hashed text joins arguments by exactly this.
    let arguments = inside.isEmpty ? [] : String(inside).components(separatedBy: ", ")
    let paths = arguments.map { keyPath($0) }
    let target = archive.object(
      "NSConstantValueExpression",
      [
        ("NSConstantValueClassName", archive.string("_NSPredicateUtilities").uid),
        ("NSExpressionType", .integer(0)),
      ])
    return archive.object(
      "NSFunctionExpression",
      [
        ("NSOperand", target.uid),
        ("NSSelectorName", archive.string(String(text[..<open])).uid),
        ("NSExpressionType", .integer(4)),
        ("NSArguments", archive.collection(paths).uid),
      ])
  }

  // MARK: Predicates

  mutating func comparison(
    _ left: PropertyList, _ comparison: PredicateSyntax.Comparison, _ right: PropertyList,
    options: Int64 = 0, modifier: Int64 = 0
  ) -> KeyedArchiveWriter.Reference {
    let type = comparison.rawValue
    var fields: Fields = [("NSOperatorType", .integer(type)), ("NSModifier", .integer(modifier))]
    let className: String
    switch comparison {
    case .less, .lessOrEqual, .greater, .greaterOrEqual:
      className = "NSComparisonPredicateOperator"
      fields += [("NSVariant", .integer(type)), ("NSOptions", .integer(options))]
    case .equal, .notEqual:
      className = "NSEqualityPredicateOperator"
      fields += [
        ("NSNegate", .boolean(comparison == .notEqual)), ("NSOptions", .integer(options)),
      ]
    case .isIn, .contains:
      className = "NSInPredicateOperator"
      fields.append(("NSFlags", .integer(options)))
    case .matches:
      className = "NSMatchingPredicateOperator"
      fields.append(("NSFlags", .integer(options)))
    }
    let place = archive.object(className, fields)
    return archive.object(
      "NSComparisonPredicate",
      [
        ("NSLeftExpression", left), ("NSPredicateOperator", place.uid),
        ("NSRightExpression", right),
      ])
  }

  /// A rule of the editor with its warning, which is an error code of Foundation.
  /// Nil for a predicate of a form that is not known in archives.
  mutating func validation(
    _ rule: ValidationRule, isDate: Bool
  ) -> (predicate: KeyedArchiveWriter.Reference, warning: KeyedArchiveWriter.Reference)? {
    let predicate: KeyedArchiveWriter.Reference
    let code: Int64
    switch rule {
    case .minimum(let bound), .above(let bound):
      let isOpen = rule == .above(bound)
      predicate = bounded(isOpen ? .greater : .greaterOrEqual, bound, isDate: isDate)
      code = isDate ? 1640 : 1620
    case .maximum(let bound), .below(let bound):
      let isOpen = rule == .below(bound)
      predicate = bounded(isOpen ? .less : .lessOrEqual, bound, isDate: isDate)
      code = isDate ? 1630 : 1610
    case .minimumLength(let bound):
      predicate = lengthBounded(.greaterOrEqual, bound)
      code = 1670
    case .maximumLength(let bound):
      predicate = lengthBounded(.lessOrEqual, bound)
      code = 1660
    case .matches(let pattern):
      let right = constant(archive.string(pattern)).uid
      predicate = comparison(selfExpression(), .matches, right)
      code = 1680
    case .other(let text):
      predicate = self.predicate(text)
      guard predicate != .null else { return nil }
      code = 1550  // NSManagedObjectValidationError, the code for what has none of its own
    }
    return (predicate, archive.value(.integer(code)))
  }

  private mutating func bounded(
    _ type: PredicateSyntax.Comparison, _ bound: ValidationBound, isDate: Bool
  ) -> KeyedArchiveWriter.Reference {
    let number = bound.whole.map(PropertyList.integer) ?? .real(bound.real)
    let value = isDate ? date(bound.real) : archive.value(number)
    return comparison(selfExpression(), type, constant(value).uid)
  }

  private mutating func lengthBounded(
    _ type: PredicateSyntax.Comparison, _ bound: Int
  ) -> KeyedArchiveWriter.Reference {
    let value = constant(archive.value(.integer(Int64(bound)))).uid
    return comparison(keyPath("length").uid, type, value)
  }

  /// A predicate from its text; nil's place where the text has a form that no archive showed.
  mutating func predicate(_ text: String?) -> KeyedArchiveWriter.Reference {
    guard let text, let parsed = PredicateSyntax.parse(text) else { return .null }
    return predicate(parsed)
  }

  /// The parser bounds the depth.
  private mutating func predicate(_ parsed: PredicateSyntax) -> KeyedArchiveWriter.Reference {
    switch parsed {
    case .compound(let type, let parts):
      let inner = parts.map { predicate($0) }
      return archive.object(
        "NSCompoundPredicate",
        [
          ("NSCompoundPredicateType", .integer(type.rawValue)),
          ("NSSubpredicates", archive.collection(inner).uid),
        ])
    case .comparison(let left, let type, let right, let options, let modifier):
      let (left, right) = (expression(left).uid, expression(right).uid)
      return comparison(left, type, right, options: options, modifier: modifier)
    }
  }

  private mutating func expression(
    _ operand: PredicateSyntax.Operand
  ) -> KeyedArchiveWriter.Reference {
    switch operand {
    case .itself: return archive.object("NSSelfExpression", [("NSExpressionType", .integer(1))])
    case .keyPath(let path): return keyPath(path)
    case .variable(let name, let path?): return keyPath(path, variable: name)
    case .variable(let name, nil):
      return archive.object(
        "NSVariableExpression",
        [("NSVariable", archive.string(name).uid), ("NSExpressionType", .integer(2))])
    case .integer(let number): return constant(archive.value(.integer(number)))
    case .real(let number): return constant(archive.value(.real(number)))
    case .text(let text): return constant(archive.string(text))
    case .date(let seconds): return constant(date(seconds))
    case .nothing: return constant(.null)
    }
  }
}
