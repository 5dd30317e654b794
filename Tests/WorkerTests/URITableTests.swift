import Foundation
import GodwitBarriers
import GodwitObjectModel
import GodwitSQLite
import SystemPackage
import Testing

@testable import GodwitWorker

@Suite struct `A table of object URIs` {
  /// Migrates, writes the table and gives its lines with `A` for the source store's UUID and `B`
  /// for another.
  private func lines(
    _ fixture: MigrationFixture, _ mapping: String?, renumbers: Bool = false,
    shardBytes: Int64 = 1 << 24
  ) throws -> [String] {
    _ = try fixture.migrate(mapping, renumbers: renumbers, shardBytes: shardBytes)
    let latest = try #require(fixture.latest)
    let path = fixture.folder.appending("uris.tsv")
    let count = try URITable(plan: latest.plan, run: latest.run, written: latest.store)
      .write(to: path)
    let text = try String(contentsOfFile: path.string, encoding: .utf8)
    var lines = text.components(separatedBy: "\n")
    #expect(lines.popLast() == "", "the last line is ended")
    #expect(lines.first == URITable.header)
    #expect(lines.count == Int(count) + 1)
    let source = try Connection(
      path: fixture.folder.appending("source.sqlite").string, mode: .immutable)
    let own = try #require(try source.table("SELECT Z_UUID FROM Z_METADATA").first)
    return lines.dropFirst().map {
      $0.replacingOccurrences(of: own, with: "A")
        .replacingOccurrences(of: latest.plan.control.storeUUID, with: "B")
        .replacingOccurrences(of: "x-coredata://", with: "")
    }
  }

  private static func notes() throws -> MigrationFixture {
    try MigrationFixture(
      from: [entity("Note", attribute("title"), attribute("image")), entity("Old")],
      to: [entity("Image", attribute("image")), entity("Note", attribute("title"))],
      rows: """
        INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, ZTITLE, ZIMAGE)
        VALUES (2, 1, 1, 'a', 'p'), (3, 1, 1, 'b', NULL), (7, 1, 1, 'c', 'q');
        INSERT INTO ZOLD (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1)
        """)
  }

  private static let split = """
    mapping-model: 1
    entity-mappings:
      - { name: "to\\timage", source: Note, destination: Image, filter: image != nil }
      - { source: Note, destination: Note }
      - { name: Old, source: Old }
    """

