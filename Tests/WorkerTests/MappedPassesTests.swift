import Foundation
import GodwitBarriers
import GodwitCheckpoints
import GodwitObjectModel
import GodwitSQLite
import SystemPackage
import Testing

@testable import GodwitWorker

@Suite struct `Several mapping models of one pair` {
  private static func model(_ word: String) -> [EntityDescription] {
    [
      entity(
        "Author", attribute("name"), attribute(word), toMany("books", "Book", inverse: "author")),
      entity(
        "Book", attribute("title"), toOne("author", "Author", inverse: "books"),
        toMany("tags", "Tag", inverse: "books")),
      entity("Tag", attribute("word"), toMany("books", "Book", inverse: "tags")),
    ]
  }

  private static func fixture() throws -> MigrationFixture {
    try MigrationFixture(
      from: model("old"), to: model("new"),
      rows: """
        INSERT INTO ZAUTHOR (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 1, 1, 'Xa'), (2, 1, 1, 'Yb');
        INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT, ZTITLE, ZAUTHOR)
        VALUES (1, 2, 1, 'beta', 1), (2, 2, 1, 'Zeta', 2), (3, 2, 1, 'Alpha', 2), (4, 2, 1, 'zz', 1),
               (6, 2, 1, '9', 1);
        INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZWORD) VALUES (1, 3, 1, 't'), (5, 3, 1, 'u');
        INSERT INTO Z_2TAGS VALUES (1, 1), (1, 5), (2, 5), (3, 1), (6, 1)
        """)
  }

  private static func books(_ pattern: String, _ author: String) -> String {
    """
      - source: Book
        destination: Book
        filter: title MATCHES '\(pattern)'
        relationships: { author: \(author), tags: default }
    """
  }

  /// As Apple's sample for large stores: the first pass makes what the others refer to.
  private static let passes = [
    """
    mapping-model: 1
    entity-mappings:
      - { source: Author, destination: Author, relationships: { books: default } }
      - { source: Tag, destination: Tag, relationships: { books: default } }
    """,
    "mapping-model: 1\nentity-mappings:\n" + books("[a-hA-H].*", "automatic"),
    "mapping-model: 1\nentity-mappings:\n" + books("[i-zI-Z].*", "automatic"),
  ]

