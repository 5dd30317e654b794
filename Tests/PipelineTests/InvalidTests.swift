import Foundation
import GodwitSQLite
import Testing

/// Orders of customers; the destination wants a number of each order, an amount of at least 0, and a
/// customer of each parcel.
@Suite struct `Rows that the destination refuses` {
  private static func model(_ rules: Bool) -> String {
    """
    <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
    <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" \
    userDefinedModelVersionIdentifier="\(rules ? 2 : 1)">
      <entity name="Customer">
        <attribute name="name" optional="YES" attributeType="String"/>
        <relationship name="orders" optional="YES" toMany="YES" deletionRule="Cascade" \
    destinationEntity="Order" inverseName="customer" inverseEntity="Order"/>
      </entity>
      <entity name="Order">
        <attribute name="number" optional="\(rules ? "NO" : "YES")" attributeType="String"/>
        <attribute name="amount" optional="YES" attributeType="Double" \
    defaultValueString="1.5" usesScalarValueType="YES" \(rules ? #"minValueString="0""# : "")/>
        \(rules ? #"<attribute name="remark" optional="YES" attributeType="String"/>"# : "")
        <relationship name="customer" optional="YES" maxCount="1" deletionRule="Nullify" \
    destinationEntity="Customer" inverseName="orders" inverseEntity="Customer"/>
        <relationship name="parcels" optional="YES" toMany="YES" deletionRule="Deny" \
    destinationEntity="Parcel" inverseName="order" inverseEntity="Order"/>
      </entity>
      <entity name="Parcel">
        <attribute name="weight" optional="YES" attributeType="Double" usesScalarValueType="YES"/>
        <relationship name="order" optional="\(rules ? "NO" : "YES")" maxCount="1" \
    deletionRule="Nullify" destinationEntity="Order" inverseName="parcels" inverseEntity="Order"/>
      </entity>
    </model>
    """
  }

  /// Four orders, of which one has no number and another a negative amount.
  func folder(_ invalid: String) throws -> PipelineFolder {
    let folder = try PipelineFolder("total-cost")
    for version in [1, 2] {
      let name = version == 1 ? "Shop" : "Shop 2"
      try FileManager.default.createDirectory(
        atPath: folder.path("Shop.xcdatamodeld/\(name).xcdatamodel"),
        withIntermediateDirectories: true)
      try Self.model(version == 2).write(
        toFile: folder.path("Shop.xcdatamodeld/\(name).xcdatamodel/contents"), atomically: true,
        encoding: .utf8)
    }
    try """
    stores: { roots: stores }
    models: Shop.xcdatamodeld
    destination: Shop 2
    mappings: shop.yaml
    invalid: \(invalid)
    """.write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
    let made = try Godwit.run([
      "mapping", "infer", folder.path("Shop.xcdatamodeld/Shop.xcdatamodel"),
      folder.path("Shop.xcdatamodeld/Shop 2.xcdatamodel"), "-o", folder.path("shop.yaml"),
    ])
    try #require(made.status == 0, "\(made.messages)")
    try folder.write(
      "stores/a.sqlite", "Shop.xcdatamodeld/Shop",
      """
      INSERT INTO ZCUSTOMER (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 1, 1, 'Ada');
      INSERT INTO ZORDER (Z_PK, Z_ENT, Z_OPT, ZNUMBER, ZAMOUNT, ZCUSTOMER) VALUES
        (1, 2, 1, 'A', 5, 1), (2, 2, 1, NULL, 5, 1), (3, 2, 1, 'C', -2, NULL), (4, 2, 1, 'D', 1, 1);
      INSERT INTO ZPARCEL (Z_PK, Z_ENT, Z_OPT, ZWEIGHT, ZORDER) VALUES (1, 3, 1, 2, 1), (2, 3, 1, 3, 2)
      """)
    return folder
  }

  @Test func `refuse the migration`() throws {
    let folder = try folder("fail")
    let run = try Godwit.run(folder)
    #expect(run.status == 3 && run.counts == "1 found, 1 refused")
    #expect(folder.storeFiles() == ["a.sqlite"])
  }

