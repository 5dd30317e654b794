import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite
import Testing

@testable import GodwitWorker

@Suite struct `A derived count` {
  private static func model(_ type: AttributeType?, _ word: String) -> [EntityDescription] {
    let count = type.map { type in
      PropertyDescription.attribute(
        AttributeDescription(
          traits: PropertyTraits(name: "n"), type: type, derivationExpression: "pages.@count"))
    }
    return [
      EntityDescription(
        name: "Book",
        properties: [attribute(word), toMany("pages", "Page", inverse: "book")]
          + [count].compactMap(\.self)),
      entity("Page", toOne("book", "Book", inverse: "pages")),
    ]
  }

  private static func fixture(pages: Int, type: AttributeType) throws -> MigrationFixture {
    let fixture = try MigrationFixture(
      from: model(nil, "old"), to: model(type, "new"),
      rows: """
        INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1);
        INSERT INTO ZPAGE (Z_PK, Z_ENT, Z_OPT, ZBOOK)
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(pages))
        SELECT i, 2, 1, 2 FROM n
        """)
    // The control table of such a store gives out lower keys.
    fixture.acceptsDamage = true
    return fixture
  }

  @Test(arguments: [
    (32_767, AttributeType.integer16, true), (32_768, .integer16, false),
    (32_768, .integer32, true),
  ])
  func `is planned only where its type can hold it`(
    pages: Int, type: AttributeType, isPlanned: Bool
  ) throws {
    let fixture = try Self.fixture(pages: pages, type: type)
    guard case .refused(let code, let reasons) = try fixture.outcome() else {
      #expect(isPlanned)
      let store = try fixture.migrate()
      #expect(try store.table("SELECT ZN FROM ZBOOK ORDER BY 1") == ["0", "\(pages)"])
      return
    }
    #expect(!isPlanned && code == 134_110)
    #expect(reasons.map(\.reason) == ["count-out-of-range"])
    #expect(reasons.first?.entity == "Book" && reasons.first?.property == "n")
    #expect(reasons.first?.primaryKeys == [2])
    #expect(reasons.first?.message.contains("wider type") == true)
  }

  @Test func `that its type cannot hold ends a migration by a mapping model with the same reason`()
    throws
  {
    let mapping = """
      mapping-model: 1
      entity-mappings:
        - { source: Book, destination: Book }
        - { source: Page, destination: Page, relationships: { book: automatic } }
      """
    let error = try #require(throws: StageError.self) {
      try Self.fixture(pages: 32_768, type: .integer16).migrate(mapping)
    }
    let failure = WorkerFailure(error, source: nil)
    #expect(failure.reasons?.map(\.reason) == ["count-out-of-range"] && failure.code == 134_110)
    let store = try Self.fixture(pages: 32_767, type: .integer16).migrate(mapping)
    #expect(try store.table("SELECT max(ZN) FROM ZBOOK") == ["32767"])
  }
}
