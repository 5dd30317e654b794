import Foundation
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage
import Testing

@testable import GodwitPlanning

/// Entities with their attributes: `Note text title;Tag word`.
private func model(_ text: String) -> ManagedObjectModel {
  var entities: [EntityDescription] = []
  for part in text.split(separator: ";") {
    let words = part.split(separator: " ").map(String.init)
    entities.append(
      EntityDescription(
        name: EntityName(words[0]),
        properties: words.dropFirst().map {
          .attribute(AttributeDescription(traits: PropertyTraits(name: $0), type: .string))
        }))
  }
  return ManagedObjectModel(entities: entities)
}

/// What was given with one `--models`: versions of a bundle, the last of them current, or one version.
private struct GivenModel {
  let name: String
  let versions: [ModelVersion]

  init(_ name: String, _ texts: [(String, String)], in folder: String = "") {
    self.name = name
    let path = "\(folder)\(name).xcdatamodeld"
    versions = texts.enumerated().map { place, text in
      ModelVersion(
        name: text.0, model: model(text.1), isCurrent: place == texts.count - 1,
        path: "\(path)/\(text.0).xcdatamodel")
    }
  }

  init(_ name: String, _ text: String) {
    self.init(name, [(name, text)], in: "\(name)/")
  }
}

@Suite struct `Models with an entity in common` {
  private static func entity(
    id: String? = nil, default value: StoredDefault? = nil, isExternal: Bool = false,
    className: String? = nil
  ) -> EntityDescription {
    EntityDescription(
      name: "E", managedObjectClassName: className,
      properties: [
        .attribute(
          AttributeDescription(
            traits: PropertyTraits(name: "b", renamingIdentifier: id), type: .binary,
            defaultValue: value, allowsExternalBinaryDataStorage: isExternal,
            preservesValueInHistoryOnDeletion: !isExternal))
      ])
  }

  @Test(
    arguments: [
      (entity(), nil), (entity(className: "Other"), nil),
      (entity(id: "a"), "renaming identifier"), (entity(default: .blob([1])), "defaultValue"),
      (entity(isExternal: true), "externalStorage"),
    ] as [(EntityDescription, String?)])
  func `are merged where nothing of it that reaches a store is another in one of them`(
    other: EntityDescription, difference: String?
  ) throws {
    let models = [("One", Self.entity()), ("Two", other)].map {
      ($0.0, ManagedObjectModel(entities: [$0.1]))
    }
    do {
      let merged = try ManagedObjectModel(merging: models)
      #expect(difference == nil && merged.entities.count == 1)
    } catch let error as ModelError {
      let difference = try #require(difference)
      #expect("\(error)".contains("b: \(difference)"), "\(error)")
    }
  }
}

@Suite struct `Several models` {
  private let folder: FilePath

  init() throws {
    let url = FileManager.default.temporaryDirectory.appending(path: "godwit-\(UUID())")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    folder = FilePath(url.path)
  }

  /// An empty store.
  private func store(_ text: String) throws -> SourceStore {
    let path = folder.appending("\(UUID()).sqlite")
    let hierarchy = try EntityHierarchy(model(text))
    let connection = try Connection(path: path.string, mode: .create)
    for statement in DestinationSchema(StoreLayout(hierarchy)).statements {
      try connection.execute(statement.sql)
    }
    let uuid = "0F1E2D3C-4B5A-6978-8796-A5B4C3D2E1F0"
    let metadata = StoreMetadata(uuid: uuid, plist: [:])
    _ = try connection.rows(
      "INSERT INTO Z_METADATA VALUES (1, ?, ?)",
      [.text(uuid), .blob(metadata.bytes(migratedTo: hierarchy))])
    _ = try connection.rows(
      "INSERT INTO Z_MODELCACHE VALUES (?)", [.blob(try hierarchy.model.modelCacheBytes())])
    try connection.close()
    return try SourceStore(path: path, snapshotFolder: folder.appending("snapshot"))
  }

