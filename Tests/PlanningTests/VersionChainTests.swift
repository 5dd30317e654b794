import GodwitMapping
import GodwitObjectModel
import Testing

@testable import GodwitPlanning

private func attribute(
  _ name: String, _ type: AttributeType = .string, required: Bool = false,
  default value: StoredDefault? = nil, id: String? = nil
) -> PropertyDescription {
  .attribute(
    AttributeDescription(
      traits: PropertyTraits(name: name, isOptional: !required, renamingIdentifier: id),
      type: type, defaultValue: value))
}

private func version(
  _ name: String, isCurrent: Bool = false, _ properties: PropertyDescription...
) -> ModelVersion {
  ModelVersion(
    name: name,
    model: ManagedObjectModel(
      entities: [EntityDescription(name: "Item", properties: properties)]),
    isCurrent: isCurrent, path: name)
}

private func lines(
  _ versions: [ModelVersion], mappings: [MappingFile] = [], infers: Bool = true
) throws -> [String] {
  let chain = try VersionChain(
    source: versions[0], destination: versions[versions.count - 1], models: versions,
    mappings: mappings, infersMapping: infers)
  return chain?.lines ?? ["none"]
}

@Suite struct `A chain of versions` {
  private let a = version("A", attribute("name"), attribute("note"))
  private let b = version("B", attribute("name"))
  private let c = version("C", attribute("name"), attribute("note"), attribute("rank", .integer16))

  @Test func `is direct where values come to the same`() throws {
    let d = version("D", attribute("title", id: "name"))
    #expect(try lines([a, b, d]) == ["A → D: inferred"])
  }

  @Test func `goes through a version that drops what a later one adds again`() throws {
    #expect(try lines([a, b, c]) == ["A → B: inferred", "B → C: inferred"])
  }

  @Test func `begins at the store's version, not at an earlier one of its hashes`() throws {
    let again = version("A again", attribute("name"), attribute("note", default: .text("?")))
    func lines(from given: ModelVersion?) throws -> [String]? {
      try VersionChain(source: a, given: given, destination: c, models: [a, b, again, c])?.lines
    }
    #expect(try lines(from: again) == ["A again → C: inferred"])
    for first in [a, nil] {
      #expect(try lines(from: first) == ["A → B: inferred", "B → C: inferred"])
    }
  }

  @Test func `begins at the version whose name is spelled so`() throws {
    let one = version("caf\u{E9}", attribute("name"), attribute("note"))
    let other = version("cafe\u{301}", attribute("name"), attribute("note", default: .text("?")))
    for (given, steps) in [(one, 2), (other, 1)] {
      let chain = try VersionChain(
        source: one, given: given, destination: c, models: [one, b, other, c])
      #expect(chain?.lines.count == steps)
    }
  }

  /// The third has an attribute more, the fourth is as the first.
  @Test func `looks at a version that takes others back where it is, and at those before it`()
    throws
  {
    let third = version("C", attribute("name"), attribute("note"), attribute("unit"))
    let back = version("A again", attribute("name"), attribute("note"))
    func versions(to destination: ModelVersion, _ models: [ModelVersion]) throws -> [String]? {
      try VersionChain(source: b, given: b, destination: destination, models: models)?
        .versions.map(\.name)
    }
    #expect(try versions(to: back, [a, b, third, back]) == ["B", "C", "A again"])
    #expect(try versions(to: a, [a, b, third, back]) == ["B", "A"])
    let last = version("D", attribute("name"), attribute("rank", .integer16))
    #expect(try versions(to: last, [a, b, back, last]) == ["B", "A again", "D"])
  }

  @Test func `goes through a version that fills in another default`() throws {
    let one = version("1", attribute("x", .integer16))
    let two = version("2", attribute("x", .integer16, required: true, default: .integer(1)))
    let three = version("3", attribute("x", .integer16, required: true, default: .integer(2)))
    let four = version("4", attribute("x", .integer16), attribute("y"))
    #expect(try lines([one, two, four]) == ["1 → 2: inferred", "2 → 4: inferred"])
    // The same but for the default, which no hash covers: they are one version.
    #expect(try lines([one, three, two]) == ["1 → 2: inferred"])
  }

