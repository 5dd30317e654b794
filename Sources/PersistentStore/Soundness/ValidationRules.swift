import GodwitObjectModel
import GodwitSQLite

/// The model editor's rules about the objects of one entity, compiled for rows: required
/// properties, bounds, lengths, patterns. Numbers of members are no matter of a row.
///
/// Source: `core-data-migration.md` §5.3; codes: §1.4.
package struct ValidationRules: Codable, Sendable, Equatable {
  package struct Rule: Codable, Sendable, Equatable {
    package enum Check: Codable, Sendable, Equatable {
      case required
      case atLeast(ValidationBound)
      case atMost(ValidationBound)
      case above(ValidationBound)
      case below(ValidationBound)
      /// UTF-16 units.
      case shortest(Int)
      case longest(Int)
      /// An ICU regular expression for the whole text.
      case pattern(String)
      /// Of another form, which is text for people.
      case other
    }

    /// Place of the column in the row.
    package let place: Int
    package let property: String
    package let check: Check
    /// True where the value is a date, whose codes are others than a number's.
    package let isDate: Bool
  }

  package let entity: EntityName
  package let rules: [Rule]

  package init(entity: EntityName, _ rules: [Rule]) {
    self.entity = entity
    self.rules = rules
  }

  /// - Parameter columns: The columns of the row as it will be given, by name.
  package init(of entity: EntityName, in layout: StoreLayout, columns: [String]) {
    let places = Dictionary(
      columns.enumerated().map { ($1, $0) }, uniquingKeysWith: { first, _ in first })
    var rules: [Rule] = []
    for declared in layout.hierarchy.properties(of: entity) where declared.property.isStored {
      let property = declared.property
      if property.attribute?.type == .composite {
        // When Core Data judges rules of elements is not known.
        for leaf in layout.leafColumns(of: property.name, in: entity)
        where !leaf.attribute.validation.isEmpty {
          guard let place = places[leaf.column] else { continue }
          rules.append(
            Rule(
              place: place, property: leaf.keyPath(below: property.name), check: .other,
              isDate: false))
        }
      }
      guard let place = layout.column(of: property.name, in: entity).flatMap({ places[$0] }) else {
        continue
      }
      // Core Data fills a derived attribute when the object is saved, and validates before.
      let isDerived = property.attribute?.derivationExpression != nil
      if !property.traits.isOptional, !isDerived {
        rules.append(
          Rule(place: place, property: property.name, check: .required, isDate: false))
      }
      for rule in property.attribute?.validation ?? [] {
        rules.append(
          Rule(
            place: place, property: property.name, check: Rule.Check(rule),
            isDate: property.attribute?.type == .date))
      }
    }
    self.init(entity: entity, rules)
  }
}

extension ValidationRules.Rule.Check {
  init(_ rule: ValidationRule) {
    switch rule {
    case .minimum(let bound): self = .atLeast(bound)
    case .maximum(let bound): self = .atMost(bound)
    case .above(let bound): self = .above(bound)
    case .below(let bound): self = .below(bound)
    case .minimumLength(let units): self = .shortest(units)
    case .maximumLength(let units): self = .longest(units)
    case .matches(let pattern): self = .pattern(pattern)
    case .other: self = .other
    }
  }
}

extension ValidationRules.Rule {
  /// Core Data's error code; the general one for a rule that nobody can judge.
  package var code: Int {
    switch check {
    case .other: 1550
    case .required: 1570
    case .atLeast, .above: isDate ? 1640 : 1620
    case .atMost, .below: isDate ? 1630 : 1610
    case .shortest: 1670
    case .longest: 1660
    case .pattern: 1680
    }
  }

  /// What is wrong with a row that breaks it.
  package var message: String {
    switch check {
    case .required: "is required and NULL"
    case .atLeast: isDate ? "is sooner than its earliest date" : "is lower than its minimum"
    case .atMost: isDate ? "is later than its latest date" : "is higher than its maximum"
    case .above: "is not above its lower bound"
    case .below: "is not below its upper bound"
    case .shortest: "is shorter than its minimum length"
    case .longest: "is longer than its maximum length"
    case .pattern: "does not match its pattern"
    case .other: StoreFinding.notJudged
    }
  }
}

