import GodwitObjectModel
import GodwitPersistentStore
import Testing

@testable import GodwitWorker

/// What forbids a lightweight migration forbids one by a mapping model, too: there a reference of no use leads
/// to nothing, and the destination would not tell.
@Suite struct `A damaged reference under a mapping model` {
  private static func entities(_ word: String) -> [EntityDescription] {
    [
      entity(
        "Author", attribute(word), toMany("books", "Book", inverse: "author", ordered: true),
        toMany("fans", "Fan")),
      entity(
        "Book", attribute(word), toOne("author", "Author", inverse: "books"), toOne("link", "Shelf")
      ),
      entity("Fan", attribute(word)),
      entity("Shelf", attribute(word)),
      entity("Box", parent: "Shelf"),
    ]
  }

  private static let rows = """
    INSERT INTO ZAUTHOR (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1);
    INSERT INTO ZSHELF (Z_PK, Z_ENT, Z_OPT) VALUES (1, 5, 1);
    INSERT INTO ZFAN (Z_PK, Z_ENT, Z_OPT, Z1FANS) VALUES (1, 3, 1, 1);
    INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT, ZAUTHOR, Z_FOK_AUTHOR, ZLINK, Z4_LINK)
    VALUES (1, 2, 1, 1, 1024, 1, 5), (2, 2, 1, 1, 2048, NULL, NULL);

    """

  private static let mapping =
    "mapping-model: 1\nentity-mappings:\n"
    + ["Author", "Book", "Fan", "Shelf", "Box"].map {
      "  - { source: \($0), destination: \($0) }\n"
    }.joined()

  /// A change of sound rows, what the audit says of it, and the references that are left: of books to
  /// authors and shelves, of fans to authors.
  @Test(
    arguments: [
      ("", [], [2, 1, 1]),
      ("UPDATE ZBOOK SET ZLINK = 1.5, Z4_LINK = NULL WHERE Z_PK = 1", [.type], [2, 0, 1]),
      ("UPDATE ZBOOK SET ZLINK = 'abc', Z4_LINK = NULL WHERE Z_PK = 1", [.type], [2, 0, 1]),
      ("UPDATE ZBOOK SET ZAUTHOR = x'01' WHERE Z_PK = 1", [.type], [1, 1, 1]),
      ("UPDATE ZBOOK SET ZAUTHOR = 1.5 WHERE Z_PK = 1", [.type], [1, 1, 1]),
      ("UPDATE ZBOOK SET Z4_LINK = 4 WHERE Z_PK = 1", [.entityColumn], [2, 1, 1]),
      ("UPDATE ZBOOK SET Z4_LINK = NULL WHERE Z_PK = 1", [.entityColumn], [2, 1, 1]),
      ("UPDATE ZBOOK SET Z4_LINK = 'x' WHERE Z_PK = 1", [.entityColumn], [2, 1, 1]),
      ("UPDATE ZBOOK SET Z4_LINK = 5 WHERE Z_PK = 2", [.entityColumn], [2, 1, 1]),
      ("UPDATE ZBOOK SET Z_FOK_AUTHOR = 'x' WHERE Z_PK = 2", [.type], [2, 1, 1]),
      ("UPDATE ZBOOK SET Z_FOK_AUTHOR = NULL WHERE Z_PK = 2", [.order], [2, 1, 1]),
      ("UPDATE ZBOOK SET Z_FOK_AUTHOR = 1024 WHERE Z_PK = 2", [.order], [2, 1, 1]),
      ("UPDATE ZFAN SET Z1FANS = 1.5", [.type], [2, 1, 0]),
      ("UPDATE ZFAN SET Z1FANS = 'abc'", [.type], [2, 1, 0]),
      ("UPDATE ZFAN SET Z1FANS = 9", [.dangling], [2, 1, 0]),
    ] as [(String, Set<StoreFinding.Kind>, [Int64])])
  func `is found before the commit, and never becomes another one`(
    change: String, kinds: Set<StoreFinding.Kind>, left: [Int64]
  ) throws {
    let fixture = try MigrationFixture(
      from: Self.entities("old"), to: Self.entities("new"), rows: Self.rows + change)
    let store = try fixture.migrate(Self.mapping)
    let latest = try #require(fixture.latest)
    let context = try ShardContext(run: latest.run)
    let found = try latest.plan.audits.indices.flatMap {
      try AuditStage(context: context).run($0).findings
    }
    #expect(Set(found.map(\.kind)).subtracting([.note]) == kinds, "\(found)")
    let counts = try store.rows(
      "SELECT (SELECT count(ZAUTHOR) FROM ZBOOK), (SELECT count(ZLINK) FROM ZBOOK), (SELECT count(Z1FANS) FROM ZFAN)"
    )
    #expect(counts.first?.compactMap(\.integer) == left)
  }
}
