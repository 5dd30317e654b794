public import GodwitObjectModel

/// Why an expression has no value for a row.
///
/// Names the place and never the row's data.
public struct EvaluationError: Error, Sendable, Equatable {
  /// What went wrong.
  public var problem: EvaluationProblem
  /// The source object's entity, or the destination object's where there is no source.
  public var entity: EntityName?
  /// `Z_PK` of the object of ``entity``; nil where no object is known.
  public var primaryKey: Int64?
  /// The destination property; nil for a filter.
  public var property: String?
  /// The expression as it is written.
  public var expression: String

  /// Puts a problem at its place.
  package init(
    _ problem: EvaluationProblem, entity: EntityName? = nil, primaryKey: Int64? = nil,
    property: String? = nil, expression: String
  ) {
    self.problem = problem
    self.entity = entity
    self.primaryKey = primaryKey
    self.property = property
    self.expression = expression
  }
}

/// What went wrong, without the place.
public enum EvaluationProblem: Error, Sendable, Equatable {
  /// Core Data's `NSUnknownKeyException`. `owner` is an entity, or words for a value's kind.
  case unknownKey(owner: String, key: String)
  /// A variable that has no meaning here, without its `$`.
  case unknownVariable(String)
  /// A function that is not built in, or that cannot be evaluated.
  case unknownFunction(String)
  /// A message that the receiver does not understand. `owner` is words for the receiver's kind.
  case unknownSelector(owner: String, selector: String)
  /// A name after `@` in a key path that is no collection operator, without the `@`.
  case unknownCollectionOperator(String)
  /// An entity mapping that the mapping model does not have.
  case unknownMapping(String)
  /// An entity of a fetch request that the source model does not have.
  case unknownEntity(String)
  /// The type name of a `CAST` that is not supported.
  case unknownCast(String)
  /// A message with fewer or more arguments than it has colons.
  case argumentCount(String)
  /// `$entityPolicy` was asked for code that is not there.
  case missingPolicy(selector: String)
  /// A value of one kind where another is needed; both in words.
  case wrongKind(found: String, needed: String)
  /// Values of these kinds have no order.
  case notComparable(String, String)
  /// A division or a remainder by zero, or zero to a negative power.
  case divisionByZero
  /// A number outside the range of its kind, a decimal too near to 0, or no number at all.
  case overflow
  /// A text that does not spell the wanted value, in words.
  case notConvertible(to: String)
  /// An index outside a collection or a text.
  case badIndex
  /// The text of a regular expression, date format or encoding that is none.
  case badPattern(what: String)
  /// The text of a fetch request's predicate cannot be read.
  case badPredicate(ExpressionError)
  /// The bytes of a bucket are no property-list dictionary.
  case damagedPropertyList(reason: String)
  /// A value that the form it is to have cannot hold; both in words.
  case notRepresentable(what: String, by: String)
  /// The expression, or a value that it reads or makes, is nested too deeply.
  case tooDeep
  /// Texts and collections longer than `EvaluationLimits` allow, or too many steps.
  case tooLarge(what: String, limit: Int)
  /// A value that the attribute's type does not take; Core Data raises "Unacceptable type of
  /// value for attribute".
  case unacceptable(found: String, type: AttributeType)
  /// A number that the attribute's type cannot hold.
  case outOfRange(AttributeType, isTooLarge: Bool)
  /// Not a number (NaN), which no store holds: SQLite makes NULL of it.
  case notANumber(AttributeType)
  /// What a column holds is not a value of its attribute's type.
  case unexpectedStorage(AttributeType)
  /// What the surroundings said when they were asked for an object's value.
  case access(String)
}

/// Bounds that no honest expression meets, and that end a hostile one with an error.
package enum EvaluationLimits {
  /// 64 MiB. Bytes of one text or one piece of data that an expression makes.
  package static let bytes = 64 << 20
  /// Members of all collections that one evaluation makes; what it is given does not count.
  package static let members = 4_000_000
  /// Nodes of the tree that one evaluation visits, nodes under a `SUBQUERY` once a member.
  package static let steps = 200_000_000
}

extension EvaluationError {
  /// Core Data's code. Source: `core-data-migration.md` §1.4.
  public var code: Int {
    switch problem {
    case .outOfRange(_, let isTooLarge): isTooLarge ? 1610 : 1620
    case .unacceptable, .notANumber: 1550
    case .missingPolicy: 134170
    default: 134110
    }
  }
}

