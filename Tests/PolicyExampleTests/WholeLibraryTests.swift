import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

/// All policies at once, over some hundred objects.
@Suite(.serialized) struct `A library that is migrated by policies` {
  /// 120 books by 17 authors, 30 tags that become 10, 50 loans of 20 members.
  private static let rows = """
    CREATE TEMP TABLE n AS
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 120) SELECT i FROM n;
    INSERT INTO ZSERIES (Z_PK, Z_ENT, Z_OPT, ZNAME, ZPUBLISHER)
      SELECT i, 9, 1, 'Series ' || i, iif(i % 3, 'Publisher ' || (i % 4), NULL) FROM n WHERE i <= 12;
    INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT, ZTITLE, ZAUTHORNAME, ZSERIES)
      SELECT 2 * i, 1, 1, 'Book ' || i, iif(i % 11, 'Author ' || (i * 7 % 17), NULL),
             iif(i % 5, 1 + i % 12, NULL) FROM n;
    INSERT INTO ZEDITION (Z_PK, Z_ENT, Z_OPT, ZYEAR, ZBOOK)
      SELECT i, 2, 1, 1900 + i, iif(i % 7, 2 * (1 + i * 13 % 120), NULL) FROM n;
    INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZSHELFMARK) SELECT i, 3, 1, 'PR ' || i FROM n;
    INSERT INTO ZLIBRARIAN (Z_PK, Z_ENT, Z_OPT, ZFULLNAME)
      SELECT i, 4, 1, iif(i % 2, 'Family' || i || ', Given', 'Given Family' || i) FROM n WHERE i <= 9;
    INSERT INTO ZMEMBER (Z_PK, Z_ENT, Z_OPT, ZNAME, ZNUMBER, ZCITY)
      SELECT i, 6, 1, 'Member ' || i, 1000 + i, iif(i % 4, 'City ' || (i % 3), NULL) FROM n
       WHERE i <= 20;
    INSERT INTO ZLOAN (Z_PK, Z_ENT, Z_OPT, ZMEMBERNUMBER, ZDUE)
      SELECT i, 5, 1, 1000 + i * 3 % 23, i * 86400.0 FROM n WHERE i <= 50;
    INSERT INTO ZPAYMENT (Z_PK, Z_ENT, Z_OPT, ZCENTS) SELECT i, 7, 1, i * 5 FROM n;
    INSERT INTO ZREVIEW (Z_PK, Z_ENT, Z_OPT, ZISSPAM, ZSTARS, ZTEXT)
      SELECT i, 8, 1, i % 5 = 0, i % 6, 'Review ' || i FROM n;
    INSERT INTO ZSHELF (Z_PK, Z_ENT, Z_OPT, ZKINDCODE, ZLABEL) SELECT i, 10, 1, i % 4, 'Shelf ' || i
      FROM n WHERE i <= 40;
    INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME)
      SELECT i, 11, 1, iif(i % 3, 'Tag ', 'TAG ') || (i % 10) FROM n WHERE i <= 30;
    INSERT INTO Z_1TAGS (Z_1BOOKS, Z_11TAGS)
      SELECT 2 * i, 1 + i * 7 % 30 FROM n UNION SELECT 2 * i, 1 + i * 11 % 30 FROM n;
    DROP TABLE n
    """

  @Test func `comes out the same, whatever the shards, the workers and the mapping's form`() throws
  {
    let library = try LibraryFixture(Self.rows)
    let xcode = LibraryFixture.folder.appendingPathComponent("LibraryToLibrary2.xcmappingmodel")
    let runs = [
      (LibraryFixture.mapping, "1", "16MiB"), (LibraryFixture.mapping, "3", "200"),
      (xcode.path, "2", "1KiB"),
    ]
    var contents: [String] = []
    for (mapping, workers, shard) in runs {
      let migrated = try library.migrate(
        ["--workers", workers, "--shard-bytes", shard], mapping: mapping)
      #expect(migrated.status == 0, "\(migrated.errors)")
      #expect(migrated.result.verdict == "migrated")
      contents.append(try content(migrated))
    }
    let counts = contents[0].split(separator: "\n").filter { $0.hasPrefix("Z") }
    #expect(
      counts == [
        "ZADDRESS 15", "ZAUTHOR 17", "ZBOOK 120", "ZEDITION 120", "ZITEM 120", "ZLIBRARIAN 9",
        "ZLOAN 50", "ZMEMBER 20", "ZPAYMENT 120", "ZREVIEW 96", "ZSERIES 12", "ZSHELF 40",
        "ZTAG 10",
        "Z_3TAGS 216", "Z_PRIMARYKEY 13",
      ])
    // The texts are long: only whether they are equal is told.
    let areEqual = contents.map { $0 == contents[0] }
    #expect(areEqual == [true, true, true])
  }

  /// Every row of every table of the application: its name, the number of rows, the rows.
  private func content(_ outcome: LibraryFixture.Outcome) throws -> String {
    let connection = try Connection(path: outcome.output, mode: .immutable)
    let tables = try connection.rows(
      """
      SELECT name FROM sqlite_master
       WHERE type = 'table' AND name NOT IN ('Z_METADATA', 'Z_MODELCACHE') ORDER BY name
      """
    ).compactMap { $0.first?.text }
    return try tables.map { table in
      let rows = try connection.rows("SELECT * FROM \"\(table)\" ORDER BY 1, 2")
      return "\(table) \(rows.count)\n" + rows.map(\.description).joined(separator: "\n")
    }.joined(separator: "\n")
  }

  @Test(.enabled(if: OracleJudge.isHere, "skipped: ../shared is not there"))
  func `is what Core Data would have written, says the oracle`() throws {
    let library = try LibraryFixture(Self.rows)
    let model = LibraryFixture.models + "/Library 2.xcdatamodel"
    for arguments in [[], ["--renumber"]] {
      let migrated = try library.migrate(arguments)
      #expect(migrated.status == 0, "\(migrated.errors)")
      let check = try OracleJudge.run("check", migrated.output, "--model", model, "--validation")
      #expect(check.status == 0, "\(check.output)")
      let schema = try OracleJudge.run("ddl", migrated.output, "--model", model, "--strict-order")
      #expect(schema.status == 0, "\(schema.output)")
    }
  }
}
