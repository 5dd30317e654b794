import Foundation
import GodwitDurableFiles
import GodwitObjectModel
import GodwitRepair
import GodwitSQLite
import StoreFixtures
import SystemPackage
import Testing

/// What rows have, and what lies outside the file.
extension `A store with damaged content` {
  @Test func `accounts for references to objects that are gone`() throws {
    let patient = try Patient()
    let victim = try #require(
      try patient.read("SELECT ZRECIPE FROM ZSTEP WHERE ZRECIPE IS NOT NULL LIMIT 1")
        .first?[0].integer)
    let steps = try patient.read("SELECT Z_PK FROM ZSTEP WHERE ZRECIPE = \(victim)")
      .compactMap { $0[0].integer }
    try patient.sql("DELETE FROM ZRECIPE WHERE Z_PK = \(victim)")
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    let item = try #require(
      report.lost.first { $0.entity == "Step" && $0.property == "recipe" })
    #expect(item.subject == .reference && item.primaryKeys == KeyRanges(steps))
    #expect(
      try patient.read("SELECT count(*) FROM ZRECIPE WHERE Z_PK = \(victim)", of: patient.output)
        == [[.integer(0)]])
  }

  @Test(arguments: [
    ("UPDATE ZRECIPE SET ZNAME = NULL WHERE Z_PK = KEY", "name"),
    ("UPDATE ZRECIPE SET ZIDENTIFIER = x'01' WHERE Z_PK = KEY", "identifier"),
    ("UPDATE ZRECIPE SET ZRATING = 99999 WHERE Z_PK = KEY", "rating"),
    ("UPDATE ZRECIPE SET ZPREPTIME = 'soon' WHERE Z_PK = KEY", "prepTime"),
    ("UPDATE ZIMAGE SET ZDATA = x'' WHERE Z_PK = KEY", "data"),
    ("UPDATE ZIMAGE SET ZDATA = x'022F2E2E' WHERE Z_PK = KEY", "data"),
  ])
  func `keeps an object whose value is damaged`(sql: String, property: String) throws {
    let patient = try Patient()
    let table = sql.contains("ZIMAGE") ? "ZIMAGE" : "ZRECIPE"
    let before = try patient.keys(of: table)
    let key = before[before.count / 2]
    try patient.sql(sql.replacingOccurrences(of: "KEY", with: "\(key)"))
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(try patient.keys(of: table, in: patient.output) == before)
    #expect(
      report.lost.contains { item in
        item.subject == .value && item.property == property
          && item.primaryKeys == KeyRanges([key])
      })
  }

  @Test func `accounts for columns that are none of the model's`() throws {
    let patient = try Patient()
    try patient.sql("ALTER TABLE ZAUTHOR ADD COLUMN ZOWN")
    try patient.sql("UPDATE ZAUTHOR SET ZOWN = 1 WHERE Z_PK = (SELECT max(Z_PK) FROM ZAUTHOR)")
    let report = try patient.repair()
    #expect(
      report.lost.map(\.description) == ["ZAUTHOR.ZOWN is a column that is none of the model's"])
  }

  @Test func `takes a wrong entity number back`() throws {
    let patient = try Patient()
    let before = try patient.read("SELECT Z_PK, Z_ENT FROM ZAUTHOR ORDER BY Z_PK")
    let referred = try patient.read("SELECT max(ZAUTHOR) FROM ZRECIPE").first?[0].integer
    try patient.sql("UPDATE ZAUTHOR SET Z_ENT = 999 WHERE Z_PK = \(try #require(referred))")
    try patient.sql("UPDATE ZTAG SET Z_ENT = NULL")
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    let query = "SELECT Z_PK, Z_ENT FROM ZAUTHOR ORDER BY Z_PK"
    #expect(try patient.read(query, of: patient.output) == before)
    #expect(report.lost.isEmpty && report.rebuilt.count { $0.subject == .entity } == 2)
  }

  /// Tables and columns of relationships are named by the numbers that the store itself uses.
  @Test func `takes a wrong entity number of Z_PRIMARYKEY back`() throws {
    let patient = try Patient()
    let (whole, before) = (patient.bytes, try patient.allKeys())
    for name in patient.model.entities.map(\.name) {
      patient.bytes = whole
      try patient.sql("UPDATE Z_PRIMARYKEY SET Z_ENT = 77 WHERE Z_NAME = '\(name)'")
      let report = try patient.repair()
      #expect(try patient.failures().isEmpty, "\(name)")
      #expect(report.lost.isEmpty && report.doubtful.isEmpty, "\(name): \(report.lost)")
      for (table, keys) in before {
        #expect(try patient.keys(of: table, in: patient.output) == keys, "\(name)")
      }
    }
  }

  @Test func `gets places in ordered relationships`() throws {
    let patient = try Patient()
    let column = try #require(
      try patient.read("SELECT name FROM pragma_table_info('ZINGREDIENT')")
        .compactMap { $0[0].text }.first { $0.hasPrefix("Z_FOK_") })
    try patient.sql("UPDATE ZINGREDIENT SET \(column) = 5 WHERE ZRECIPE IS NOT NULL")
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(report.lost.contains { $0.subject == .order && $0.entity == "Ingredient" })
  }

  @Test func `keeps one of several equal values of a constraint`() throws {
    let patient = try Patient()
    let before = try patient.keys(of: "ZTAG")
    let key = try #require(before.last)
    let index = try #require(
      try patient.read("SELECT name FROM sqlite_master WHERE name LIKE 'Z_Tag_UNIQUE%'")
        .first?[0].text)
    try patient.sql(
      "DROP INDEX \(index); UPDATE ZTAG SET ZNAME = (SELECT min(ZNAME) FROM ZTAG)"
        + " WHERE Z_PK = \(key)")
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    // The name is required: the object stays, with another one.
    #expect(try patient.keys(of: "ZTAG", in: patient.output) == before)
    #expect(
      report.lost.contains { item in
        item.subject == .value && item.entity == "Tag" && item.property == "name"
          && item.primaryKeys == KeyRanges([key])
      })
  }

  @Test func `loses values whose external files are missing, and names files without an owner`()
    throws
  {
    let patient = try Patient { $0.externalFraction = 1 }
    let names = try FileManager.default.contentsOfDirectory(atPath: patient.externalFolder).sorted()
    try FileManager.default.removeItem(atPath: patient.externalFolder + "/" + names[0])
    let orphan = "00000000-0000-4000-8000-000000000000"
    _ = FileManager.default.createFile(
      atPath: patient.externalFolder + "/" + orphan, contents: Data([1]))
    // A name that is no text.
    let odd = Array("\(patient.externalFolder)/ORPH".utf8CString.dropLast()) + [-1, 78, 0]
    try #require(close(creat(odd, 0o600)) == 0)
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(report.keptExternalFiles == names.count - 1)
    #expect(report.lost.contains { $0.subject == .value && $0.property == "data" && $0.count == 1 })
    let named = [orphan, "$'ORPH\\xffN'"]
    #expect(report.lost.contains { $0.subject == .externalData && $0.names == named })
  }

  @Test func `names whatever else lies among its external files, and no link that an object names`()
    throws
  {
    let patient = try Patient { $0.externalFraction = 1 }
    let names = try FileManager.default.contentsOfDirectory(atPath: patient.externalFolder).sorted()
    let link = patient.externalFolder + "/" + names[0]
    try FileManager.default.removeItem(atPath: link)
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "/etc/hostname")
    _ = FileManager.default.createFile(
      atPath: patient.externalFolder + "/ORPHAN", contents: Data([1]))
    let report = try patient.repair()
    #expect(report.lost.contains { $0.subject == .value && $0.property == "data" && $0.count == 1 })
    #expect(report.lost.first { $0.subject == .externalData }?.names == ["ORPHAN"])
  }

  @Test func `keeps the files of composites' elements, and loses one that is missing`() throws {
    var form = AttributeDescription(
      traits: PropertyTraits(name: "data"), type: .binary, allowsExternalBinaryDataStorage: true)
    for name in ["inner", "form"] {
      form = AttributeDescription(
        traits: PropertyTraits(name: name), type: .composite, compositeElements: [form])
    }
    let model = ManagedObjectModel(entities: [
      EntityDescription(name: "Photo", properties: [.attribute(form)])
    ])
    let patient = try Patient(of: model, rows: 5) {
      $0.externalFraction = 1
      $0.nullFraction = 0
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: patient.externalFolder).sorted()
    #expect(names.count == 5)
    try FileManager.default.removeItem(atPath: patient.externalFolder + "/" + names[0])
    let report = try patient.repair()
    #expect(try patient.failures().isEmpty)
    #expect(report.keptExternalFiles == 4)
    #expect(report.lost.map(\.subject) == [.value])
    #expect(report.lost.first?.property == "form.inner.data" && report.lost.first?.count == 1)
    #expect(
      try patient.read("SELECT count(ZDATA) FROM ZPHOTO", of: patient.output) == [[.integer(4)]])
  }

  @Test func `has drafts removed that no repair is at work on any more`() throws {
    let patient = try Patient()
    let drafts = ["killed", "running", "other"].map {
      patient.folder.appendingPathComponent(".Repaired.sqlite.repair-\($0)")
    }
    for draft in drafts {
      try FileManager.default.createDirectory(at: draft, withIntermediateDirectories: true)
    }
    for draft in drafts.prefix(2) {
      try Data().write(to: draft.appendingPathComponent("lock"))
    }
    let lock = try FileLock(acquiring: FilePath(drafts[1].appendingPathComponent("lock").path))
    _ = try patient.repair()
    withExtendedLifetime(lock) {
      #expect(
        drafts.map { FileManager.default.fileExists(atPath: $0.path) } == [false, true, true])
    }
  }

  @Test func `is never written over another file`() throws {
    let patient = try Patient(rows: 3)
    let bytes = patient.bytes
    _ = FileManager.default.createFile(atPath: patient.output + "-wal", contents: Data())
    #expect(throws: RepairError.self) { try patient.repair(clearing: false) }
    #expect(patient.bytes == bytes)
  }
}
