/// Something that is wrong, or may be, with a mapping model between two models.
public struct MappingFinding: Sendable, Hashable, Codable {
  public enum Severity: String, Sendable, Hashable, Codable {
    /// The migration would fail, or do something else than is written.
    case error
    /// The migration runs; whether its outcome is wanted, only a person can say.
    case warning
  }

  public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    case duplicateName = "duplicate-name"
    case emptyMapping = "empty-mapping"
    case unknownEntity = "unknown-entity"
    case hashMismatch = "hash-mismatch"
    case abstractEntity = "abstract-entity"
    case uncoveredDestination = "uncovered-destination"
    case uncoveredSource = "uncovered-source"
    case unknownProperty = "unknown-property"
    case duplicateProperty = "duplicate-property"
    case requiredWithoutValue = "required-without-value"
    case unknownKey = "unknown-key"
    case unknownVariable = "unknown-variable"
    case unknownSelector = "unknown-selector"
    case argumentCount = "argument-count"
    case badPredicate = "bad-predicate"
    case unknownMapping = "unknown-mapping"
    case typeMismatch = "type-mismatch"
    /// An expression that is legal and never yields an object.
    case yieldsNothing = "yields-nothing"
    /// A policy class that nobody has registered.
    case missingPolicy = "missing-policy"
    /// A method of such a class that an expression calls.
    case missingPolicySelector = "missing-policy-selector"
    /// An expression that is never evaluated, so that nothing in it matters.
    case unusedExpression = "unused-expression"
  }

  public var kind: Kind
  public var severity: Severity
  /// The entity mapping; nil for a finding about the whole model.
  public var mapping: String?
  /// The destination property.
  public var property: String?
  /// The name that is missing: a policy's class, or a selector of one.
  public var subject: String?
  public var message: String

  public init(
    _ kind: Kind, _ severity: Severity = .error, mapping: String? = nil, property: String? = nil,
    subject: String? = nil, message: String
  ) {
    self.kind = kind
    self.severity = severity
    self.mapping = mapping
    self.property = property
    self.subject = subject
    // Names and expressions of a file may be of any length.
    self.message = message.cut(to: 1_000)
  }

  static func missingSelector(_ selector: String, of policy: String?) -> String {
    "$entityPolicy is asked for \(selector), which is code of "
      + (policy ?? "a policy, and the mapping has none")
  }

  static func unused(
    _ expression: MappingDocument.UnusedExpression, of mapping: String
  ) -> MappingFinding {
    MappingFinding(
      .unusedExpression, .warning, mapping: mapping, property: expression.property,
      message: "the expression is not used: \(expression.reason)")
  }
}

extension String {
  /// The text as a message shows it: its beginning, where it is longer than that.
  func cut(to limit: Int) -> String {
    unicodeScalars.count <= limit
      ? self : String(String.UnicodeScalarView(unicodeScalars.prefix(limit))) + "…"
  }
}

extension MappingFinding: CustomStringConvertible {
  public var description: String {
    let place = [mapping, property].compactMap(\.self).joined(separator: ", ")
    return "\(severity.rawValue) \(kind.rawValue)"
      + (place.isEmpty ? "" : " in \(place)") + ": \(message)"
  }
}
