import GodwitExpressions

/// Why a mapping model cannot be read or used.
package indirect enum MappingError: Error, Sendable, Equatable {
  /// What is wrong in a file of several.
  case inFile(String, MappingError)
  /// The file is not a mapping model of any known form.
  case unreadable(file: String, reason: String)
  /// An expression of a mapping does not parse; `property` is nil for a filter.
  case badExpression(mapping: String, property: String?, ExpressionError)
  /// An archived expression of a class that no mapping model was ever seen with.
  case unknownExpressionClass(mapping: String, property: String?, className: String)
  /// A key, value or type that the text form does not have.
  case badText(line: Int, problem: String, suggestion: String?)
  /// What the text form cannot hold.
  case unwritable(reason: String)
  /// None of the mapping models is for this pair of models.
  case noneMatches([MappingMismatch])
}

extension MappingError {
  /// Core Data's code where it has one. Source: `core-data-migration.md` §1.4.
  package var code: Int? {
    switch self {
    case .inFile(_, let error): error.code
    case .noneMatches: 134140
    default: nil
    }
  }
}

extension MappingError: CustomStringConvertible {
  /// What is wrong with the mapping model, and what to do next.
  package var description: String {
    switch self {
    case .inFile(let file, let error): "\(file): \(error)"
    case .unreadable(let file, let reason):
      "\(file) cannot be read as a mapping model: \(reason). "
        + "Check that the right file is given, or take another copy of it."
    case .unwritable(let reason):
      "The mapping model cannot be written as text: \(reason)."
    case .badExpression(let mapping, let property, let error):
      "In the entity mapping \(mapping), \(property ?? "the filter"): \(error)"
        + (error.isCutOff
          ? ". In { … } a comma ends a YAML value: put the whole expression in quotation marks"
          : "")
    case .unknownExpressionClass(let mapping, let property, let className):
      "In the entity mapping \(mapping), \(property ?? "the source expression"): archived "
        + "expressions of class \(className) are not known. Write the expression as text."
    case .badText(let line, let problem, let suggestion):
      "Line \(line): \(problem)." + (suggestion.map { " Did you mean \($0)?" } ?? "")
    case .noneMatches(let mismatches):
      "No mapping model is for these two models. "
        + mismatches.map(\.description).joined(separator: " ")
    }
  }
}

extension ExpressionError {
  /// True when the text ends within a bracket, as one does whose rest YAML took for something else.
  fileprivate var isCutOff: Bool {
    guard case .unexpected(found: "the end", _) = problem else { return false }
    return text.count { $0 == "(" } > text.count { $0 == ")" }
  }
}