  /// A request as commands make it of what they were given.
  private func request(
    _ bundles: [GivenModel], for store: FilePath = "store", to name: String?
  ) -> MigrationRequest {
    let given = GivenModels(bundles.map(\.versions))
    let named = given.versions.filter { $0.name == name }
    let isSingle = { (versions: [ModelVersion]) in versions.count == 1 }
    let currents =
      (given.bundles.filter(isSingle) + given.bundles.filter { !isSingle($0) })
      .compactMap(\.last)
    var request = MigrationRequest(
      store: store, models: given.versions, destination: named.last ?? currents.last, output: nil,
      snapshotFolder: folder)
    (request.given, request.named, request.currents) = (given, named, currents)
    return request
  }

  /// The request of a store.
  private func resolved(
    _ bundles: [GivenModel], _ text: String, to name: String? = nil
  ) throws -> MigrationRequest {
    let store = try store(text)
    let resolved = try MergedModels.resolve(
      request(bundles, for: store.files.store, to: name), for: store)
    if let outcome = try ForeignStore(store, resolved)?.outcome(), case .refused = outcome {
      throw Foreign()
    }
    return resolved
  }

  private struct Foreign: Error {}

  /// The destination's path, or what forbids one.
  private func destination(
    _ bundles: [GivenModel], _ text: String, to name: String? = nil
  ) throws -> String {
    do {
      return try resolved(bundles, text, to: name).destination?.path
        .replacing(".xcdatamodeld/", with: ":").replacing(".xcdatamodel", with: "") ?? "none"
    } catch is Foreign {
      return "foreign"
    } catch let error as PlanError {
      switch error {
      case .ambiguousDestination: return "ambiguous name"
      case .ambiguousModel: return "ambiguous model"
      default: throw error
      }
    } catch is ModelError {
      return "cannot be merged"
    }
  }

  private static let notes = GivenModel(
    "Notes", [("Model", "User name;Note text"), ("Model 2", "User name;Note text title")])
  private static let billing = GivenModel(
    "Billing", [("Model", "User login;Bill no"), ("Model 2", "User login mail;Bill no")])
  private static let songs = GivenModel(
    "Songs", [("Model", "Song name"), ("Model 2", "Song name artist")])

  struct Case: Sendable {
    /// The store's entities.
    var store: String
    /// The name that was asked for.
    var to: String?
    var destination: String
  }

  private static let cases: [Case] = [
    // A store of one version: the current one of its own model.
    Case(store: "User name;Note text", destination: "Notes:Model 2"),
    Case(store: "User login;Bill no", destination: "Billing:Model 2"),
    Case(store: "Song name", destination: "Songs:Model 2"),
    // Each model has a version of that name: the store's own is meant.
    Case(store: "User name;Note text", to: "Model 2", destination: "Notes:Model 2"),
    Case(store: "User login mail;Bill no", to: "Model", destination: "Billing:Model"),
    Case(store: "Song name", to: "Model 2", destination: "Songs:Model 2"),
    // The store's version is not among those given: its entities say which model it is of.
    Case(store: "User name;Note old;Gone x", destination: "Notes:Model 2"),
    Case(store: "User login;Bill old", to: "Model", destination: "Billing:Model"),
    Case(store: "Song old", destination: "Songs:Model 2"),
    Case(store: "User old", destination: "ambiguous model"),
    Case(store: "User old", to: "Model 2", destination: "ambiguous model"),
    // It is of none of the models.
    Case(store: "Other x", destination: "foreign"),
    Case(store: "Other x", to: "Model", destination: "ambiguous name"),
    // Mergers of those that the store has a part of, and of no others.
    Case(
      store: "User name;Note text;Song name", destination: "Notes:Model 2 + Songs:Model 2"),
    Case(
      store: "User name;Note text;Song name", to: "Model", destination: "Notes:Model + Songs:Model"),
    Case(store: "User old;Note text;Song old", destination: "Notes:Model 2 + Songs:Model 2"),
    Case(store: "User x;Note text;Bill no", destination: "cannot be merged"),
  ]

  @Test(arguments: cases)
  func `have one destination for a store, in whatever order they were given`(
    example: Case
  ) throws {
    let all = [Self.notes, Self.billing, Self.songs]
    for order in [[0, 1, 2], [1, 2, 0], [2, 1, 0], [2, 0, 1]] {
      let found = try destination(order.map { all[$0] }, example.store, to: example.to)
      // The order names the parts of a merger, and no more.
      let parts = [found, example.destination].map { Set($0.components(separatedBy: " + ")) }
      #expect(parts[0] == parts[1], "\(order): \(found)")
    }
  }

