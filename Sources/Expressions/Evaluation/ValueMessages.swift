import Foundation

/// The messages that texts, numbers, dates and the like understand, as the last part of a key
/// path or by `FUNCTION`. Source: `core-data-migration.md` §4.3.
///
/// Texts are counted and cut in UTF-16 units, as `NSString` does.
enum ValueMessages {
  /// - Returns: nil when the value does not understand the selector.
  static func perform(
    _ selector: String, on value: ExpressionValue, _ arguments: [ExpressionValue]
  ) throws(EvaluationProblem) -> ExpressionValue? {
    if selector == "description" { return description(of: value).map { .string($0) } }
    switch value {
    case .string(let text): return try StringMessages.perform(selector, text, arguments)
    case .boolean, .integer, .real, .decimal: return try number(selector, value)
    case .date(let seconds): return try date(selector, seconds, arguments)
    case .data(let bytes): return selector == "length" ? .integer(Int64(bytes.count)) : nil
    case .uuid(let uuid): return selector == "UUIDString" ? .string(uuid.text) : nil
    case .url(let text): return url(selector, text)
    default: return nil
    }
  }

  static func checkSize(_ text: String) throws(EvaluationProblem) {
    guard text.utf8.count <= EvaluationLimits.bytes else {
      throw .tooLarge(what: "bytes of text", limit: EvaluationLimits.bytes)
    }
  }

  static func description(of value: ExpressionValue) -> String? {
    switch value {
    case .string(let text), .url(let text): text
    case .boolean, .integer, .real, .decimal: Number.text(value)
    case .uuid(let uuid): uuid.text
    case .date(let seconds): DateTexts.description(of: seconds)
    default: nil
    }
  }

  private static func number(
    _ selector: String, _ value: ExpressionValue
  ) throws(EvaluationProblem) -> ExpressionValue? {
    switch selector {
    case "stringValue": return Number.text(value).map { .string($0) }
    case "doubleValue": return .real(Number.double(value))
    case "floatValue":
      let narrow = Double(Float(Number.double(value)))
      guard narrow.isFinite else { throw .overflow }
      return .real(narrow)
    case "boolValue": return .boolean(Number.order(value, .integer(0)) != 0)
    case "integerValue", "longLongValue", "intValue":
      guard let integer = Casting.truncated(value) else { throw .overflow }
      if selector == "intValue", Int32(exactly: integer) == nil { throw .overflow }
      return .integer(integer)
    default: return nil
    }
  }

  private static func date(
    _ selector: String, _ seconds: Double, _ arguments: [ExpressionValue]
  ) throws(EvaluationProblem) -> ExpressionValue? {
    switch selector {
    case "timeIntervalSinceReferenceDate": return .real(seconds)
    case "timeIntervalSince1970": return .real(seconds + DateTexts.referenceDate)
    case "dateByAddingTimeInterval:":
      guard let interval = arguments.first, Number.isNumber(interval) else {
        if arguments.first?.isNull == true { return .null }
        throw .wrongKind(found: arguments.first?.kind ?? "nothing", needed: "a number")
      }
      return .date(try Number.real(.add, seconds, Number.double(interval)))
    default: return nil
    }
  }

  private static func url(_ selector: String, _ text: String) -> ExpressionValue? {
    func value(_ text: String?) -> ExpressionValue { text.map { .string($0) } ?? .null }
    if selector == "absoluteString" { return .string(text) }
    // An object's ID is its URI here.
    if selector == "URIRepresentation" { return .url(text) }
    let parts = URLComponents(string: text)
    switch selector {
    case "path": return value(parts.flatMap(path))
    case "host": return value(parts?.host.map(host))
    case "scheme": return value(parts?.scheme)
    // Decoded, a `%26` in a value would be taken for what divides values.
    case "query": return value(parts?.percentEncodedQuery)
    case "fragment": return value(parts?.percentEncodedFragment)
    case "lastPathComponent": return value(parts.map { PathTexts.lastComponent($0.path) })
    case "pathExtension": return value(parts.map { PathTexts.pathExtension($0.path) })
    default: return nil
    }
  }

  /// As `NSURL` has it: an IPv6 address without its brackets.
  private static func host(_ host: String) -> String {
    host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
  }

  /// As `NSURL` has it: without the slash at its end, and nil of what is no hierarchy, such as `mailto:`.
  private static func path(_ parts: URLComponents) -> String? {
    let path = parts.path
    if parts.scheme != nil, parts.host == nil, !path.hasPrefix("/") { return nil }
    return path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
  }
}