  @Test func `make one destination, in order, with keys that go on`() throws {
    let fixture = try Self.fixture()
    for shardBytes: Int64 in [1 << 24, 1] {
      let store = try fixture.migrate(passes: Self.passes, shardBytes: shardBytes)
      #expect(
        try store.table("SELECT Z_PK, ZTITLE FROM ZBOOK ORDER BY 1") == [
          "1 beta", "2 Alpha", "3 Zeta", "4 zz",  // '9' is in no pass
        ])
      #expect(try store.table("SELECT Z_PK, ZNAME FROM ZAUTHOR ORDER BY 1") == ["1 Xa", "2 Yb"])
      #expect(
        try store.table("SELECT Z_NAME, Z_MAX FROM Z_PRIMARYKEY ORDER BY 1") == [
          "Author 2", "Book 4", "Tag 5",
        ])
    }
  }

  @Test func `know the objects of their own pass alone`() throws {
    let store = try Self.fixture().migrate(passes: Self.passes)
    // Automatic rows find no mapping of authors in their pass, as in Core Data.
    #expect(
      try store.table("SELECT count(*) FROM ZBOOK WHERE ZAUTHOR IS NOT NULL") == ["0"])
  }

  /// A pass may make what it refers to itself; two passes then make two of each.
  @Test func `link what they make, each for itself`() throws {
    let fixture = try Self.fixture()
    let pass = { (pattern: String, name: String) in
      """
      mapping-model: 1
      entity-mappings:
        - source: Book
          destination: Book
          filter: title MATCHES '\(pattern)'
        - { source: Tag, destination: Tag }
        - { source: Author, destination: Author, filter: name == '\(name)' }
      """
    }
    for shardBytes: Int64 in [1 << 24, 1] {
      let store = try fixture.migrate(
        passes: [pass("[a-hA-H].*", "Yb"), pass("[i-zI-Z].*", "Xa")], shardBytes: shardBytes)
      #expect(
        try store.table(
          """
          SELECT b.Z_PK, b.ZTITLE, a.ZNAME, group_concat(t.Z_PK || t.ZWORD, '+')
            FROM ZBOOK AS b LEFT JOIN ZAUTHOR AS a ON a.Z_PK = b.ZAUTHOR
            LEFT JOIN Z_2TAGS AS j ON j.Z_2BOOKS = b.Z_PK
            LEFT JOIN ZTAG AS t ON t.Z_PK = j.Z_3TAGS
           GROUP BY b.Z_PK
           ORDER BY b.Z_PK
          """) == ["1 beta - 1t+2u", "2 Alpha Yb 1t", "3 Zeta - 4u", "4 zz Xa -"])
      #expect(
        try store.table("SELECT Z_PK, ZWORD FROM ZTAG ORDER BY 1") == ["1 t", "2 u", "3 t", "4 u"])
      let notes = try #require(fixture.latest).plan.notes.filter { $0.contains("twice") }
      #expect(
        notes == ["test.yaml and test.yaml take the 2 objects of Tag to Tag: each exists twice."])
    }
  }

  /// The find step of Apple's guide: by the name of the mapping that made the objects.
  @Test(arguments: [1 << 24, 1] as [Int64])
  func `find again what earlier ones have made`(shardBytes: Int64) throws {
    let found = { (mapping: String, objects: String) in
      #"'FUNCTION($manager, "destinationInstancesForEntityMappingNamed:sourceInstances:", "\#(mapping)", \#(objects))'"#
    }
    let pass = { (pattern: String) in
      """
      mapping-model: 1
      entity-mappings:
        - source: Book
          destination: Book
          filter: title MATCHES '\(pattern)'
          relationships:
            author: \(found("AuthorToAuthor", "$source.author"))
            tags: \(found("TagToTag", "SUBQUERY($source.tags, $t, $t.word != 'q')".replacingOccurrences(of: "'", with: "\"")))
      """
    }
    let store = try Self.fixture().migrate(
      passes: [Self.passes[0], pass("[a-hA-H].*"), pass("[i-zI-Z].*")], shardBytes: shardBytes)
    #expect(
      try store.table(
        """
        SELECT b.ZTITLE, a.ZNAME, group_concat(t.ZWORD, '+')
          FROM ZBOOK AS b JOIN ZAUTHOR AS a ON a.Z_PK = b.ZAUTHOR
          LEFT JOIN Z_2TAGS AS j ON j.Z_2BOOKS = b.Z_PK
          LEFT JOIN ZTAG AS t ON t.Z_PK = j.Z_3TAGS
         GROUP BY b.Z_PK
         ORDER BY b.Z_PK
        """) == ["beta Xa t+u", "Alpha Yb t", "Zeta Yb u", "zz Xa -"])
  }

  @Test func `find nothing of later ones`() throws {
    let author =
      #"'FUNCTION($manager, "destinationInstancesForEntityMappingNamed:sourceInstances:", "AuthorToAuthor", $source.author)'"#
    let outcome = try Self.fixture().outcome(
      passes: [
        "mapping-model: 1\nentity-mappings:\n" + Self.books(".*", author), Self.passes[0],
      ])
    #expect("\(outcome)".contains("there is no entity mapping AuthorToAuthor"))
  }

  @Test func `may have entity mappings of one name`() throws {
    let fixture = try Self.fixture()
    _ = try fixture.migrate(passes: Self.passes)
    let latest = try #require(fixture.latest)
    let path = fixture.folder.appending("uris.tsv")
    try URITable(plan: latest.plan, run: latest.run, written: latest.store).write(to: path)
    let lines = try String(contentsOfFile: path.string, encoding: .utf8)
      .split(separator: "\n").dropFirst()
    let places = lines.map { line in
      line.split(separator: "\t").map { $0.split(separator: "/").suffix(2).joined(separator: " ") }
        .joined(separator: ", ")
    }
    #expect(
      places.suffix(4) == [
        "BookToBook, Book p1, Book p1", "BookToBook, Book p3, Book p2",
        "BookToBook, Book p2, Book p3", "BookToBook, Book p4, Book p4",
      ])
  }
}

@Suite struct `Join tables of a mapped migration` {
  @Test func `are cut like the table of their first key, and come out the same`() throws {
    func model(_ word: String) -> [EntityDescription] {
      [
        entity("Post", toMany("tags", "Tag", inverse: "posts"), attribute(word)),
        entity("Tag", toMany("posts", "Post", inverse: "tags", ordered: true)),
      ]
    }
    let rows = """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60)
      INSERT INTO ZPOST (Z_PK, Z_ENT, Z_OPT) SELECT i * 3, 1, 1 FROM n;
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20)
      INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT) SELECT i, 2, 1 FROM n;
      INSERT INTO Z_1TAGS
      SELECT p.Z_PK, t.Z_PK, 2048 + 1024 * ((p.Z_PK * 7) % 61) FROM ZPOST AS p, ZTAG AS t
       WHERE (p.Z_PK + t.Z_PK) % 3 = 0
      """
    let fixture = try MigrationFixture(from: model("old"), to: model("new"), rows: rows)
    let mapping = """
      mapping-model: 1
      entity-mappings:
        - { source: Post, destination: Post }
        - { source: Tag, destination: Tag }
      """
    let order = "SELECT * FROM Z_1TAGS ORDER BY 1, 2"
    for renumbers in [false, true] {
      let whole = try fixture.migrate(mapping, renumbers: renumbers).table(order)
      let cut = try fixture.migrate(mapping, renumbers: renumbers, shardBytes: 64).table(order)
      #expect(cut == whole)
      #expect(whole.count > 300)
      let units = try #require(fixture.latest).plan.units.count { unit in
        if case .joinTable = unit.subject { true } else { false }
      }
      #expect(units > 3)
    }
  }
}

