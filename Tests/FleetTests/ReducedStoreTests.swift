import GodwitDurableFiles
import GodwitSQLite
import SystemPackage
import Testing

@testable import GodwitFleet

@Suite struct `A store without its values` {
  /// What becomes of values of one column, in hexadecimal.
  private func scrubbed(
    _ values: [String], isExternal: Bool, _ filler: ReducedStore.Filler
  ) throws -> [String] {
    let scratch = try Scratch()
    let path = scratch.path.appending("a.sqlite")
    let store = try Connection(path: path.string, mode: .create)
    try store.execute(
      "CREATE TABLE ZTHING (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZDATA BLOB)")
    for value in values { try store.execute("INSERT INTO ZTHING (ZDATA) VALUES (x'\(value)')") }
    try store.close()
    let column = ReducedStore.Column(table: "ZTHING", name: "ZDATA", isExternal: isExternal)
    try ReducedStore(path).scrub(column, with: filler)
    return try Connection(path: path.string, mode: .readOnly)
      .rows("SELECT hex(ZDATA) FROM ZTHING ORDER BY Z_PK").compactMap { $0[0].text }
  }

  /// A marker, the UUID of a file in capitals, and a zero byte.
  static let file =
    "02" + "3132333441424344" + "2D31323334" + "2D31323334" + "2D31323334"
    + "2D313233343536373839303132" + "00"

  @Test(arguments: [
    // Nothing but a marker of external storage stays.
    ("", false, ""), ("41", false, "00"), ("01", false, "00"), ("02", false, "00"),
    ("0141", false, "0000"), ("302D6E", false, "000000"),
    ("41", true, "00"), ("01", true, "01"), ("02", true, "02"), ("0141", true, "0100"),
    ("0241", true, "0200"), ("0341", true, "0000"), ("0041", true, "0000"),
    (Self.file, true, Self.file), (Self.file, false, String(repeating: "00", count: 38)),
  ])
  func `keeps a byte only where it says where the data is`(
    value: String, isExternal: Bool, left: String
  ) throws {
    #expect(try scrubbed([value], isExternal: isExternal, .uniform) == [left])
  }

  @Test func `has other values in each row where they must differ`() throws {
    #expect(
      try scrubbed(["41", "42", "414243", "0141", ""], isExternal: false, .numbered)
        == ["31", "32", "303033", "3034", ""])
    #expect(
      try scrubbed(["0141", "0242", "01", "0342"], isExternal: true, .numbered)
        == ["0131", "0232", "01", "3034"])
  }

  @Test func `has nothing in its pages but its rows`() throws {
    let scratch = try Scratch()
    let path = scratch.path.appending("a.sqlite")
    let store = try Connection(path: path.string, mode: .create)
    try store.execute(
      """
      PRAGMA secure_delete = OFF;
      CREATE TABLE ZTHING (Z_PK INTEGER PRIMARY KEY, ZDATA);
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
      INSERT INTO ZTHING SELECT i, 'a secret of ' || i FROM n;
      DELETE FROM ZTHING WHERE Z_PK % 3 > 0; UPDATE ZTHING SET ZDATA = 'x';
      """)
    try store.close()
    let copy = scratch.path.appending("b.sqlite")
    try ReducedStore(path).vacuum(into: copy)
    func holdsSecret(_ path: FilePath) throws -> Bool {
      let bytes = String(decoding: try RegularFile.bytes(of: path, limit: 1 << 20), as: UTF8.self)
      return bytes.contains("secret")
    }
    #expect(try holdsSecret(path) && !holdsSecret(copy))
  }
}
