import GodwitKeyedArchive
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import Testing

@Suite struct `An index that a store lacks` {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private static func model(_ index: [String], isIndexed: Bool = false) throws -> EntityHierarchy {
    var name = AttributeDescription(traits: PropertyTraits(name: "name"), type: .string)
    name.traits.isIndexed = isIndexed
    return try EntityHierarchy(
      EntityDescription(
        name: "Note",
        properties: [
          .attribute(name), .attribute("size", .integer64), .relationship("next", "Note"),
        ],
        fetchIndexes: index.isEmpty
          ? []
          : [
            FetchIndexDescription(
              name: "byName", elements: index.map { .init(propertyName: $0) })
          ]))
  }

  /// Findings about indexes of a store that was written under one model, by another with the same hashes.
  private func findings(
    given: EntityHierarchy, own: EntityHierarchy, cache: [UInt8]?, framework: Int64? = nil,
    _ change: String? = nil
  ) throws -> [StoreFinding] {
    #expect(given.versionHashes == own.versionHashes)
    let small = try SmallStore(own, at: folder.path.appending("s.sqlite"), rows: "")
    if let change { try small.execute(change) }
    var plist = try small.open().metadata.plist
    let file = try Connection(path: small.path.string, mode: .readWrite)
    if let cache {
      _ = try file.rows("INSERT INTO Z_MODELCACHE VALUES (?)", [.blob(cache)])
    }
    if let framework {
      plist["NSPersistenceFrameworkVersion"] = .integer(framework)
      _ = try file.rows(
        "UPDATE Z_METADATA SET Z_PLIST = ?", [.blob(PropertyList.dictionary(plist).binary())])
    }
    try file.close()
    return try StoreSoundness.indexes(StoreBinding(small.open(), given))
  }

  private enum Cache { case own, none, damaged }

  // The given model's index, the own one's, the cache, and what becomes of the store.
  @Test(
    arguments: [
      (["name"], [], Cache.own, nil, [.note]),
      (["name"], ["name"], .own, nil, []),
      (["name"], ["name"], .own, "DROP INDEX Z_Note_byName", [.index]),
      (["name"], ["name"], .none, "DROP INDEX Z_Note_byName", [.note]),
      (["name"], ["name"], .damaged, "DROP INDEX Z_Note_byName", [.note]),
      (["name", "size"], ["name"], .own, nil, [.note]),
      ([], ["name"], .own, "DROP INDEX Z_Note_byName", []),
      // What the hashes cover.
      ([], [], .own, "DROP INDEX ZNOTE_ZNEXT_INDEX", [.index]),
      ([], [], .none, "DROP INDEX ZNOTE_ZNEXT_INDEX", [.index]),
      (["name"], [], .own, "DROP INDEX ZNOTE_ZNEXT_INDEX", [.index, .note]),
    ] as [([String], [String], Cache, String?, [StoreFinding.Kind])])
  private func `is damage where the model in its cache has it`(
    given: [String], own: [String], cache: Cache, change: String?, expected: [StoreFinding.Kind]
  ) throws {
    let model = try Self.model(own)
    let bytes: [UInt8]? =
      switch cache {
      case .own: try model.modelCacheBytes()
      case .none: nil
      case .damaged: [1, 2, 3]
      }
    let found = try findings(given: Self.model(given), own: model, cache: bytes, change)
    #expect(found.map(\.kind) == expected)
    for finding in found {
      #expect(finding.message.contains("after the store was written") == (finding.kind == .note))
    }
  }

  // Framework 754 has indexes of the old flag and no others.
  @Test(arguments: [(false, StoreFinding.Kind.note), (true, .index)])
  func `is judged likewise where it is of an old flag`(isOwn: Bool, expected: StoreFinding.Kind)
    throws
  {
    let own = try Self.model([], isIndexed: isOwn)
    let found = try findings(
      given: Self.model([], isIndexed: true), own: own, cache: own.modelCacheBytes(),
      framework: 754)
    #expect(found.map(\.kind) == [expected])
    #expect(found.first?.message.contains("ZNOTE_ZNAME_INDEX") == true)
  }
}