  @Test func `goes through a version whose type is narrower`() throws {
    let one = version("1", attribute("x", .integer64))
    let two = version("2", attribute("x", .integer16))
    let three = version("3", attribute("x", .integer64), attribute("y"))
    #expect(try lines([one, two, three]) == ["1 → 2: inferred", "2 → 3: inferred"])
  }

  @Test func `goes through a version without the entity`() throws {
    let without = ModelVersion(
      name: "B", model: ManagedObjectModel(entities: [EntityDescription(name: "Other")]),
      isCurrent: false, path: "B")
    #expect(try lines([a, without, c]) == ["A → B: inferred", "B → C: inferred"])
  }

  @Test func `says why there is none, step for step`() throws {
    let one = version("1", attribute("x"))
    let two = version("2", attribute("x", .date))
    let three = version("3", attribute("x", .date), attribute("y"))
    let chain = try #require(
      try VersionChain(source: one, destination: three, models: [one, two, three]))
    #expect(chain.path.steps.isEmpty)
    #expect(chain.reasons.map(\.reason) == ["attribute-type", "attribute-type"])
    #expect(chain.reasons[0].message.hasPrefix("From 1 to 2: "))
    #expect(chain.reasons[1].message.hasPrefix("From 1 to 3: "))
    #expect(try lines([one, two, three], infers: false) == [])
  }

  @Test func `prefers a mapping model to inference`() throws {
    let document = MappingDocument(
      defaultFor: try EntityHierarchy(b.model), to: try EntityHierarchy(c.model))
    let file = MappingFile(file: "BtoC.yaml", document: document)
    let d = version("D", attribute("name"), attribute("note"))
    #expect(try lines([a, b, c], mappings: [file]) == ["A → B: inferred", "B → C: BtoC.yaml"])
    #expect(try lines([b, c, d], mappings: [file]) == ["B → C: BtoC.yaml", "C → D: inferred"])
  }

  @Test func `does a mapping model without versions at one step only`() throws {
    var document = MappingDocument(entityMappings: [
      MappingDocument.Entry(name: nil, source: "Item", destination: "Item")
    ])
    func file() -> MappingFile { MappingFile(file: "any.yaml", document: document) }
    let error = #expect(throws: PlanError.self) { try lines([a, b, c], mappings: [file()]) }
    #expect(error?.description.contains("fits A → B and B → C") == true)
    document.sourceModelPath = "Shop.xcdatamodeld/B.xcdatamodel"
    document.destinationModelPath = "C"
    #expect(try lines([a, b, c], mappings: [file()]) == ["A → B: inferred", "B → C: any.yaml"])
    // A store that is past those versions has no use for it.
    let d = version("D", attribute("name"), attribute("rank", .integer16))
    let chain = try VersionChain(
      source: c, destination: d, models: [a, b, c, d], mappings: [file()])
    #expect(chain?.lines == ["C → D: inferred"])
  }

  @Test func `is not for two versions that open each other's stores`() throws {
    #expect(try lines([a, b, a]) == ["none"])
  }

  @Test func `looks at no version between when the source's place is not known`() throws {
    let chain = try #require(try VersionChain(source: a, destination: c, models: [b, c]))
    #expect(chain.lines == ["A → C: inferred"])
    #expect(chain.notes.count == 1)
  }

  @Test func `has nothing between a version and one before it`() throws {
    let chain = try #require(try VersionChain(source: c, destination: a, models: [a, b, c]))
    #expect(chain.lines == ["C → A: inferred"])
  }

  @Test func `gives each step a request of its own`() throws {
    let chain = try #require(try VersionChain(source: a, destination: c, models: [a, b, c]))
    var whole = MigrationRequest(
      store: "s", models: [a, b, c], destination: nil, output: nil, snapshotFolder: "")
    whole.chain = .progressive
    let request = whole.leg(chain.leg(1), store: "in", output: "out")
    #expect(request.chain == .direct)
    #expect(request.models.map(\.name) == ["B", "C"])
    #expect(request.destination?.name == "C")
    #expect(request.store == "in")
    #expect(request.output == "out")
  }
}

/// Versions of several entities, each in a few words.
@Suite struct `A version between is not jumped over` {
  private static func relationship(
    _ name: String, _ to: EntityName, inverse: String? = nil, isToMany: Bool = false,
    isOrdered: Bool = false
  ) -> PropertyDescription {
    .relationship(
      RelationshipDescription(
        traits: PropertyTraits(name: name), destinationEntity: to, inverseName: inverse,
        maxCount: isToMany ? 0 : 1, isOrdered: isOrdered))
  }

