import GodwitObjectModel

/// What a single value is, for the question whether it can be assigned.
package indirect enum ValueKind: Sendable, Hashable {
  case number, string, date, data, uuid, url
  /// The bytes of a transformable attribute, which are read and written as they are.
  case transformed
  /// With its elements' names and types.
  case composite([String: ValueKind])
  case unknown

  package init(_ attribute: AttributeDescription) {
    switch attribute.type {
    case .integer16, .integer32, .integer64, .decimal, .double, .float, .boolean: self = .number
    case .string: self = .string
    case .date: self = .date
    case .binary: self = .data
    case .uuid: self = .uuid
    case .uri: self = .url
    case .composite:
      var elements: [String: ValueKind] = [:]
      for element in attribute.compositeElements ?? [] { elements[element.name] = .init(element) }
      self = .composite(elements)
    case .transformable: self = .transformed
    case .undefined, .objectID: self = .unknown
    }
  }

  /// What a value is when an expression is evaluated; nil for null, which every attribute takes.
  package init?(_ value: ExpressionValue) {
    switch value {
    case .null: return nil
    case .boolean, .integer, .real, .decimal: self = .number
    case .string: self = .string
    case .date: self = .date
    case .data: self = .data
    case .uuid: self = .uuid
    case .url: self = .url
    case .dictionary: self = .composite([:])
    case .object, .array, .set, .orderedSet, .helper: self = .unknown
    }
  }

  /// The one table of what an attribute takes: ``MappingCheck`` asks it before a row is read, and
  /// the evaluation for each value. A value of an unknown kind is taken by none.
  /// Source: `core-data-migration.md` §4.5 ("Assignment coercion").
  package func isAssignable(to type: AttributeType) -> Bool {
    switch type {
    case .integer16, .integer32, .integer64, .decimal, .double, .float, .boolean: self == .number
    case .string: self == .string
    case .date: self == .date
    case .uuid: self == .uuid
    case .uri: self == .url
    case .binary, .transformable: self == .data || self == .transformed
    case .composite: if case .composite = self { true } else { false }
    case .undefined:
      switch self {
      case .composite, .unknown: false;
      default: true
      }
    case .objectID: false
    }
  }

  package var description: String {
    switch self {
    case .number: "a number"
    case .string: "a text"
    case .date: "a date"
    case .data: "data"
    case .transformed: "a transformable value"
    case .uuid: "a UUID"
    case .url: "a URI"
    case .composite: "a composite"
    case .unknown: "a value"
    }
  }
}