@Suite struct `External data that several objects take over` {
  private static func image(_ name: String) -> PropertyDescription {
    .attribute(
      AttributeDescription(
        traits: PropertyTraits(name: name), type: .binary, allowsExternalBinaryDataStorage: true))
  }

  private static let file = "0A1B2C3D-0000-4000-8000-00000000000F"

  private static func fixture() throws -> MigrationFixture {
    let reference =
      "02" + Array(file.utf8).map { String($0, radix: 16) }.joined() + "00"
    let fixture = try MigrationFixture(
      from: [entity("Photo", image("bytes"), attribute("name"))],
      to: [
        entity("Photo", image("bytes"), image("copy"), attribute("name")),
        entity("Thumb", image("bytes")),
      ],
      rows: """
        INSERT INTO ZPHOTO (Z_PK, Z_ENT, Z_OPT, ZBYTES)
        VALUES (1, 1, 1, x'\(reference)'), (2, 1, 1, x'01AABB'), (3, 1, 1, NULL)
        """)
    try fixture.putExternalData("the photo", inFile: file)
    return fixture
  }

  private func name(_ store: Connection, _ sql: String) throws -> String {
    guard case .blob(let bytes)? = try store.rows(sql).first?.first, bytes.count == 38 else {
      Issue.record("no reference to a file: \(sql)")
      return ""
    }
    return String(decoding: bytes[1..<37], as: UTF8.self)
  }

  @Test func `is in a file of its own for each`() throws {
    let fixture = try Self.fixture()
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Photo, destination: Photo, attributes: { copy: $source.bytes } }
        - { source: Photo, destination: Thumb }
      """, shardBytes: 1)
    let names = [
      try name(store, "SELECT ZBYTES FROM ZPHOTO WHERE Z_PK = 1"),
      try name(store, "SELECT ZCOPY FROM ZPHOTO WHERE Z_PK = 1"),
      try name(store, "SELECT ZBYTES FROM ZTHUMB WHERE Z_PK = 1"),
    ]
    #expect(names.contains(Self.file), "one of them keeps the source's")
    #expect(Set(names).count == 3)
    let run = try #require(fixture.latest).run
    for name in names where name != Self.file {
      let data = FileManager.default.contents(atPath: run.external.appending(name).string)
      #expect(data == Data("the photo".utf8))
    }
    #expect(
      try store.table("SELECT Z_PK, ZBYTES FROM ZTHUMB ORDER BY 1") == [
        "1 38 bytes", "2 3 bytes", "3 -",
      ])
  }

  @Test func `is in a file when an expression makes more than Core Data keeps inline`() throws {
    let fixture = try MigrationFixture(
      from: [
        entity("Note", attribute("text"), attribute("more"))
      ],
      to: [entity("Note", Self.image("a")), entity("Other", Self.image("b"))],
      rows: """
        INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, ZTEXT, ZMORE)
        VALUES (1, 1, 1, printf('%.*c', 100000, 'x'), 'm'),
               (2, 1, 1, printf('%.*c', 100001, 'x'), printf('%.*c', 100001, 'm'))
        """)
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Note, destination: Note, attributes: { a: 'godwit.data($source.text, "utf8")' } }
        - { source: Note, destination: Other, attributes: { b: 'godwit.data($source.more, "utf8")' } }
      """)
    #expect(
      try store.table("SELECT Z_PK, ZA FROM ZNOTE ORDER BY 1") == ["1 100001 bytes", "2 38 bytes"])
    let names = [
      try name(store, "SELECT ZA FROM ZNOTE WHERE Z_PK = 2"),
      try name(store, "SELECT ZB FROM ZOTHER WHERE Z_PK = 2"),
    ]
    let run = try #require(fixture.latest).run
    let first = names.map { name in
      FileManager.default.contents(atPath: run.external.appending(name).string)
    }
    #expect(first.map { $0?.first } == [UInt8(ascii: "x"), UInt8(ascii: "m")])
    #expect(first.map { $0?.count } == [100_001, 100_001])
  }
}