  private static func entity(
    _ name: EntityName, in parent: EntityName? = nil, unique: [[String]] = [],
    _ properties: PropertyDescription...
  ) -> EntityDescription {
    EntityDescription(
      name: name, superentity: parent, properties: properties, uniquenessConstraints: unique)
  }

  private static func count(_ name: String, of relationship: String) -> PropertyDescription {
    .attribute(
      AttributeDescription(
        traits: PropertyTraits(name: name), type: .integer64,
        derivationExpression: "count:(\(relationship))"))
  }

  private static func teams(
    players: Bool = true, team: Bool = true, isOrdered: Bool = false, isShared: Bool = false,
    _ more: PropertyDescription...
  ) -> [EntityDescription] {
    let list = relationship(
      "players", "Player", inverse: team ? "team" : nil, isToMany: true, isOrdered: isOrdered)
    let back = relationship(
      "team", "Team", inverse: players ? "players" : nil, isToMany: isShared)
    return [
      EntityDescription(name: "Team", properties: (players ? [list] : []) + more),
      EntityDescription(name: "Player", properties: team ? [back] : []),
    ]
  }

  struct Case: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var versions: [[EntityDescription]]

    init(_ why: String, _ versions: [[EntityDescription]]) {
      testDescription = why
      self.versions = versions
    }
  }

  static let cases = [
    Case("fills an inverse", [teams(players: false), teams(), teams(team: false)]),
    Case("drops an inverse", [teams(), teams(players: false), teams()]),
    Case("numbers a list", [teams(), teams(isOrdered: true), teams()]),
    Case("becomes many-to-many", [teams(), teams(isShared: true), teams(isShared: true)]),
    Case(
      "clears references to what leaves",
      [
        [entity("Base"), entity("Note", in: "Base"), entity("Draft", in: "Note")],
        [entity("Base"), entity("Note", in: "Base"), entity("Draft", in: "Base")],
        [entity("Base"), entity("Note", in: "Base"), entity("Draft", in: "Note")],
      ]),
    Case(
      "removes a sub-entity",
      [
        [entity("Base", relationship("next", "Base")), entity("Note", in: "Base")],
        [entity("Base", relationship("next", "Base"))],
        [entity("Base", relationship("next", "Base")), entity("Other")],
      ]),
    Case(
      "counts",
      [teams(), teams(count("size", of: "players")), teams(attribute("size", .integer64))]),
    Case(
      "is unique",
      [
        [entity("Item", attribute("name"))],
        [entity("Item", unique: [["name"]], attribute("name"))],
        [entity("Item", attribute("name"), attribute("note"))],
      ]),
    Case(
      "requires a value",
      [
        [entity("Item", attribute("name"))],
        [entity("Item", attribute("name", required: true))],
        [entity("Item", attribute("name"), attribute("note"))],
      ]),
    Case(
      "moves a property up",
      [
        [entity("Base"), entity("Note", in: "Base", attribute("x"))],
        [entity("Base", attribute("x")), entity("Note", in: "Base")],
        [entity("Base"), entity("Note", in: "Base", attribute("x"), attribute("y"))],
      ]),
  ]

  private func steps(_ models: [[EntityDescription]]) throws -> Int? {
    let versions = models.enumerated().map { number, entities in
      ModelVersion(
        name: "\(number)",
        // No two of them open each other's stores.
        model: ManagedObjectModel(
          entities: entities + [
            EntityDescription(name: "Mark", properties: [attribute("mark\(number)")])
          ]), isCurrent: false, path: "\(number)")
    }
    return try VersionChain(
      source: versions[0], destination: versions[versions.count - 1], models: versions)?
      .path.steps.count
  }

  @Test(arguments: cases)
  func `where it`(example: Case) throws {
    #expect(try steps(example.versions) == 2)
  }

  @Test func `unless all of it only adds, renames and converts`() throws {
    #expect(
      try steps([
        Self.teams(), Self.teams(attribute("name")),
        Self.teams(attribute("title", id: "name"))
          + [Self.entity("Cup", Self.relationship("winner", "Team"))],
      ]) == 1)
  }
}