/// Judges rows by ``ValidationRules`` and counts what they break.
package final class ValidationJudge {
  private let rules: ValidationRules
  private let patterns: [((String) -> Bool?)?]
  private var failures: [FoundRows]
  private var unjudged: [FoundRows]

  /// - Parameter pattern: The engine for regular expressions. What it cannot read is not judged, which a note
  ///   says.
  package init(_ rules: ValidationRules, pattern: StoreSoundness.PatternCompiler?) {
    self.rules = rules
    patterns = rules.rules.map { rule in
      if case .pattern(let text) = rule.check { pattern?(text) } else { nil }
    }
    failures = Array(repeating: FoundRows(), count: rules.rules.count)
    unjudged = failures
  }

  /// The rules that a row breaks.
  ///
  /// - Parameter values: As many as the columns that the rules were made for.
  package func broken(_ values: UnsafePointer<RawValue>) -> [ValidationRules.Rule] {
    rules.rules.indices.filter {
      holds(rules.rules[$0].check, values[rules.rules[$0].place], $0) == false
    }.map { rules.rules[$0] }
  }

  /// - Parameter values: As many as the columns that the rules were made for.
  package func check(_ values: UnsafePointer<RawValue>, key: Int64) {
    for index in rules.rules.indices {
      let rule = rules.rules[index]
      switch holds(rule.check, values[rule.place], index) {
      case true?: continue
      case false?: failures[index].add(key)
      case nil: unjudged[index].add(key)
      }
    }
  }

  /// Nil where nobody can tell.
  private func holds(
    _ check: ValidationRules.Rule.Check, _ value: RawValue, _ index: Int
  ) -> Bool? {
    if case .required = check { return value.kind != .null }
    // nil is a matter of being required only.
    if value.kind == .null { return true }
    switch check {
    case .required: return true
    case .atLeast(let bound): return Self.compare(value, bound).map { $0 >= 0 } ?? true
    case .atMost(let bound): return Self.compare(value, bound).map { $0 <= 0 } ?? true
    case .above(let bound): return Self.compare(value, bound).map { $0 > 0 } ?? true
    case .below(let bound): return Self.compare(value, bound).map { $0 < 0 } ?? true
    case .shortest(let units):
      return value.kind != .text || Self.utf16Count(value.buffer) >= units
    case .longest(let units):
      return value.kind != .text || Self.utf16Count(value.buffer) <= units
    case .pattern:
      guard value.kind == .text else { return true }
      return patterns[index]?(String(decoding: value.buffer, as: UTF8.self))
    case .other: return nil
    }
  }

  /// Below 0, 0 or above 0; nil for what is no number, or not one that can be compared.
  static func compare(_ value: RawValue, _ given: ValidationBound) -> Int? {
    let bound = given.real
    switch value.kind {
    case .integer:
      if let exact = given.integer { return value.bits < exact ? -1 : value.bits > exact ? 1 : 0 }
      let rounded = Double(value.bits)
      if rounded != bound { return rounded < bound ? -1 : rounded > bound ? 1 : nil }
      // Above 2^53 several integers have one Double, and 2^63 is none of theirs.
      guard let exact = Int64(exactly: bound) else { return -1 }
      return value.bits < exact ? -1 : value.bits > exact ? 1 : 0
    case .real:
      return value.real < bound ? -1 : value.real > bound ? 1 : value.real == bound ? 0 : nil
    case .text, .blob, .null: return nil
    }
  }

  /// Every byte but a continuation begins a unit; a character of four bytes has two.
  static func utf16Count(_ bytes: UnsafeRawBufferPointer) -> Int {
    var count = 0
    for byte in bytes {
      if byte & 0xC0 != 0x80 { count += 1 }
      if byte >= 0xF0 { count += 1 }
    }
    return count
  }

  /// What rows break, with Core Data's codes, and notes about those that were not judged.
  package var findings: [StoreFinding] {
    zip(rules.rules, failures).compactMap { rule, found in
      guard found.count > 0 else { return nil }
      return StoreFinding(
        kind: .validation, entity: rules.entity.rawValue, property: rule.property,
        message: rule.message, count: found.count, examples: found.examples, code: rule.code)
    }
      + rules.rules.indices.compactMap { index in
        let (rule, found) = (rules.rules[index], unjudged[index])
        guard found.count > 0 else { return nil }
        return StoreFinding(
          kind: .note, entity: rules.entity.rawValue, property: rule.property,
          message: patterns[index] == nil ? StoreFinding.notJudged : StoreFinding.unmatched,
          count: found.count, examples: found.examples)
      }
  }
}

/// Counts rows, and keeps some of their keys.
struct FoundRows {
  private(set) var count: Int64 = 0
  private(set) var examples: [Int64] = []

  mutating func add(_ key: Int64) {
    count += 1
    if examples.count < StoreFinding.mostExamples { examples.append(key) }
  }
}

extension StoreFinding {
  /// Of a rule that is no comparison, and of a pattern that cannot be read.
  static let notJudged = "has a validation rule that is not judged here"
  /// Of values for which a pattern takes too long.
  static let unmatched = "could not be judged by its pattern, which takes too long"
}
