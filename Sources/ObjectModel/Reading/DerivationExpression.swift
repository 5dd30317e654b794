import GodwitDurableFiles
import GodwitKeyedArchive

/// The text of a derived attribute's expression: as the editor spells it and as it is hashed.
///
/// Only the count form is known to differ: `pages.@count` is hashed as `count:(pages)`.
/// Source: `core-data-models.md` §6.1.
enum DerivationExpression {
  private static let editorCount = ".@count"
  private static let hashedCount = "count:("

  static func hashed(fromEditor text: String) -> String {
    text.before(editorCount).map { hashedCount + $0 + ")" } ?? text
  }

  static func editor(fromHashed text: String) -> String {
    guard let path = text.after(hashedCount)?.before(")"), !path.unicodeScalars.contains("(") else {
      return text
    }
    return path + editorCount
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
