import GodwitObjectModel
import GodwitSQLite

/// What the model says about one value of an attribute, with Core Data's validation codes.
///
/// Source: `core-data-sqlite-format.md` §5, `core-data-migration.md` §5.3.
enum StageValueRules {
  /// Nil when the value may stand in the attribute's column. NULL always may, for a while.
  static func problem(
    _ value: SQLiteValue, _ attribute: AttributeDescription
  ) -> (code: Int, message: String)? {
    if attribute.derivationExpression != nil {
      return (1550, "the attribute is derived and cannot be set.")
    }
    if value.isNull { return nil }
    guard fits(value, attribute.type) else {
      return (1550, "the value is not one of type \(attribute.type.xmlName).")
    }
    return attribute.validation.lazy.compactMap { broken($0, value, attribute.type) }.first
  }

  private static func fits(_ value: SQLiteValue, _ type: AttributeType) -> Bool {
    switch type {
    case .integer16: value.integer.map { Int16(exactly: $0) != nil } ?? false
    case .integer32: value.integer.map { Int32(exactly: $0) != nil } ?? false
    case .integer64: value.integer != nil
    case .boolean: value.integer == 0 || value.integer == 1
    case .double, .float, .decimal, .date: value.number?.isFinite ?? false
    case .string, .uri: value.text != nil
    case .uuid: value.blob?.count == 16
    case .binary, .transformable: value.blob != nil
    case .undefined: true
    case .objectID, .composite: false
    }
  }

  private static func broken(
    _ rule: ValidationRule, _ value: SQLiteValue, _ type: AttributeType
  ) -> (code: Int, message: String)? {
    let isDate = type == .date
    let tooLarge = (isDate ? 1630 : 1610, "the value is above the model's maximum.")
    let tooSmall = (isDate ? 1640 : 1620, "the value is below the model's minimum.")
    let number = value.number ?? .nan
    let length = value.text?.utf16.count
    switch rule {
    case .minimum(let bound): return number < bound ? tooSmall : nil
    case .above(let bound): return number <= bound ? tooSmall : nil
    case .maximum(let bound): return number > bound ? tooLarge : nil
    case .below(let bound): return number >= bound ? tooLarge : nil
    case .minimumLength(let bound):
      return length.map { $0 < bound } == true
        ? (1670, "the text is shorter than \(bound).") : nil
    case .maximumLength(let bound):
      return length.map { $0 > bound } == true ? (1660, "the text is longer than \(bound).") : nil
    case .matches, .other: return nil
    }
  }
}