extension EvaluationError: CustomStringConvertible {
  /// What went wrong, and in which part of the expression.
  public var description: String {
    let object = entity.map { "\($0)" + (primaryKey.map { " with Z_PK \($0)" } ?? "") }
    let place = [object, property.map { "property \($0)" }].compactMap { $0 }
    let shown = expression.cut(to: 200)
    // What the expression does not spell, a row's value gave.
    let isWritten = problem.name.map { expression.contains($0) } ?? true
    let said = isWritten ? problem.description : problem.descriptionWithoutName
    return (place.isEmpty ? "" : place.joined(separator: ", ") + ": ")
      + "\(said.cut(to: 300)), in: \(shown)"
  }
}

extension EvaluationProblem {
  /// What is wrong with a number that an attribute's type does not hold.
  static func beyond(_ type: AttributeType, _ value: Double) -> EvaluationProblem {
    value.isNaN ? .notANumber(type) : .outOfRange(type, isTooLarge: value >= 1)
  }

  /// The text that the problem is about, where a value may have given it.
  fileprivate var name: String? {
    switch self {
    case .unknownKey(_, let name), .unknownMapping(let name), .unknownEntity(let name): name
    case .badPredicate(let error): error.text
    default: nil
    }
  }

  fileprivate var descriptionWithoutName: String {
    switch self {
    case .unknownKey(let owner, _): "\(owner) has no key of the name that a value gives"
    case .unknownMapping: "there is no entity mapping of the name that a value gives"
    case .unknownEntity: "there is no entity of the name that a value gives"
    case .badPredicate: "the fetch's predicate, which a value gives, cannot be read"
    default: description
    }
  }
}

extension EvaluationProblem: CustomStringConvertible {
  /// What went wrong.
  public var description: String {
    switch self {
    case .unknownKey(let owner, let key): "\(owner) has no key \(key). Check the spelling"
    case .unknownVariable(let name): "there is no variable $\(name) here"
    case .unknownFunction(let name): "the function \(name) cannot be evaluated"
    case .unknownSelector(let owner, let selector): "\(owner) does not understand \(selector)"
    case .unknownCollectionOperator(let name): "there is no collection operator @\(name)"
    case .unknownMapping(let name): "there is no entity mapping \(name)"
    case .unknownEntity(let name): "there is no entity \(name)"
    case .unknownCast(let name): "there is no cast to \(name)"
    case .argumentCount(let selector): "\(selector) is given another number of arguments"
    case .missingPolicy(let selector):
      "$entityPolicy is asked for \(selector), and no policy with it is registered"
    case .wrongKind(let found, let needed): "\(found) stands where \(needed) is needed"
    case .notComparable(let a, let b): "\(a) and \(b) have no order. Convert one of them"
    case .divisionByZero: "division by zero. Guard it with TERNARY"
    case .overflow: "the result is outside the range of numbers, or too near to 0 for a decimal"
    case .notConvertible(let kind): "the text does not spell \(kind)"
    case .badIndex: "the index is outside the collection or text, or within a character"
    case .badPattern(let what): "this is no \(what)"
    case .badPredicate(let error): "the fetch's predicate cannot be read: \(error)"
    case .damagedPropertyList(let reason): "the data is not a property-list dictionary: \(reason)"
    case .notRepresentable(let what, let form): "\(form) cannot hold \(what)"
    case .tooDeep: "the expression, or what it reads, is nested too deep"
    case .tooLarge(let what, let limit): "the expression needs more than \(limit) \(what)"
    case .unacceptable(let found, let type):
      "unacceptable type of value: \(found) is not converted to \(type.xmlName) automatically. Convert it"
    case .outOfRange(let type, let isTooLarge):
      "the number is too \(isTooLarge ? "large" : "small") for \(type.xmlName)"
    case .notANumber(let type):
      "the value is not a number (NaN), which no attribute of type \(type.xmlName) holds"
    case .unexpectedStorage(let type):
      "the column does not hold a value of type \(type.xmlName)"
        + (type == .string || type == .uri
          ? ", which is a text in UTF-8"
          : type == .double || type == .float || type == .date || type == .decimal
            ? ", which is a finite number" : "")
    case .access(let reason): reason
    }
  }
}
