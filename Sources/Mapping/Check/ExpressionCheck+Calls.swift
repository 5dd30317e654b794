import GodwitExpressions
import GodwitObjectModel

extension ExpressionCheck {
  /// Source: `core-data-migration.md` §4.4.
  mutating func call(_ name: String, _ arguments: [ValueExpression]) -> ExpressionType {
    let first = findings.count
    let types = arguments.map { type(of: $0) }
    let result = result(of: name, types)
    tryOut(arguments, types, unlessFoundSince: first) { .call(name, $0) }
    return result
  }

  private mutating func result(of name: String, _ types: [ExpressionType]) -> ExpressionType {
    if name != "noindex:", types.contains(where: \.isComposite) {
      find(.typeMismatch, .error, "\(name) takes no composite. Give it one of its elements")
      return .unknown
    }
    switch name {
    case "now", "godwit.date": return .value(.date)
    case "uppercase:", "lowercase:", "canonical:", "godwit.string", "godwit.dateString",
      "godwit.text":
      return .value(.string)
    case "godwit.uuid": return .value(.uuid)
    case "godwit.url": return .value(.url)
    case "godwit.data": return .value(.data)
    // A bucket stays what it was: data, or a text.
    case "godwit.bucketSetting":
      if case .value(let kind)? = types.first, kind == .string || kind == .unknown {
        return .value(kind)
      }
      return .value(.data)
    case "godwit.bucket": return .unknown
    case "noindex:": return types.first ?? .unknown
    case "mode:": return .collection(of: .value(.number))
    case "min:", "max:":
      if case .collection(let member)? = types.first { return member }
      return types.first ?? .unknown
    default: break
    }
    // Everything else is arithmetic.
    let operators = [
      BuiltInFunction.Infix.add, BuiltInFunction.Infix.subtract, BuiltInFunction.Infix.multiply,
      BuiltInFunction.Infix.divide, BuiltInFunction.Infix.power, "modulus:by:",
    ]
    if operators.contains(name) {
      let known = findings.count
      for type in types { ofEach(type.cases) { $0.checkOperand($1) } }
      // What is no number has none for its result either.
      if findings.count > known { return .unknown }
    }
    return .value(.number)
  }

  private mutating func checkOperand(_ operand: ExpressionType) {
    switch operand {
    case .object, .made, .someDestinationObjects:
      find(.typeMismatch, .error, "an object does not support arithmetic")
    case .value(let kind) where ![.number, .unknown, .transformed].contains(kind):
      find(
        .typeMismatch, .error,
        "\(kind.description) does not support arithmetic"
          + (kind == .date
            ? ". Use CAST(…, \"NSNumber\") and CAST(…, \"NSDate\")"
            : kind == .string ? ". Texts are joined by stringByAppendingString:" : ""))
    case .value, .collection, .either, .helper, .null, .unknown: break
    }
  }
}
