import GodwitExpressions

/// Something that is wrong, or may be, with a mapping model between two models.
package struct MappingFinding: Sendable, Hashable, Codable {
  /// Whether a finding prevents the migration.
  package enum Severity: String, Sendable, Hashable, Codable {
    /// The migration would fail, or do something else than is written.
    case error
    /// The migration runs; whether its outcome is wanted, only a person can say.
    case warning
  }

  /// What is wrong. Raw values are part of the JSON output.
  package enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    /// Two entity mappings have the same name.
    case duplicateName = "duplicate-name"
    /// An entity mapping names no entity; an error where none of them does.
    case emptyMapping = "empty-mapping"
    /// An entity mapping names an entity that the model does not have.
    case unknownEntity = "unknown-entity"
    /// The version hash in an entity mapping is not that of the model's entity.
    case hashMismatch = "hash-mismatch"
    /// An entity mapping names an abstract entity, which has no objects.
    case abstractEntity = "abstract-entity"
    /// No entity mapping makes objects of a concrete destination entity.
    case uncoveredDestination = "uncovered-destination"
    /// No entity mapping takes the objects of a concrete source entity.
    case uncoveredSource = "uncovered-source"
    /// The destination entity has no such attribute, or no such relationship.
    case unknownProperty = "unknown-property"
    /// An entity mapping maps a property twice.
    case duplicateProperty = "duplicate-property"
    /// A required attribute has no default and is given no value. Validation fails with 1570.
    case requiredWithoutValue = "required-without-value"
    /// A key in an expression that the object or value does not have.
    case unknownKey = "unknown-key"
    /// An expression reads a property that no store holds: a fetched one, which is an error, or a
    /// transient attribute, which is nil.
    case notStored = "not-stored"
    /// A variable in an expression that has no meaning there.
    case unknownVariable = "unknown-variable"
    /// A selector in an expression that the receiver does not have.
    case unknownSelector = "unknown-selector"
    /// A message with fewer or more arguments than its selector has colons.
    case argumentCount = "argument-count"
    /// The text of a fetch request's predicate, or the pattern of a `MATCHES`, cannot be read.
    case badPredicate = "bad-predicate"
    /// An expression names an entity mapping that does not exist.
    case unknownMapping = "unknown-mapping"
    /// A value or object of one type where another is needed.
    case typeMismatch = "type-mismatch"
    /// An expression that is legal and never yields an object, or reads what is set after it.
    case yieldsNothing = "yields-nothing"
    /// A policy class that nobody has registered.
    case missingPolicy = "missing-policy"
    /// A method of such a class that an expression calls.
    case missingPolicySelector = "missing-policy-selector"
    /// An expression, or all rows of an entity mapping, that are never evaluated, so that nothing in
    /// them matters.
    case unusedExpression = "unused-expression"
  }

  /// What is wrong.
  package var kind: Kind
  /// Whether it prevents the migration.
  package var severity: Severity
  /// The entity mapping; nil for a finding about the whole model.
  package var mapping: String?
  /// The destination property.
  package var property: String?
  /// The name that is missing: a policy's class, or a selector of one.
  package var subject: String?
  /// Text without its last full stop, cut after 1,000 Unicode scalars.
  package var message: String

  /// Makes a finding. A long message is cut, see ``message``.
  package init(
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

  /// A mapping model wins over inference: without entity mappings it would empty the store.
  static let nothingMapped = MappingFinding(
    .emptyMapping,
    message: "no entity mapping names an entity, so that every object would be dropped. Write one "
      + "for each entity, beginning with what godwit mapping new writes, or leave the file out")

  /// What selects source objects of a mapping that has none. Nil for what says nothing of objects.
  ///
  /// - Parameter isAddition: Nothing of the mapping is evaluated, so that a filter leaves nothing out.
  static func withoutSource(
    _ selection: SourceSelection, of mapping: String, isAddition: Bool
  ) -> MappingFinding? {
    func finding(_ severity: Severity, _ what: String) -> MappingFinding {
      MappingFinding(
        .unusedExpression, severity, mapping: mapping,
        message:
          "the mapping has no source entity, and no source objects therefore: its \(what) is "
          + "never evaluated. Name the source entity, or remove the \(what)")
    }
    switch selection {
    case .all, .filter(.constant(_)): return nil
    case .filter: return finding(isAddition ? .warning : .error, "filter")
    case .expression: return finding(.error, "source expression")
    }
  }

  static func unused(
    _ expression: MappingDocument.UnusedExpression, of mapping: String
  ) -> MappingFinding {
    MappingFinding(
      .unusedExpression, .warning, mapping: mapping, property: expression.property,
      message: "the expression is not used: \(expression.reason)")
  }

  static func unusedRows(of mapping: String) -> MappingFinding {
    MappingFinding(
      .unusedExpression, .warning, mapping: mapping,
      message:
        "its attributes, relationships and others are not used: without a destination, as of "
        + "the type remove, it makes no objects. Leave them out, or name the destination")
  }
}

extension MappingFinding: CustomStringConvertible {
  /// Where the finding is, and what it says.
  package var description: String {
    let place = [mapping, property].compactMap(\.self).joined(separator: ", ")
    return "\(severity.rawValue) \(kind.rawValue)"
      + (place.isEmpty ? "" : " in \(place)") + ": \(message)"
  }
}