  @Test func `are taken by name where only one has a version of it`() throws {
    let models = [
      Self.notes, GivenModel("Shop", [("Shop", "User x;Item a"), ("Shop 2", "User x;Item a b")]),
    ]
    #expect(try destination(models, "User name;Note text", to: "Shop 2") == "Shop:Shop 2")
    #expect(try destination([Self.songs] + models, "Song name", to: "Shop 2") == "foreign")
  }

  private static let one = GivenModel("1", "Note text;Tag word")
  private static let two = GivenModel("2", "Note text title;Tag word")
  private static let song = GivenModel("Song", "Song name")

  /// Versions given one by one, and what a store of the first becomes.
  private static let lists: [([GivenModel], String)] = [
    ([one, two], "2"), ([song, one, two], "2"), ([one, song, two], "2"), ([one, two, song], "2"),
    ([two, one, song], "1"),
    // Only an entity is new, or gone.
    ([one, GivenModel("3", "Note text;Tag word;Page no"), song], "3"),
    ([one, GivenModel("3", "Tag word"), song], "3"),
    ([one, GivenModel("3", "Tag word;Page no"), song], "3"),
    // By way of another version.
    ([one, two, GivenModel("3", "Note text title more"), song], "3"),
    // A bundle comes before single versions of it.
    (
      [GivenModel("B", [("1", "Note text;Tag word"), ("2", "Note text b;Tag word")]), one, song],
      "2"
    ),
  ]

  @Test(arguments: lists.indices)
  func `given version by version are one where their entities are`(place: Int) throws {
    let (bundles, name) = Self.lists[place]
    for order in [bundles, [Self.songs] + bundles] {
      let request = try resolved(order, "Note text;Tag word")
      #expect(request.destination?.name == name)
      #expect(request.line?.contains { $0.name.contains("Song") } == false)
    }
  }

  @Test func `become the versions of the name that was asked for, else the last of each`() throws {
    for (bundles, name, destinations) in [
      ([Self.one, Self.two], nil, ["2"]), ([Self.two, Self.song, Self.one], nil, ["1", "Song"]),
      ([Self.one, Self.song, Self.two], "1", ["1"]),
      ([Self.notes, Self.songs], nil, ["Model 2", "Model 2"]),
      ([Self.notes, Self.songs], "Model", ["Model", "Model"]),
    ] as [([GivenModel], String?, [String])] {
      let found = try request(bundles, to: name).destinations()
      #expect(found.map(\.name).sorted() == destinations)
    }
    let own = MigrationRequest(
      store: "store", models: [], destination: Self.two.versions[0], output: nil,
      snapshotFolder: folder)
    #expect(try own.destinations().map(\.name) == ["2"])
  }

  @Test func `are one where they are copies of one bundle, of which the last counts`() throws {
    let old = GivenModel("Shop", [("1", "Item a"), ("2", "Item a b")], in: "old/")
    let new = GivenModel("Shop", [("2", "Item a b"), ("3", "Item a b c")], in: "new/")
    let renamed = GivenModel("Store", [("2", "Item a b"), ("3", "Item a b c")])
    let later = GivenModel("Shop", [("3", "Item a b c"), ("4", "Item a b d")], in: "later/")
    let other = GivenModel("Other", [("3", "Item a b c"), ("4", "Item a b d")])
    for (copies, name) in [
      ([old, new], "3"), ([new, old], "2"), ([old, renamed], "3"),
      ([old, later], "4"), ([old, other], "2"), ([other, old], "2"),
    ] {
      #expect(try resolved(copies + [Self.song], "Item a").destination?.name == name)
    }
    #expect(try destination([old, new], "Item a", to: "2") == "old/Shop:2")
  }

  /// Parts of a merger are no versions of one model, whatever they share.
  @Test func `are merged again where they were merged before`() throws {
    let models = [
      GivenModel("Notes", "Note text;Tag word"), GivenModel("Songs", "Song name;Tag word"),
      GivenModel("Tags", "Tag word"), GivenModel("Notes 2", "Note text title;Tag word"),
    ]
    let request = try resolved(models, "Note text;Song name;Tag word")
    #expect(request.isOfMergedModel)
    let names = try #require(request.destination?.name.components(separatedBy: " + "))
    #expect(Set(names) == ["Notes 2", "Songs"])
  }
}