/// What a text understands.
enum StringMessages {
  static func perform(
    _ selector: String, _ text: String, _ arguments: [ExpressionValue]
  ) throws(EvaluationProblem) -> ExpressionValue? {
    switch selector {
    case "length": return .integer(Int64(text.utf16.count))
    case "uppercaseString": return try made(text.uppercased())
    case "lowercaseString": return try made(text.lowercased())
    case "capitalizedString": return try made(text.capitalized)
    case "intValue": return .integer(max(-0x8000_0000, min(0x7FFF_FFFF, NumberScan(text).integer)))
    case "integerValue", "longLongValue": return .integer(NumberScan(text).integer)
    case "doubleValue", "floatValue":
      let found = NumberScan(text).real
      let result = selector == "doubleValue" ? found : Double(Float(found))
      guard result.isFinite else { throw .overflow }
      return .real(result)
    case "boolValue": return .boolean(NumberScan.boolean(text))
    case "lastPathComponent": return .string(PathTexts.lastComponent(text))
    case "pathExtension": return .string(PathTexts.pathExtension(text))
    case "stringByDeletingLastPathComponent": return .string(PathTexts.withoutLast(text))
    case "stringByDeletingPathExtension": return .string(PathTexts.withoutExtension(text))
    case "stringByTrimmingWhitespace":
      return .string(text.trimmingCharacters(in: .whitespacesAndNewlines))
    default: break
    }
    guard arguments.count >= 1 else { return nil }
    switch selector {
    case "stringByAppendingString:":
      guard let other = try string(arguments[0]) else { return .null }
      return try made(text + other)
    case "stringByReplacingOccurrencesOfString:withString:":
      guard arguments.count == 2, let old = try string(arguments[0]),
        let new = try string(arguments[1])
      else { return .null }
      return try replace(old, by: new, in: text)
    case "substringFromIndex:", "substringToIndex:":
      guard let place = try index(arguments[0], in: text) else { return .null }
      let part = selector == "substringFromIndex:" ? text.utf16[place...] : text.utf16[..<place]
      guard let result = String(part) else { throw .badIndex }
      return .string(result)
    case "componentsSeparatedByString:":
      guard let separator = try string(arguments[0]) else { return .null }
      return .array(
        TextSearch.split(text, by: separator).map { .string($0) })
    case "hasPrefix:":
      guard let other = try string(arguments[0]) else { return .boolean(false) }
      return .boolean(TextSearch.begins(text, with: other))
    case "hasSuffix:":
      guard let other = try string(arguments[0]) else { return .boolean(false) }
      return .boolean(TextSearch.ends(text, with: other))
    case "stringByAppendingPathComponent:":
      guard let other = try string(arguments[0]) else { return .null }
      return try made(PathTexts.appending(other, to: text))
    case "stringByAppendingPathExtension:":
      guard let other = try string(arguments[0]) else { return .null }
      let path = PathTexts.withoutTrailingSlashes(text)
      // There is no name that could have one.
      return path.isEmpty || path == "/" ? .null : try made(path + "." + other)
    default: return nil
    }
  }

  private static func made(_ text: String) throws(EvaluationProblem) -> ExpressionValue {
    try ValueMessages.checkSize(text)
    return .string(text)
  }

  /// A text argument, or nil for nil: then the whole message gives nil.
  private static func string(_ value: ExpressionValue) throws(EvaluationProblem) -> String? {
    switch value {
    case .string(let text): return text
    case .null: return nil
    default: throw .wrongKind(found: value.kind, needed: "a text")
    }
  }

  private static func index(
    _ value: ExpressionValue, in text: String
  ) throws(EvaluationProblem) -> String.UTF16View.Index? {
    if value.isNull { return nil }
    guard case .integer(let offset) = value else {
      throw .wrongKind(found: value.kind, needed: "a whole number")
    }
    guard offset >= 0, offset <= Int64(text.utf16.count) else { throw .badIndex }
    return text.utf16.index(text.utf16.startIndex, offsetBy: Int(offset))
  }

  private static func replace(
    _ old: String, by new: String, in text: String
  ) throws(EvaluationProblem) -> ExpressionValue {
    guard !old.isEmpty else { return .string(text) }
    let parts = TextSearch.split(text, by: old)
    // Counted before it is made: a short pattern can stand in a long text very often.
    let (added, overflows) = (parts.count - 1).multipliedReportingOverflow(by: new.utf8.count)
    guard !overflows, text.utf8.count + added <= EvaluationLimits.bytes else {
      throw .tooLarge(what: "bytes of text", limit: EvaluationLimits.bytes)
    }
    return .string(parts.joined(separator: new))
  }
}
