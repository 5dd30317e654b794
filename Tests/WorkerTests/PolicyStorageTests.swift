import Foundation
import GodwitCheckpoints
import GodwitExpressions
import GodwitObjectModel
import GodwitSQLite
import SystemPackage
import Testing

@testable import GodwitWorker

/// A folder of its own, gone with the value.
private final class Folder {
  let path = FilePath(FileManager.default.temporaryDirectory.path)
    .appending("godwit-policy-\(UUID().uuidString)")

  init() throws {
    try FileManager.default.createDirectory(
      atPath: path.string, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path.string) }
}

@Suite struct `Scratch rows` {
  // 4 MiB stay in memory: the larger ones go through the file, some of them in one piece.
  @Test(arguments: [(count: 100, most: 50), (count: 3_000, most: 9_000), (count: 6, most: 3 << 20)])
  func `come back as they were, in any order, and leave no file`(count: Int, most: Int) throws {
    let folder = try Folder()
    let scratch = ScratchRows(in: folder.path)
    var generator = SystemRandomNumberGenerator()
    var rows: [(place: Int, bytes: [UInt8])] = []
    for number in 0..<count {
      let bytes = [UInt8](
        repeating: UInt8(truncatingIfNeeded: number), count: Int.random(in: 0...most))
      rows.append((try bytes.withUnsafeBytes { try scratch.append($0) }, bytes))
      // Reading between writes must not disturb either.
      if let row = rows.randomElement(using: &generator) {
        #expect(try scratch.read(row.place, count: row.bytes.count) { Array($0) } == row.bytes)
      }
    }
    for row in rows.shuffled() {
      #expect(try scratch.read(row.place, count: row.bytes.count) { Array($0) } == row.bytes)
    }
    #expect(scratch.count == rows.reduce(0) { $0 + $1.bytes.count })
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path.string) == [])
  }
}

@Suite struct `A policy's associations` {
  /// What came several times, where it came first.
  fileprivate static func unique<Value: Hashable>(_ values: [Value]) -> [Value] {
    var seen: Set<Value> = []
    return values.filter { seen.insert($0).inserted }
  }

  @Test(arguments: [true, false])
  func `answer both ways, several to several, whatever their order`(isSorted: Bool) throws {
    let folder = try Folder()
    let run = RunDirectory(folder.path)
    try FileManager.default.createDirectory(
      atPath: run.associations.string, withIntermediateDirectories: true)
    var generator = SystemRandomNumberGenerator()
    var pairs: [PolicyPair] = []
    for number in 0..<2_000 {
      let key = isSorted ? Int64(number) : Int64.random(in: 0..<300, using: &generator)
      let other = isSorted ? Int64(number) : Int64.random(in: 1..<300, using: &generator)
      pairs.append(
        PolicyPair(
          sourceEntity: isSorted ? 1 : key % 3, source: key,
          destinationEntity: isSorted ? 4 : other % 2, destination: other))
    }
    try PolicyAssociationWriter(0, run).write { body in for pair in pairs { try body(pair) } }
    let association = try PolicyAssociation(0, run)
    for key in Int64(0)..<320 {
      for entity in Int64(0)..<5 {
        var found: [[Int64]] = []
        try association.forEachDestination(of: entity, key) { found.append([$0, $1]) }
        let made = pairs.filter { $0.sourceEntity == entity && $0.source == key }
        #expect(found == Self.unique(made.map { [$0.destinationEntity, $0.destination] }))
        found = []
        try association.forEachSource(of: entity, key) { found.append([$0, $1]) }
        let sources = pairs.filter { $0.destinationEntity == entity && $0.destination == key }
        #expect(found == Self.unique(sources.map { [$0.sourceEntity, $0.source] }))
      }
    }
    var count = 0
    try association.forEach { _, _, _, _ in count += 1 }
    #expect(count == Set(pairs.map(\.numbers)).count)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: run.associations.string).sorted() == [
        "0.forward", "0.reverse",
      ])
  }
}

