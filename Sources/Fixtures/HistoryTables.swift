import GodwitObjectModel
import GodwitSQLite

/// The tables of persistent history, with changes that point at objects of the store.
///
/// Source: `core-data-sqlite-format.md` §10, framework 1145 and later.
enum HistoryTables {
  static let statements = [
    "CREATE TABLE ACHANGE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, "
      + "ZCHANGETYPE INTEGER, ZENTITY INTEGER, ZENTITYPK INTEGER, ZTRANSACTIONID INTEGER, "
      + "ZCOLUMNS BLOB )",
    "CREATE TABLE ATRANSACTION ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, "
      + "ZAUTHORTS INTEGER, ZBUNDLEIDTS INTEGER, ZCONTEXTNAMETS INTEGER, ZPROCESSIDTS INTEGER, "
      + "ZTIMESTAMP FLOAT, ZAUTHOR VARCHAR, ZBUNDLEID VARCHAR, ZCONTEXTNAME VARCHAR, "
      + "ZPROCESSID VARCHAR, ZQUERYGEN BLOB )",
    "CREATE TABLE ATRANSACTIONSTRING ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, "
      + "ZNAME VARCHAR )",
    "CREATE INDEX ACHANGE_ZTRANSACTIONID_INDEX ON ACHANGE (ZTRANSACTIONID)",
    "CREATE INDEX ATRANSACTION_ZAUTHORTS_INDEX ON ATRANSACTION (ZAUTHORTS)",
    "CREATE INDEX ATRANSACTION_ZBUNDLEIDTS_INDEX ON ATRANSACTION (ZBUNDLEIDTS)",
    "CREATE INDEX ATRANSACTION_ZCONTEXTNAMETS_INDEX ON ATRANSACTION (ZCONTEXTNAMETS)",
    "CREATE INDEX ATRANSACTION_ZPROCESSIDTS_INDEX ON ATRANSACTION (ZPROCESSIDTS)",
    "CREATE INDEX Z_TRANSACTION_TransactionAuthorIndex ON ATRANSACTION "
      + "(ZAUTHOR COLLATE BINARY ASC)",
    "CREATE INDEX Z_TRANSACTION_TransactionTimestampIndex ON ATRANSACTION "
      + "(ZTIMESTAMP COLLATE BINARY ASC)",
    "CREATE UNIQUE INDEX Z_TRANSACTIONSTRING_UNIQUE_NAME ON ATRANSACTIONSTRING "
      + "(ZNAME COLLATE BINARY ASC)",
  ]

  /// Changes of one transaction.
  private static let changesEach = 8

  static func write(_ spaces: KeySpaces, connection: Connection, seed: UInt64) throws {
    for statement in statements { try connection.execute(statement) }
    var random = SplitMix64(seed: SplitMix64.seed(seed, "history"))
    let names = ["app", "com.example.Recipes", "viewContext", "Recipes"]
    for (index, name) in names.enumerated() {
      _ = try connection.rows(
        "INSERT INTO ATRANSACTIONSTRING (Z_PK, Z_ENT, ZNAME) VALUES (?1, 16003, ?2)",
        [.integer(Int64(index + 1)), .text(name)])
    }
    let insertion = try connection.prepare(
      "INSERT INTO ACHANGE (Z_PK, Z_ENT, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID, ZCOLUMNS) "
        + "VALUES (?1, 16001, ?2, ?3, ?4, ?5, ?6)")
    var changes = 0
    for root in spaces.hierarchy.roots {
      guard let space = spaces.spaces[root] else { continue }
      for slot in Swift.stride(from: 0, to: space.count, by: 4) {
        changes += 1
        let share = space.shares[space.share(ofOrdinal: space.ordinal(ofSlot: slot))]
        let isUpdate = random.next() & 1 == 0
        try insertion.bind(1, Int64(changes))
        try insertion.bind(2, isUpdate ? 1 : 0)
        try insertion.bind(3, Int64(share.number))
        try insertion.bind(4, space.key(ofSlot: slot))
        try insertion.bind(5, Int64((changes - 1) / changesEach + 1))
        try insertion.bind(6, isUpdate ? .blob([0x05]) : SQLiteValue.null)
        try insertion.step()
        insertion.reset()
      }
    }
    let transactions = (changes + changesEach - 1) / changesEach
    for index in 0..<transactions {
      _ = try connection.rows(
        "INSERT INTO ATRANSACTION (Z_PK, Z_ENT, ZAUTHORTS, ZBUNDLEIDTS, ZCONTEXTNAMETS, "
          + "ZPROCESSIDTS, ZTIMESTAMP) VALUES (?1, 16002, 1, 2, 3, 4, ?2)",
        [.integer(Int64(index + 1)), .real(700_000_000 + Double(index) + random.fraction())])
    }
    let numbers = [
      (16001, "CHANGE", changes), (16002, "TRANSACTION", transactions),
      (16003, "TRANSACTIONSTRING", names.count),
    ]
    for (number, name, highest) in numbers {
      _ = try connection.rows(
        "INSERT INTO Z_PRIMARYKEY (Z_ENT, Z_NAME, Z_SUPER, Z_MAX) VALUES (?1, ?2, 0, ?3)",
        [.integer(Int64(number)), .text(name), .integer(Int64(highest))])
    }
  }
}