  @Test(arguments: [1, 1 << 24] as [Int64])
  func `tells what objects became, in the order of the mappings, whatever the shards`(
    shardBytes: Int64
  ) throws {
    let fixture = try Self.notes()
    #expect(
      try lines(fixture, Self.split, shardBytes: shardBytes) == [
        "to\\timage\tA/Note/p2\tB/Image/p2", "to\\timage\tA/Note/p7\tB/Image/p7",
        "NoteToNote\tA/Note/p2\tB/Note/p2", "NoteToNote\tA/Note/p3\tB/Note/p3",
        "NoteToNote\tA/Note/p7\tB/Note/p7",
      ])
    #expect(
      try lines(fixture, Self.split, renumbers: true, shardBytes: shardBytes) == [
        "to\\timage\tA/Note/p2\tB/Image/p1", "to\\timage\tA/Note/p7\tB/Image/p2",
        "NoteToNote\tA/Note/p2\tB/Note/p1", "NoteToNote\tA/Note/p3\tB/Note/p2",
        "NoteToNote\tA/Note/p7\tB/Note/p3",
      ])
  }

  @Test func `agrees with the destination's own keys`() throws {
    let fixture = try Self.notes()
    let pairs = try lines(fixture, Self.split, renumbers: true)
      .filter { $0.hasPrefix("NoteToNote") }
      .map {
        $0.components(separatedBy: "\t").suffix(2).map { $0.components(separatedBy: "/p")[1] }
      }
    let latest = try #require(fixture.latest)
    let source = try Connection(
      path: fixture.folder.appending("source.sqlite").string, mode: .immutable)
    let store = try Connection(path: latest.store.string, mode: .immutable)
    for pair in pairs {
      #expect(
        try source.table("SELECT ZTITLE FROM ZNOTE WHERE Z_PK = \(pair[0])")
          == store.table("SELECT ZTITLE FROM ZNOTE WHERE Z_PK = \(pair[1])"))
    }
    #expect(pairs.count == 3)
  }

  @Test func `of an inferred migration changes names alone`() throws {
    let fixture = try MigrationFixture(
      from: [
        entity("Car", attribute("name")), entity("Sport", parent: "Car"), entity("Tag"),
        entity("Old"),
      ],
      to: [
        entity("Car", attribute("name"), attribute("speed")),
        EntityDescription(
          name: "Racer", superentity: "Car", renamingIdentifier: "Sport", properties: []),
        entity("Tag"), entity("New"),
      ],
      rows: """
        INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT) SELECT 4, Z_ENT, 1 FROM Z_PRIMARYKEY WHERE Z_NAME = 'Sport';
        INSERT INTO ZCAR (Z_PK, Z_ENT, Z_OPT) SELECT 9, Z_ENT, 1 FROM Z_PRIMARYKEY WHERE Z_NAME = 'Car';
        INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT) SELECT 1, Z_ENT, 1 FROM Z_PRIMARYKEY WHERE Z_NAME = 'Tag';
        INSERT INTO ZOLD (Z_PK, Z_ENT, Z_OPT) SELECT 1, Z_ENT, 1 FROM Z_PRIMARYKEY WHERE Z_NAME = 'Old'
        """)
    #expect(
      try lines(fixture, nil) == [
        "IEM_Transform_Sport\tA/Sport/p4\tA/Racer/p4", "IEM_Transform_Car\tA/Car/p9\tA/Car/p9",
        "IEM_Copy_Tag\tA/Tag/p1\tA/Tag/p1",
      ])
  }

  @Test func `is written again in the place of an earlier one`() throws {
    let fixture = try Self.notes()
    let first = try lines(fixture, Self.split)
    // What a crash may have left of a table half written.
    try Data("x".utf8).write(
      to: URL(filePath: fixture.folder.appending(".uris.tsv.partial-0").string))
    #expect(try lines(fixture, Self.split) == first)
    let names = try FileManager.default.contentsOfDirectory(atPath: fixture.folder.string)
    #expect(!names.contains { $0.contains("partial") })
  }

  @Test func `is strung together with the next one`() throws {
    let folder = FilePath(FileManager.default.temporaryDirectory.path)
      .appending("godwit-uris-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      atPath: folder.string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    func table(_ name: String, _ lines: [String]) throws -> FilePath {
      let path = folder.appending(name)
      let text = ([URITable.header] + lines).map { $0 + "\n" }.joined()
      try Data(text.utf8).write(to: URL(filePath: path.string))
      return path
    }
    // 2 became two, of which one was dropped later; 3 became one, of which two were made.
    let first = try table("a", ["M\ta2\tb1", "M\ta2\tb2", "N\ta3\tb7"])
    let second = try table("b", ["X\tb7\tc1", "X\tb2\tc2", "Y\tb7\tc9", "Z\tb8\tc3"])
    let (joined, scratch) = (folder.appending("c"), folder.appending("scratch"))
    #expect(try URITable.join(first, second, to: joined, scratch: scratch) == 3)
    let text = try String(contentsOfFile: joined.string, encoding: .utf8)
    #expect(
      text.split(separator: "\n").dropFirst() == [
        "M → X\ta2\tc2", "N → X\ta3\tc1", "N → Y\ta3\tc9",
      ])
    let copy = folder.appending("copy")
    try URITable.copy(joined, to: copy)
    #expect(try String(contentsOfFile: copy.string, encoding: .utf8) == text)
    for broken in ["", "M\ta\tb", "M\ta\n", "M\ta\tb\tc\n"] {
      let path = folder.appending("broken")
      try Data((URITable.header + "\n" + broken).utf8).write(to: URL(filePath: path.string))
      if broken.isEmpty {
        #expect(try URITable.join(path, second, to: joined, scratch: scratch) == 0)
      } else {
        #expect(throws: StageError.self) {
          try URITable.join(path, second, to: joined, scratch: scratch)
        }
      }
    }
  }

  @Test func `of many objects is strung together over any piece of the file`() throws {
    let folder = FilePath(FileManager.default.temporaryDirectory.path)
      .appending("godwit-uris-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      atPath: folder.string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    let numbers = 1...20_000  // more than one piece of 64 KiB
    func write(_ name: String, _ line: (Int) -> String) throws -> FilePath {
      let path = folder.appending(name)
      let text = URITable.header + "\n" + numbers.map { line($0) + "\n" }.joined()
      try Data(text.utf8).write(to: URL(filePath: path.string))
      return path
    }
    let first = try write("a") { "M\ta\($0)\tb\($0 * 7 % 20_011)" }
    let second = try write("b") { "N\tb\($0)\tc\($0)" }
    let joined = folder.appending("c")
    let count = try URITable.join(first, second, to: joined, scratch: folder.appending("s"))
    let expected = numbers.filter { numbers.contains($0 * 7 % 20_011) }
      .map { "M → N\ta\($0)\tc\($0 * 7 % 20_011)" }
    let text = try String(contentsOfFile: joined.string, encoding: .utf8)
    #expect(text == ([URITable.header] + expected).map { $0 + "\n" }.joined())
    #expect(Int(count) == expected.count)
  }
}