  @Test func `are set aside, with those that need them, and all rows are accounted for`() throws {
    let folder = try folder("set-aside")
    let run = try Godwit.run(folder)
    #expect(run.status == 0, "\(run.messages)")
    #expect(run.counts == "1 found, 1 migrated")
    let result = try #require(run.results.values.first)
    // Both orders, and the parcel of one of them, which must have an order.
    #expect(result["setAside"] as? Int == 3)
    #expect(result["rows"] as? Int == 4, "7 rows, less 3")
    let counts = try #require(result["counts"] as? [String: Int])
    #expect(counts == ["Customer": 1, "Order": 2, "Parcel": 1])
    #expect(
      try folder.table("stores/a.sqlite", "SELECT ZNUMBER FROM ZORDER ORDER BY 1") == ["A", "D"])
    #expect(try folder.table("stores/a.sqlite", "SELECT Z_PK FROM ZPARCEL") == ["1"])
    let rejects = try #require(folder.storeFiles().first { $0.contains(".godwit-rejects-") })
    #expect(result["rejects"] as? String == folder.path("stores/" + rejects))
    #expect(
      try folder.table(
        "stores/" + rejects,
        "SELECT entity, Z_PK, code, property, value FROM ZREJECT ORDER BY entity, Z_PK")
        == ["Order 2 1570 number -", "Order 3 1620 amount -2.0", "Parcel 2 1570 order -"])
    let losses = try #require(result["losses"] as? [[String: Any]])
    #expect(
      losses.filter { $0["kind"] as? String == "set-aside" }.compactMap { $0["count"] as? Int }
        .reduce(0, +) == 3)
    // The customer stays and loses an order; between the order and its parcel nothing else is lost.
    let cleared = losses.filter { $0["kind"] as? String == "reference" }
    #expect(cleared.count == 1 && cleared.first?["count"] as? Int == 1)
    #expect(cleared.first?["property"] as? String == "orders")
    #expect(try Godwit.run(["verify", folder.path("stores/a.sqlite")]).status == 0)
    #expect(try Godwit.run(folder).counts == "1 found, 1 same-model", "rejects are no store")
  }

  /// One lets nobody remove an order, another writes down what becomes of one.
  @Test(arguments: ["set-aside", "default"])
  func `are changed and removed without a trigger of the application`(invalid: String) throws {
    let folder = try folder(invalid)
    let store = try Connection(path: folder.path("stores/a.sqlite"), mode: .readWrite)
    try store.execute(
      """
      UPDATE ZORDER SET ZNUMBER = 'B' WHERE Z_PK = 2;
      CREATE TABLE log (what);
      CREATE TRIGGER keep BEFORE DELETE ON ZORDER BEGIN SELECT RAISE(IGNORE); END;
      CREATE TRIGGER note AFTER UPDATE ON ZORDER BEGIN
        INSERT INTO log VALUES (NEW.Z_PK); UPDATE ZCUSTOMER SET ZNAME = 'Eve'; END
      """)
    try store.close()
    let run = try Godwit.run(folder)
    #expect(run.status == 0, "\(run.messages)")
    func table(_ sql: String) throws -> [String] { try folder.table("stores/a.sqlite", sql) }
    let orders =
      invalid == "default" ? ["A 5.0", "B 5.0", "C 1.5", "D 1.0"] : ["A 5.0", "B 5.0", "D 1.0"]
    #expect(try table("SELECT ZNUMBER, ZAMOUNT FROM ZORDER ORDER BY 1") == orders)
    #expect(try table("SELECT what FROM log").isEmpty)
    #expect(try table("SELECT ZNAME FROM ZCUSTOMER") == ["Ada"])
    #expect(
      try table("SELECT name FROM sqlite_master WHERE type = 'trigger' ORDER BY rowid")
        == ["keep", "note"])
  }

  /// What is said of a store by whoever finishes its commit: with checkpoints on the disk, and by a pipeline,
  /// which keeps a small store's in memory.
  @Test(arguments: [false, true])
  func `are accounted for by the start that finishes a killed one's commit`(isPipeline: Bool) throws
  {
    var finished = 0
    for step in stride(from: 12, to: 90, by: 2) {
      let folder = try folder("set-aside")
      let words =
        isPipeline
        ? ["run", folder.path("pipeline.yaml"), "--json"]
        : migration(folder, "set-aside") + ["--json"]
      guard try Godwit.run(words, killAfter: step).status == -SIGKILL else { break }
      let again = try Godwit.run(words)
      #expect(again.status == 0, "step \(step): \(again.messages)")
      // A store that was finished and cleared away has nothing to tell any more.
      guard let result = again.results.values.first, result["verdict"] as? String == "migrated"
      else { continue }
      finished += 1
      #expect(
        result["setAside"] as? Int == 3 && result["rows"] as? Int == 4, "step \(step): \(result)")
      let losses = result["losses"] as? [[String: Any]] ?? []
      #expect(losses.count { $0["kind"] as? String == "set-aside" } == 2, "step \(step)")
      #expect(losses.count { $0["kind"] as? String == "reference" } == 1, "step \(step)")
      let rejects = try #require(result["rejects"] as? String, "step \(step)")
      #expect(FileManager.default.fileExists(atPath: rejects))
    }
    #expect(finished > 8)
  }

  private func migration(_ folder: PipelineFolder, _ invalid: String) -> [String] {
    [
      "migrate", folder.path("stores/a.sqlite"), "--models", folder.path("Shop.xcdatamodeld"),
      "--to", "Shop 2",
      "--mapping", folder.path("shop.yaml"), "--invalid", invalid,
    ]
  }

  @Test func `are counted once where no default helps`() throws {
    let folder = try folder("default")
    let run = try Godwit.run(migration(folder, "default") + ["--json"])
    #expect(run.status == 65, "\(run.messages)")
    let findings = run.summary["findings"] as? [[String: Any]] ?? []
    let numbers = findings.filter { $0["property"] as? String == "number" }
    #expect(numbers.compactMap { $0["count"] as? Int } == [1], "\(findings)")
  }

  @Test func `are named by the objects that they were made of, where they got other keys`() throws {
    let folder = try folder("set-aside")
    let store = try Connection(path: folder.path("stores/a.sqlite"), mode: .readWrite)
    try store.execute("DELETE FROM ZORDER WHERE Z_PK = 1; DELETE FROM ZPARCEL WHERE Z_PK = 1")
    try store.close()
    func migrate(_ invalid: String) throws -> Godwit.Run {
      try Godwit.run(migration(folder, invalid) + ["--renumber"])
    }
    let refused = try migrate("fail")
    #expect(refused.status == 65)
    #expect(refused.messages.contains("Z_PK 1"), "\(refused.messages)")
    #expect(refused.messages.contains("made of Order with Z_PK 2"), "\(refused.messages)")
    #expect(refused.messages.contains("made of Order with Z_PK 3"))
    #expect(try migrate("set-aside").status == 0)
    let rejects = try #require(folder.storeFiles().first { $0.contains(".godwit-rejects-") })
    #expect(
      try folder.table(
        "stores/" + rejects,
        "SELECT entity, Z_PK, sourceEntity, sourceZ_PK FROM ZREJECT ORDER BY entity, Z_PK")
        == ["Order 1 Order 2", "Order 2 Order 3", "Parcel 1 Parcel 2"])
  }

  @Test func `have no line in the table of object URIs when they are set aside`() throws {
    let folder = try folder("set-aside")
    let table = folder.path("uris.tsv")
    let run = try Godwit.run([
      "migrate", folder.path("stores/a.sqlite"), "--models", folder.path("Shop.xcdatamodeld"),
      "--to", "Shop 2", "--mapping", folder.path("shop.yaml"), "--invalid", "set-aside",
      "--uri-table", table,
    ])
    #expect(
      run.status == 0 && run.output.contains("4 pairs of object URIs"),
      "\(run.output)\(run.messages)")
    let objects = try String(contentsOfFile: table, encoding: .utf8).split(separator: "\n")
      .dropFirst().map { $0.split(separator: "/").suffix(2).joined(separator: " ") }
    #expect(objects == ["Customer p1", "Order p1", "Order p4", "Parcel p1"])
  }

  @Test(arguments: ["fail", "set-aside"])
  func `show when a plan tries a sample`(invalid: String) throws {
    let folder = try folder(invalid)
    let plan = try Godwit.run(["plan", folder.url.path])
    #expect(plan.status == (invalid == "fail" ? 3 : 0), "\(plan.output)")
    #expect(plan.output.contains("Of a sample of 1 store"))
    #expect(plan.output.contains("refused: validation") == (invalid == "fail"))
    #expect(plan.output.contains("objects set aside") == (invalid == "set-aside"))
    let json = try folder.godwit(["plan"]).lines("fleet-plan").first?["trial"] as? [String: Any]
    #expect(json?["stores"] as? Int == 1)
    #expect((json?["reasons"] as? [Any])?.count == (invalid == "fail" ? 1 : 0))
    let blind = try Godwit.run(["plan", folder.url.path, "--samples", "0"])
    #expect(blind.status == 0 && !blind.output.contains("sample"))
  }

  @Test func `get the default value where there is one`() throws {
    let folder = try folder("default")
    let refused = try Godwit.run(folder)
    #expect(refused.counts == "1 found, 1 refused", "a number has no default")
    let store = try Connection(path: folder.path("stores/a.sqlite"), mode: .readWrite)
    try store.execute("UPDATE ZORDER SET ZNUMBER = 'B' WHERE Z_PK = 2")
    try store.close()
    let run = try Godwit.run(folder)
    #expect(run.status == 0, "\(run.messages)")
    #expect(
      try folder.table("stores/a.sqlite", "SELECT ZNUMBER, ZAMOUNT FROM ZORDER ORDER BY 1")
        == ["A 5.0", "B 5.0", "C 1.5", "D 1.0"])
    let losses = try #require(run.results.values.first?["losses"] as? [[String: Any]])
    let defaulted = losses.filter { $0["kind"] as? String == "defaulted" }
    #expect(defaulted.count == 1 && defaulted.first?["property"] as? String == "amount")
    #expect(!folder.storeFiles().contains { $0.contains("rejects") })
  }

  @Test func `are set aside alike, however often the run is killed`() throws {
    let calm = try folder("set-aside")
    #expect(try Godwit.run(calm).status == 0)
    let stormy = try folder("set-aside")
    var (step, kills) = (3, 0)
    while try Godwit.run(stormy, killAfter: step).status == -SIGKILL {
      kills += 1
      step += 9 + step / 6
    }
    #expect(kills > 0)
    #expect(try stormy.content("stores/a.sqlite") == calm.content("stores/a.sqlite"))
    #expect(stormy.storeFiles().count { $0.contains(".godwit-rejects-") } == 1)
  }

  @Test(arguments: [false, true])
  func `leave one file beside the store, wherever the run was killed`(isMended: Bool) throws {
    var step = isMended ? 2 : 1
    while true {
      let folder = try folder("set-aside")
      let wasKilled = try Godwit.run(folder, killAfter: step).status == -SIGKILL
      let isMigrated =
        try folder.table(
          "stores/a.sqlite", "SELECT 1 FROM pragma_table_info('ZORDER') WHERE name = 'ZREMARK'")
        == ["1"]
      if isMended, !isMigrated {
        let connection = try Connection(path: folder.path("stores/a.sqlite"), mode: .readWrite)
        try connection.execute("UPDATE ZORDER SET ZNUMBER = 'B', ZAMOUNT = abs(ZAMOUNT)")
        try connection.close()
      }
      #expect(try Godwit.run(folder).status == 0, "killed at step \(step)")
      let rest = folder.storeFiles().filter { !$0.contains(".godwit-backup-") }
      let rejects = rest.count { $0.contains(".godwit-rejects-") }
      #expect(rest.count == 1 + rejects, "killed at step \(step): \(rest)")
      #expect(rejects == (isMended && !isMigrated ? 0 : 1), "killed at step \(step)")
      if !wasKilled { break }
      step += 2
    }
    #expect(step > 20)
  }
}
