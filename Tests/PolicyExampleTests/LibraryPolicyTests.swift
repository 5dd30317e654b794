import Foundation
import Testing

/// Every policy of the example, against the store that it should give. The executable is run as a
/// team would run it: coordinator and workers, whatever the shards.
@Suite(.serialized) struct `The example's policies` {
  @Test func `make an author of a column, one for each name`() throws {
    let library = try LibraryFixture(
      """
      INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT, ZTITLE, ZAUTHORNAME) VALUES
        (2, 1, 1, 'Emma', 'Jane Austen'),
        (3, 1, 1, 'Solaris', 'Stanisław Lem'),
        (5, 1, 4, 'Persuasion', ' Jane Austen'),
        (6, 1, 1, 'Beowulf', NULL),
        (9, 1, 1, 'Voyages', '  ')
      """)
    for shard in ["1", "16MiB"] {
      let migrated = try library.migrate(["--shard-bytes", shard])
      #expect(migrated.status == 0, "\(migrated.errors)")
      let books = try migrated.table(
        "key", "title", "author",
        of: """
          SELECT b.Z_PK, b.ZTITLE, a.ZNAME FROM ZBOOK AS b LEFT JOIN ZAUTHOR AS a ON a.Z_PK = b.ZAUTHOR
           ORDER BY b.Z_PK
          """)
      #expect(
        books == """
          key  title       author
          1    Emma        Jane Austen
          2    Solaris     Stanisław Lem
          3    Persuasion  Jane Austen
          4    Beowulf     -
          5    Voyages     -
          """)
      #expect(
        try migrated.table("key", "name", of: "SELECT Z_PK, ZNAME FROM ZAUTHOR ORDER BY Z_PK")
          == """
          key  name
          1    Jane Austen
          2    Stanisław Lem
          """)
    }
  }

  @Test func `copy a value that is reached over two relationships`() throws {
    let migrated = try LibraryFixture(
      """
      INSERT INTO ZSERIES (Z_PK, Z_ENT, Z_OPT, ZNAME, ZPUBLISHER) VALUES
        (1, 9, 1, 'World Classics', 'Oxford'), (2, 9, 1, 'Pamphlets', NULL);
      INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT, ZTITLE, ZSERIES) VALUES
        (1, 1, 1, 'Emma', 1), (2, 1, 1, 'Notes', 2), (3, 1, 1, 'Alone', NULL);
      INSERT INTO ZEDITION (Z_PK, Z_ENT, Z_OPT, ZYEAR, ZBOOK) VALUES
        (1, 2, 1, 1975, 1), (2, 2, 1, 2003, 1), (3, 2, 1, 1990, 2), (4, 2, 1, NULL, 3),
        (5, 2, 1, 2010, NULL)
      """
    ).migrate()
    #expect(migrated.status == 0, "\(migrated.errors)")
    let editions = try migrated.table(
      "year", "book", "publisher",
      of: """
        SELECT e.ZYEAR, b.ZTITLE, e.ZPUBLISHER FROM ZEDITION AS e LEFT JOIN ZBOOK AS b ON b.Z_PK = e.ZBOOK
         ORDER BY e.Z_PK
        """)
    #expect(
      editions == """
        year  book   publisher
        1975  Emma   Oxford
        2003  Emma   Oxford
        1990  Notes  -
        -     Alone  -
        2010  -      -
        """)
  }

  @Test func `compute an identifier that every run gives again`() throws {
    let library = try LibraryFixture(
      """
      INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZSHELFMARK) VALUES
        (1, 3, 1, 'PR 4034'), (2, 3, 1, 'PR 4034'), (7, 3, 1, 'PG 7158')
      """)
    let tables = try ["1", "16MiB"].map { shard in
      try library.migrate(["--shard-bytes", shard]).table(
        "key", "mark", "identifier",
        of: "SELECT Z_PK, ZSHELFMARK, ZIDENTIFIER FROM ZITEM ORDER BY Z_PK")
    }
    #expect(
      tables[0] == """
        key  mark     identifier
        1    PR 4034  2E3E8CB11E0485A39EEF92E96C1B47CB
        2    PR 4034  2E3E8CB11F0485A39EEF92E96C1B4906
        3    PG 7158  2E3E8CB1240485A39EEF92E96C1B4F2D
        """)
    #expect(tables[1] == tables[0])
  }

  @Test func `parse a text into two attributes`() throws {
    let migrated = try LibraryFixture(
      """
      INSERT INTO ZLIBRARIAN (Z_PK, Z_ENT, Z_OPT, ZFULLNAME) VALUES
        (1, 4, 1, 'Le Guin, Ursula K.'), (2, 4, 1, 'Jorge Luis Borges'), (3, 4, 1, 'Hypatia'),
        (4, 4, 1, 'Alexandria,')
      """
    ).migrate()
    #expect(migrated.status == 0, "\(migrated.errors)")
    let librarians = try migrated.table(
      "family name", "given name",
      of: "SELECT ZFAMILYNAME, ZGIVENNAME FROM ZLIBRARIAN ORDER BY Z_PK")
    #expect(
      librarians == """
        family name  given name
        Le Guin      Ursula K.
        Borges       Jorge Luis
        Hypatia      -
        Alexandria   -
        """)
  }

  @Test func `link again by a key`() throws {
    let migrated = try LibraryFixture(
      """
      INSERT INTO ZMEMBER (Z_PK, Z_ENT, Z_OPT, ZNAME, ZNUMBER, ZCITY) VALUES
        (3, 6, 1, 'Ada', 1001, 'London'), (4, 6, 1, 'Emmy', 1002, NULL);
      INSERT INTO ZLOAN (Z_PK, Z_ENT, Z_OPT, ZMEMBERNUMBER, ZDUE) VALUES
        (1, 5, 1, 1002, 0.0), (2, 5, 1, 1001, 86400.0), (3, 5, 1, 1002, 172800.0),
        (4, 5, 1, 999, 0.0)
      """
    ).migrate(["--shard-bytes", "1"])
    #expect(migrated.status == 0, "\(migrated.errors)")
    let loans = try migrated.table(
      "due", "member",
      of: """
        SELECT CAST(l.ZDUE AS INTEGER), m.ZNAME FROM ZLOAN AS l LEFT JOIN ZMEMBER AS m ON m.Z_PK = l.ZMEMBER
         ORDER BY l.Z_PK
        """)
    #expect(
      loans == """
        due     member
        0       Emmy
        86400   Ada
        172800  Emmy
        0       -
        """)
  }

  @Test func `split an entity into two`() throws {
    let migrated = try LibraryFixture(
      """
      INSERT INTO ZMEMBER (Z_PK, Z_ENT, Z_OPT, ZNAME, ZNUMBER, ZSTREET, ZPOSTALCODE, ZCITY) VALUES
        (1, 6, 1, 'Ada', 1, '12 St James''s Square', 'SW1', 'London'),
        (2, 6, 1, 'Emmy', 2, NULL, NULL, NULL),
        (3, 6, 1, 'Grace', 3, NULL, NULL, 'Arlington')
      """
    ).migrate(["--shard-bytes", "1"])
    #expect(migrated.status == 0, "\(migrated.errors)")
    // Both sides: the address knows its member, too.
    let members = try migrated.table(
      "number", "name", "street", "code", "city", "back",
      of: """
        SELECT m.ZNUMBER, m.ZNAME, a.ZSTREET, a.ZPOSTALCODE, a.ZCITY, a.ZMEMBER = m.Z_PK
          FROM ZMEMBER AS m LEFT JOIN ZADDRESS AS a ON a.Z_PK = m.ZADDRESS
         ORDER BY m.Z_PK
        """)
    #expect(
      members == """
        number  name   street                code  city       back
        1       Ada    12 St James's Square  SW1   London     1
        2       Emmy   -                     -     -          -
        3       Grace  -                     -     Arlington  1
        """)
  }

  @Test func `drop objects by a condition`() throws {
    let migrated = try LibraryFixture(
      """
      INSERT INTO ZREVIEW (Z_PK, Z_ENT, Z_OPT, ZISSPAM, ZSTARS, ZTEXT) VALUES
        (1, 8, 1, 0, 5, 'A marvel'), (2, 8, 1, 1, 5, 'A marvel'), (3, 8, 1, 0, 4, 'buy buy buy'),
        (4, 8, 1, 0, 1, NULL), (5, 8, 1, 0, 3, 'so so')
      """
    ).migrate()
    #expect(migrated.status == 0, "\(migrated.errors)")
    let reviews = try migrated.table(
      "key", "stars", "text", of: "SELECT Z_PK, ZSTARS, ZTEXT FROM ZREVIEW ORDER BY Z_PK")
    #expect(
      reviews == """
        key  stars  text
        1    5      A marvel
        2    1      -
        3    3      so so
        """)
  }

  @Test func `turn numbers into words by a method of their own`() throws {
    let migrated = try LibraryFixture(
      """
      INSERT INTO ZSHELF (Z_PK, Z_ENT, Z_OPT, ZKINDCODE, ZLABEL) VALUES
        (1, 10, 1, 3, 'A'), (2, 10, 1, 0, 'B'), (3, 10, 1, 1, 'C')
      """
    ).migrate()
    #expect(migrated.status == 0, "\(migrated.errors)")
    #expect(
      try migrated.table("label", "kind", of: "SELECT ZLABEL, ZKIND FROM ZSHELF ORDER BY Z_PK")
        == """
        label  kind
        A      children
        B      fiction
        C      science
        """)
  }

  @Test func `merge duplicates, and the books of all of them`() throws {
    let library = try LibraryFixture(
      """
      INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES
        (1, 11, 1, 'Sea'), (2, 11, 1, 'love'), (3, 11, 1, 'sea '), (4, 11, 1, 'SEA');
      INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT, ZTITLE) VALUES
        (1, 1, 1, 'Moby-Dick'), (2, 1, 1, 'Persuasion'), (3, 1, 1, 'Emma');
      INSERT INTO Z_1TAGS (Z_1BOOKS, Z_11TAGS) VALUES (1, 1), (1, 4), (2, 2), (2, 3), (3, 2)
      """)
    for shard in ["1", "16MiB"] {
      let migrated = try library.migrate(["--shard-bytes", shard])
      #expect(migrated.status == 0, "\(migrated.errors)")
      #expect(
        try migrated.table("key", "name", of: "SELECT Z_PK, ZNAME FROM ZTAG ORDER BY Z_PK") == """
          key  name
          1    sea
          2    love
          """)
      let books = try migrated.table(
        "book", "tag",
        of: """
          SELECT b.ZTITLE, t.ZNAME FROM Z_3TAGS AS j
            JOIN ZBOOK AS b ON b.Z_PK = j.Z_3BOOKS JOIN ZTAG AS t ON t.Z_PK = j.Z_13TAGS
           ORDER BY b.Z_PK, t.Z_PK
          """)
      #expect(
        books == """
          book        tag
          Moby-Dick   sea
          Persuasion  sea
          Persuasion  love
          Emma        love
          """)
    }
  }

  @Test func `validate what no rule of a model can say`() throws {
    let rows = "INSERT INTO ZPAYMENT (Z_PK, Z_ENT, Z_OPT, ZCENTS) VALUES (1, 7, 1, 250), (2, 7, 1, "
    let sound = try LibraryFixture(rows + "-50)").migrate()
    #expect(sound.status == 0, "\(sound.errors)")
    #expect(
      try sound.table("cents", of: "SELECT ZCENTS FROM ZPAYMENT ORDER BY Z_PK") == """
        cents
        250
        -50
        """)

    let library = try LibraryFixture(rows + "0)")
    let refused = try library.migrate()
    #expect(refused.status == 65)
    #expect(refused.result.verdict == "refused")
    #expect(refused.result.code == 134_170)
    let reason = try #require(refused.result.reasons?.first)
    #expect(reason.error?.domain == "LibraryErrorDomain")
    #expect(reason.error?.code == 1)
    #expect(reason.error?.description == "1 payments are of 0 cents, which the till refuses")
    #expect(
      reason.message
        == "the policy PaymentAuditPolicy of PaymentToPayment failed in performCustomValidation: "
        + "1 payments are of 0 cents, which the till refuses")
    #expect(!FileManager.default.fileExists(atPath: refused.output))
  }

  /// The payment without an amount would be one of 0 cents.
  @Test(arguments: [("250", 0), ("0", 65)] as [(String, Int32)])
  func `validate what is committed, where objects are set aside`(cents: String, status: Int32)
    throws
  {
    let library = try LibraryFixture(
      """
      INSERT INTO ZPAYMENT (Z_PK, Z_ENT, Z_OPT, ZCENTS)
      VALUES (1, 7, 1, \(cents)), (2, 7, 1, NULL), (3, 7, 1, 5)
      """)
    let migrated = try library.migrate(["--invalid", "set-aside"])
    #expect(migrated.status == status, "\(migrated.errors)")
    guard status == 0 else {
      #expect(
        migrated.result.reasons?.first?.error?.description
          == "1 payments are of 0 cents, which the till refuses")
      return
    }
    #expect(
      try migrated.table("cents", of: "SELECT ZCENTS FROM ZPAYMENT ORDER BY Z_PK") == """
        cents
        250
        5
        """)
  }
}
