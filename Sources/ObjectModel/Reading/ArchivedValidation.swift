import GodwitKeyedArchive

/// The rules of the model editor's validation pane, from the predicates that are archived.
///
/// Each is a comparison on `SELF`, or on its `length`; several may be joined by AND.
/// Source: `core-data-models.md` §4, "Validation from the editor".
enum ArchivedValidation {
  static func append(_ value: ArchivedValue, to rules: inout [ValidationRule]) {
    // An explicit stack and a budget: an archive may nest its predicates in a circle.
    var waiting = [value]
    var budget = 1_024
    while let next = waiting.popLast(), budget > 0 {
      budget -= 1
      guard let predicate = next.object else { continue }
      if predicate.className == "NSCompoundPredicate",
        predicate.integer("NSCompoundPredicateType") == 1
      {
        waiting += predicate.elements("NSSubpredicates").reversed()
      } else {
        rules.append(rule(predicate) ?? .other(PredicateText.text(of: next)))
      }
    }
  }

  private static func rule(_ predicate: ArchivedObject) -> ValidationRule? {
    guard predicate.className == "NSComparisonPredicate",
      let left = predicate.object("NSLeftExpression"),
      let type = predicate.object("NSPredicateOperator")?.integer("NSOperatorType"),
      let constant = predicate.object("NSRightExpression")?["NSConstantValue"]
    else { return nil }
    if left.className == "NSSelfExpression" {
      if type == 6 { return constant.string.map(ValidationRule.matches) }
      guard let bound = bound(constant) else { return nil }
      switch type {
      case 0: return .below(bound)
      case 1: return .maximum(bound)
      case 2: return .above(bound)
      case 3: return .minimum(bound)
      default: return nil
      }
    }
    guard left.className == "NSKeyPathExpression",
      left.elements("NSArguments").first.flatMap(path) == "length",
      let bound = constant.integer.flatMap({ Int(exactly: $0) }),
      bound > Int.min, bound < Int.max
    else { return nil }
    switch type {
    case 0: return .maximumLength(bound - 1)
    case 1: return .maximumLength(bound)
    case 2: return .minimumLength(bound + 1)
    case 3: return .minimumLength(bound)
    default: return nil
    }
  }

  private static func bound(_ constant: ArchivedValue) -> ValidationBound? {
    if constant.date == nil, let integer = constant.integer { return ValidationBound(integer) }
    guard let real = constant.date ?? constant.real, real.isFinite else { return nil }
    return ValidationBound(real)
  }

  private static func path(_ value: ArchivedValue) -> String? {
    value.string ?? value.object?.string("NSKeyPath") ?? value.object?.string("NSConstantValue")
  }
}
