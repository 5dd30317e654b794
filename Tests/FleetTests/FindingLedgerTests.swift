import GodwitPersistentStore
import Testing

@testable import GodwitFleet

@Suite struct `A finding ledger` {
  private func finding(
    _ kind: StoreFinding.Kind, _ property: String = "name", count: Int64 = 1,
    examples: [Int64] = []
  ) -> StoreFinding {
    StoreFinding(
      kind: kind, entity: "Recipe", property: property, message: "is odd", count: count,
      examples: examples)
  }

  @Test func `sums what shards found of one kind and place`() {
    var ledger = FindingLedger(acceptsDamage: false)
    ledger.add([finding(.dangling, count: 3, examples: [1, 2, 3])])
    ledger.add([finding(.dangling, "type")])
    ledger.add([finding(.dangling, count: 4, examples: [11, 12, 13, 14])])
    #expect(ledger.findings.count == 2)
    #expect(ledger.findings[0].count == 7)
    #expect(ledger.findings[0].examples == [1, 2, 3, 11, 12])
  }

  @Test func `names the same rows whichever shard was looked at first`() {
    let found = [[7, 47], [87, 127], [3, 4, 5]].map { finding(.validation, examples: $0) }
    for order in [found, found.reversed()] {
      var ledger = FindingLedger(acceptsDamage: false)
      for finding in order { ledger.add([finding]) }
      #expect(ledger.findings.map(\.examples) == [[3, 4, 5, 7, 47]])
    }
  }

  // What real, sound stores have is carried; anything else only on request, and some kinds never.
  @Test(arguments: StoreFinding.Kind.allCases)
  func `stops at damage and carries the rest`(kind: StoreFinding.Kind) {
    let isOrdinary = [.dangling, .inverse, .note, .validation].contains(kind)
    var strict = FindingLedger(acceptsDamage: false)
    strict.add([finding(kind)])
    #expect(strict.unacceptable.isEmpty == isOrdinary)
    var lenient = FindingLedger(acceptsDamage: true)
    lenient.add([finding(kind)])
    if [.file, .rows, .unique].contains(kind) {
      #expect(lenient.unacceptable.count == 1)
    } else if kind != .schema {
      #expect(lenient.unacceptable.isEmpty)
    }
  }
}
