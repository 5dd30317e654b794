import GodwitPersistentStore
import GodwitPlanning

/// What was found wrong with a store, summed over all shards.
///
/// Damage that Core Data itself lives with is reported and carried. Any other makes the store
/// fail, unless the request accepts damage. What cannot be accepted even then, ``Damage`` says: a
/// file that is not whole has lost rows, and a broken uniqueness constraint leaves no index.
package struct FindingLedger: Sendable {
  /// 5. Enough to look at; the count says the rest.
  package static let exampleLimit = 5

  private struct Key: Hashable {
    var kind: StoreFinding.Kind
    var entity: String?
    var property: String?
    var code: Int?
  }

  package let acceptsDamage: Bool
  private var places: [Key: Int] = [:]
  package private(set) var findings: [StoreFinding] = []

  package init(acceptsDamage: Bool) { self.acceptsDamage = acceptsDamage }

  package mutating func add(_ found: some Sequence<StoreFinding>) {
    for finding in found {
      let key = Key(
        kind: finding.kind, entity: finding.entity, property: finding.property,
        code: finding.code)
      guard let place = places[key] else {
        places[key] = findings.count
        var first = finding
        first.examples = Array(finding.examples.prefix(Self.exampleLimit))
        findings.append(first)
        continue
      }
      findings[place].count += finding.count
      // The lowest, whichever shard was looked at first.
      let all = Set(findings[place].examples).union(finding.examples).sorted()
      findings[place].examples = Array(all.prefix(Self.exampleLimit))
    }
  }

  /// Adds findings about the destination that the source has too, unless a look at the source has
  /// reported them.
  package mutating func addCarried(_ carried: [StoreFinding]) {
    add(
      carried.filter { finding in
        !findings.contains {
          ($0.kind == finding.kind && finding.kind.isFailure)
            || ($0.entity == finding.entity && $0.property == finding.property)
        }
      })
  }

  /// Forgets what validation found, since it has been seen to.
  mutating func forgetInvalidRows() {
    findings.removeAll { $0.code != nil }
    places = Dictionary(
      findings.enumerated().map { place, finding in
        (
          Key(
            kind: finding.kind, entity: finding.entity, property: finding.property,
            code: finding.code), place
        )
      }, uniquingKeysWith: { $1 })
  }

  /// - Throws: ``StoreDamage`` where a finding ends the migration.
  func stopAtDamage() throws {
    let damage = unacceptable
    if !damage.isEmpty { throw StoreDamage(findings: damage) }
  }

  /// Findings that end the migration.
  package var unacceptable: [StoreFinding] {
    findings.filter {
      Damage.isDamage($0) && !(acceptsDamage && Damage.isAcceptable($0))
    }
  }
}

/// The store is damaged in a way that no migration may carry.
package struct StoreDamage: Error, Sendable {
  package var findings: [StoreFinding]
}

/// Losses that the request forbids, and that only the rows showed.
package struct RefusedLosses: Error, Sendable {
  package var reasons: [Reason]
}

/// Objects that a mapping model made break the destination model's rules.
///
/// Source: `core-data-migration.md` §5.3: several failures are one error 1560.
package struct InvalidRows: Error, Sendable {
  package var findings: [StoreFinding]

  /// 1560 for several failures, else the one's own.
  package var code: Int? { findings.count > 1 ? 1560 : findings.first?.code }
}
