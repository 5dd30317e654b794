import GodwitPersistentStore
import GodwitPlanning
import Testing

@testable import GodwitFleet

@Suite struct `A destination that is not sound` {
  private func judgement(_ kinds: [StoreFinding.Kind], isOwnMapping: Bool)
    -> RetryPolicy.Judgement
  {
    let findings = kinds.map {
      StoreFinding(
        kind: $0, entity: "Recipe", property: "name", message: "is odd", count: 2,
        examples: [7, 9])
    }
    return RetryPolicy.judgement(
      of: UnsoundDestination(findings, isOwnMapping: isOwnMapping) as any Error)
  }

  @Test(arguments: [StoreFinding.Kind.dangling, .inverse, .index, .derived, .schema])
  func `is a fault of Godwit where the mapping was inferred`(kind: StoreFinding.Kind) {
    let judgement = judgement([kind], isOwnMapping: false)
    #expect(judgement.ending == .fatal)
    #expect(judgement.verdict == .failed)
    #expect(judgement.reasons.first?.entity == "Recipe")
    #expect(judgement.reasons.first?.message.contains("Z_PK 7, 9") == true)
    #expect(judgement.reasons.first?.message.contains("the source is unchanged") == true)
  }

  @Test func `is refused where rows are the cause`() {
    #expect(judgement([.inverse], isOwnMapping: true).verdict == .refused)
    #expect(judgement([.inverse], isOwnMapping: true).ending == .badInput)
    #expect(judgement([.inverse], isOwnMapping: true).code == 134_110)
    #expect(judgement([.unique], isOwnMapping: false).code == 134_111)
    #expect(judgement([.unique], isOwnMapping: false).verdict == .refused)
  }

  @Test func `names who may have made values that are not unique`() throws {
    var made = MadeDuplicates(
      entity: "Tag", index: "Z_Tag_UNIQUE_label", rows: RowTally([3, 4]),
      makers: ["the policy TagPolicy of PersonToPerson"])
    made.origin = ", made of Person with Z_PK 7"
    let judgement = RetryPolicy.judgement(of: made)
    #expect(judgement.verdict == .refused && judgement.code == 134_111)
    let reason = try #require(judgement.reasons.first)
    #expect(reason.reason == "uniqueness" && reason.property == "label")
    for words in ["in the new store, made of Person with Z_PK 7", "the policy TagPolicy of"] {
      #expect(reason.message.contains(words), "\(reason.message)")
    }
  }

  @Test func `is a fault of Godwit where rows are one of two causes`() {
    #expect(judgement([.inverse, .index], isOwnMapping: true).ending == .fatal)
  }
}