extension `A policy's associations` {
  /// Pairs that were associated several times, near each other and far apart.
  @Test(arguments: [
    (sources: 500, destinations: 500, draws: 400), (sources: 3, destinations: 200, draws: 900),
    (sources: 200, destinations: 2, draws: 900),
  ])
  func `have every pair once`(sources: Int, destinations: Int, draws: Int) throws {
    for isSorted in [true, false] {
      let folder = try Folder()
      let run = RunDirectory(folder.path)
      try FileManager.default.createDirectory(
        atPath: run.associations.string, withIntermediateDirectories: true)
      var generator = SystemRandomNumberGenerator()
      var numbers = (0..<draws).map { _ in
        [
          Int.random(in: 1...sources, using: &generator),
          Int.random(in: 1...destinations, using: &generator),
        ]
      }
      // One at least that comes again at once, and one that comes again at the end.
      numbers += [numbers[draws - 1], numbers[0]]
      if isSorted { numbers.sort { $0[0] < $1[0] } }
      let pairs = numbers.map {
        PolicyPair(
          sourceEntity: 1, source: Int64($0[0]), destinationEntity: 2, destination: Int64($0[1]))
      }
      try PolicyAssociationWriter(0, run).write { body in for pair in pairs { try body(pair) } }
      let association = try PolicyAssociation(0, run)
      for key in 1...Int64(sources) {
        var found: [Int64] = []
        try association.forEachDestination(of: 1, key) { found.append($1) }
        #expect(found == Self.unique(pairs.filter { $0.source == key }.map(\.destination)))
      }
      for key in 1...Int64(destinations) {
        var found: [Int64] = []
        try association.forEachSource(of: 2, key) { found.append($1) }
        #expect(found == Self.unique(pairs.filter { $0.destination == key }.map(\.source)))
      }
    }
  }
}

@Suite struct `A value that policies pass on` {
  @Test(arguments: [
    ExpressionValue.null, .boolean(true), .integer(.min), .real(0.1), .real(-0.0),
    .real(.greatestFiniteMagnitude), .date(-1.5), .string("ü\u{0}\u{1F600}"), .data([0, 255]),
    .decimal(DecimalNumber(text: "-12345678901234567890.123") ?? .zero), .url("x:y?z"),
    .object(ObjectReference("A", 7, in: .destination)), .array([.null, .array([.integer(1)])]),
    .set([.string("a")]), .orderedSet([.integer(2), .integer(1)]),
    .dictionary(["k": .dictionary(["l": .data([])])]),
  ])
  func `comes back as it was`(value: ExpressionValue) throws {
    let bytes = try JSONEncoder().encode(["v": value])
    let back = try JSONDecoder().decode([String: ExpressionValue].self, from: bytes)["v"]
    #expect(back == value)
    #expect("\(back.map { "\($0)" } ?? "")" == "\(value)", "kinds differ where numbers are equal")
  }

  @Test func `comes back as it was, a UUID too`() throws {
    let uuid = try #require(UUIDBytes(text: "E621E1F8-C36C-495A-93FC-0C247A3E6E5F"))
    try `comes back as it was`(value: .uuid(uuid))
  }

  @Test func `is refused where it is none`() {
    for text in [
      "{\"k\":\"helper\"}", "{\"k\":\"uuid\",\"v\":\"x\"}", "{\"k\":\"decimal\",\"v\":\"x\"}",
      "{\"k\":\"object\",\"v\":1,\"e\":\"A\",\"s\":\"elsewhere\"}", "{}", "7",
    ] {
      #expect(throws: DecodingError.self) {
        try JSONDecoder().decode(ExpressionValue.self, from: Data(text.utf8))
      }
    }
  }
}

/// Gives its objects large values in the copy stage, and longer ones in the link stage.
private final class GrowingPolicy: EntityMigrationPolicy {
  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    let made = try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source])
    made.first?["data"] = Data(repeating: 1, count: 200_000)
  }

  override func createRelationships(
    forDestination destination: ManagedObject, in mapping: CurrentEntityMapping,
    manager: MigrationManager
  ) throws {
    let data: Data = destination["data"] ?? Data()
    destination["data"] = data + Data(repeating: 2, count: data.count)
  }
}

@Suite struct `A large value that a policy sets twice` {
  // The link stage of a shard that is done again reads what the copy stage has written.
  @Test func `is in two files`() throws {
    let data = PropertyDescription.attribute(
      AttributeDescription(
        traits: PropertyTraits(name: "data"), type: .binary, allowsExternalBinaryDataStorage: true))
    let fixture = try MigrationFixture(
      from: [entity("Item", data)], to: [entity("Item", data, attribute("more"))],
      rows: "INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1)")
    fixture.policies = PolicyRegistry(["GrowingPolicy": GrowingPolicy.self])
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Item, destination: Item, policy: GrowingPolicy }
      """)
    let folder = try #require(fixture.latest).run.external
    let sizes = try FileManager.default.contentsOfDirectory(atPath: folder.string).map {
      try Data(contentsOf: URL(filePath: folder.appending($0).string)).count
    }
    #expect(sizes.sorted() == [200_000, 400_000])
    let name = try #require(
      try store.rows("SELECT CAST(substr(ZDATA, 2, 36) AS TEXT) FROM ZITEM").first?[0].text)
    let delivered = try Data(contentsOf: URL(filePath: folder.appending(name).string))
    #expect(delivered == Data(repeating: 1, count: 200_000) + Data(repeating: 2, count: 200_000))
  }
}
