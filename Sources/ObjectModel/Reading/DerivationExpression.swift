import GodwitDurableFiles
import GodwitKeyedArchive

/// The text of a derived attribute's expression: as the editor spells it and as it is hashed.
///
/// Only the count form is known to differ: `pages.@count` is hashed as `count:(pages)`.
/// Source: `core-data-models.md` §6.1.
enum DerivationExpression {
  private static let editorCount = ".@count"
  private static let hashedCount = "count:("
  /// Stands before a predicate: what is filtered reads as a derivation that nobody here computes.
  static let filterMark = " where "

  static func hashed(fromEditor text: String) -> String {
    text.before(editorCount).map { hashedCount + $0 + ")" } ?? text
  }

  /// The derivation of an archived attribute, with the predicate that filters its objects.
  static func text(of attribute: ArchivedObject) -> String? {
    attribute["NSDerivationExpression"].flatMap { hashed(from: $0) }.map { text in
      attribute[ArchivedPart.filter.rawValue].map { text + filterMark + PredicateText.text(of: $0) }
        ?? text
    }
  }

  /// The text of an archived expression: functions over key paths.
  static func hashed(from value: ArchivedValue, depth: Int = 0) -> String? {
    guard depth < PredicateText.depthLimit else { return nil }
    guard let expression = value.object else { return value.string }
    let arguments = expression.elements("NSArguments")
      .compactMap { hashed(from: $0, depth: depth + 1) }
    switch expression.className {
    case "NSKeyPathSpecifierExpression": return expression.string("NSKeyPath") ?? ""
    case "NSKeyPathExpression": return arguments.joined(separator: ".")
    case "NSFunctionExpression":
      let name = expression.string("NSSelectorName") ?? ""
      return "\(name)(\(arguments.joined(separator: ", ")))"
    default: return expression.className
    }
  }
}
