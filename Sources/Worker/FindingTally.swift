import GodwitPersistentStore

/// Counts what is wrong with rows, one line for each kind, entity and property.
///
/// Sound rows cost nothing: only a finding touches the dictionary.
struct FindingTally {
  private struct Key: Hashable {
    var kind: StoreFinding.Kind
    var entity: String
    var property: String
    var message: String
  }

  private var findings: [Key: StoreFinding] = [:]

  mutating func add(
    _ kind: StoreFinding.Kind, entity: String, property: String = "", message: String,
    primaryKey: Int64, code: Int? = nil
  ) {
    let key = Key(kind: kind, entity: entity, property: property, message: message)
    if var known = findings[key] {
      known.count += 1
      if known.examples.count < StoreFinding.mostExamples { known.examples.append(primaryKey) }
      findings[key] = known
    } else {
      findings[key] = StoreFinding(
        kind: kind, entity: entity.isEmpty ? nil : entity,
        property: property.isEmpty ? nil : property, message: message, count: 1,
        examples: [primaryKey], code: code)
    }
  }

  /// In an order that does not depend on hashing.
  var sorted: [StoreFinding] {
    findings.values.sorted {
      ($0.kind.rawValue, $0.entity ?? "", $0.property ?? "", $0.message)
        < ($1.kind.rawValue, $1.entity ?? "", $1.property ?? "", $1.message)
    }
  }
}
