import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import StoreFixtures
import SystemPackage
import Testing

@testable import GodwitFleet

/// A store before and after a handler, with references that lead nowhere.
@Suite struct `What a handler has left` {
  private static func model() throws -> EntityHierarchy {
    let lone = RelationshipDescription(
      traits: PropertyTraits(name: "lone"), destinationEntity: "Tag", maxCount: 1)
    return try EntityHierarchy(
      ManagedObjectModel(entities: [
        EntityDescription(name: "Pot", properties: [.relationship(lone)]),
        EntityDescription(name: "Tag", properties: []),
      ]))
  }

  /// - Parameter references: Of pots, by their keys; tags are 1 to 3.
  private static func store(_ name: String, _ references: [Int64: Int64], in folder: FilePath)
    throws -> StoreBinding
  {
    let (model, path) = (try model(), folder.appending(name))
    try DrawnStore(model.model).write(to: path.string) { store in
      for key in 1...3 {
        try store.execute("INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT) VALUES (\(key), 2, 1)")
      }
      for key in Int64(1)...4 {
        let reference = references[key].map(String.init) ?? "NULL"
        try store.execute(
          "INSERT INTO ZPOT (Z_PK, Z_ENT, Z_OPT, ZLONE) VALUES (\(key), 1, 1, \(reference))")
      }
    }
    return StoreBinding(
      try SourceStore(path: path, snapshotFolder: folder.appending("snapshot")), model)
  }

  /// The keys of the pots that are refused, and of those that are still told of.
  private static let cases:
    [(before: [Int64: Int64], after: [Int64: Int64], new: [Int64], told: Int64)] = [
      ([1: 77], [1: 77], [], 1), ([1: 77], [:], [], 0), ([1: 77], [1: 2], [], 0),
      // As many as before, and others.
      ([1: 77], [3: 2, 4: 78], [4], 0), ([1: 77], [1: 78], [1], 0),
      ([1: 77, 2: 78], [1: 77], [], 1), ([1: 77, 2: 78], [2: 78, 3: 79], [3], 0),
      ([1: 77], [1: 77, 2: 77], [2], 0), ([:], [4: 77], [4], 0),
    ]

  @Test(arguments: cases.indices)
  func `is refused where rows break a rule that did not, and told of as far as it is so`(
    number: Int
  ) throws {
    let scratch = try Scratch()
    let (before, after, new, left) = Self.cases[number]
    let earlier = try Self.store("before.sqlite", before, in: scratch.path)
    let written = try Self.store("after.sqlite", after, in: scratch.path)
    let note = StoreFinding(kind: .note, message: "is odd")
    let told = try StoreSoundness.check(earlier).filter(\.kind.isFailure) + [note]
    #expect(told.count == (before.isEmpty ? 1 : 2), "\(told)")
    func judge() throws -> [StoreFinding] {
      try DestinationSoundness.judge(handled: written, earlier: { earlier }, told: told)
    }
    if new.isEmpty {
      let found = try judge()
      #expect(found.last == note)
      #expect(found.filter { $0.kind == .dangling }.map(\.count) == (left == 0 ? [] : [left]))
    } else {
      let error = #expect(throws: UnsoundDestination.self) { _ = try judge() }
      #expect(error?.findings.map(\.kind) == [.dangling])
      #expect(error?.findings.first?.examples == new)
      #expect(error?.findings.first?.count == Int64(new.count))
    }
  }
}
