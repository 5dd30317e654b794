import GodwitObjectModel
import Testing

@testable import GodwitCommands

@Suite struct `A model in words` {
  private func version(
    _ name: String, _ properties: [PropertyDescription], _ configurations: [String: [EntityName]]
  ) -> ModelVersion {
    var note = EntityDescription(name: "Note", properties: properties)
    note.fetchIndexes = [
      FetchIndexDescription(
        name: "byPlace", elements: [.init(propertyName: "title", isAscending: false)],
        partialIndexPredicate: "title != nil")
    ]
    var model = ManagedObjectModel(entities: [note, EntityDescription(name: "Tag", properties: [])])
    model.configurations = configurations
    return ModelVersion(name: name, model: model, isCurrent: true, path: name)
  }

  private var properties: [PropertyDescription] {
    [
      .attribute(
        AttributeDescription(
          traits: PropertyTraits(name: "title"), type: .string, defaultValue: .text("new"),
          validation: [.minimumLength(3), .matches("[a-z]+")])),
      .attribute(
        AttributeDescription(
          traits: PropertyTraits(name: "place"), type: .composite,
          compositeElements: [
            AttributeDescription(traits: PropertyTraits(name: "street"), type: .string)
          ])),
      .relationship(
        RelationshipDescription(
          traits: PropertyTraits(name: "tags"), destinationEntity: "Tag", maxCount: 0,
          deleteRule: .cascade)),
      .fetchedProperty(
        FetchedPropertyDescription(
          traits: PropertyTraits(name: "like"),
          fetchRequest: FetchRequestTemplate(
            name: "f", entity: "Note", predicate: "title == $FETCH_SOURCE.title"))),
    ]
  }

  @Test func `hides no rule, element, predicate or configuration`() throws {
    let version = version("A", properties, ["Cloud": ["Note"], "Local": ["Tag", "Note"]])
    let hierarchy = try EntityHierarchy(version.model)
    #expect(
      ModelText.lines(hierarchy) == [
        "1  Note",
        "     like   fetched property Note where title == $FETCH_SOURCE.title, optional",
        "     place  Composite (street: String), optional",
        "     tags   to many, Tag, delete rule cascade, optional",
        "     title  String, default \"new\", length ≥ 3, matches [a-z]+, optional",
        "     index byPlace(title descending) where title != nil",
        "2  Tag",
        "configuration Cloud: Note",
        "configuration Local: Tag, Note",
      ])
    let record = ModelRecord(version, hierarchy)
    let found = try #require(record.entities.first?.properties)
    #expect(found[3].rules == ["length ≥ 3", "matches [a-z]+"])
    #expect(found[1].elements?.map(\.name) == ["street"])
    #expect(found[2].deleteRule == "cascade")
    #expect(found[0].request == "Note where title == $FETCH_SOURCE.title")
    #expect(record.configurations == ["Cloud": ["Note"], "Local": ["Tag", "Note"]])
  }

  @Test func `has the hash modifier of an entity`() throws {
    let version = ModelVersion(
      name: "A",
      model: ManagedObjectModel(entities: [
        EntityDescription(name: "Note", renamingIdentifier: "Memo", versionHashModifier: "2"),
        EntityDescription(name: "Tag"),
      ]), isCurrent: true, path: "A")
    let hierarchy = try EntityHierarchy(version.model)
    #expect(
      ModelText.lines(hierarchy).first == "1  Note, renamed from Memo, hash modifier 2")
    #expect(
      ModelRecord(version, hierarchy).entities.map(\.versionHashModifier) == ["2", nil])
  }

  /// Both have one version hash.
  @Test func `says what a store of a compatible version would be read wrongly in`() throws {
    func version(_ name: String, isExternal: Bool) -> ModelVersion {
      self.version(
        name,
        [
          .attribute(
            AttributeDescription(
              traits: PropertyTraits(name: "photo"), type: .binary,
              allowsExternalBinaryDataStorage: isExternal,
              preservesValueInHistoryOnDeletion: !isExternal)),
          .attribute(AttributeDescription(traits: PropertyTraits(name: "title"), type: .string)),
        ], [:])
    }
    let (before, after) = (version("A", isExternal: false), version("B", isExternal: true))
    let record = DifferenceRecord(try ModelPair(before, after))
    #expect(record.isCompatible && record.fails)
    #expect(record.notes.map(\.kind) == [.readOtherwise])
    #expect(record.notes.map(\.property) == ["photo"])
    #expect(record.lines.contains { $0.contains("hash modifier") })
    #expect(DifferenceRecord(try ModelPair(before, before)).notes.isEmpty)
  }

  /// No column has all of a composite attribute, so that `migrate` refuses no row for it.
  @Test func `says of a constraint that nothing keeps what a migration does`() throws {
    let place = PropertyDescription.attribute(
      AttributeDescription(
        traits: PropertyTraits(name: "place", isOptional: true), type: .composite,
        compositeElements: [
          AttributeDescription(traits: PropertyTraits(name: "street"), type: .string)
        ]))
    func version(_ name: String, _ constraints: [[String]]) -> ModelVersion {
      ModelVersion(
        name: name,
        model: ManagedObjectModel(entities: [
          EntityDescription(
            name: "Shop", versionHashModifier: name, properties: [place],
            uniquenessConstraints: constraints)
        ]), isCurrent: true, path: name)
    }
    let record = DifferenceRecord(try ModelPair(version("A", []), version("B", [["place"]])))
    #expect(record.isLightweight && record.conditions.isEmpty)
    #expect(record.notes.map(\.kind) == [.constraintNotKept])
    #expect(record.lines.contains { $0.hasPrefix("note: The uniqueness constraint Shop (place)") })
    #expect(!record.lines.contains { $0.contains("134111") })
    let again = try ModelPair(version("A", [["place"]]), version("B", [["place"]]))
    #expect(DifferenceRecord(again).notes.isEmpty)
  }

  @Test func `names configurations of which the entities change`() throws {
    let before = version("A", properties, ["Cloud": ["Note"], "Local": ["Tag"], "Old": ["Tag"]])
    let after = version("B", properties, ["Cloud": ["Tag"], "Local": ["Tag"], "New": ["Note"]])
    #expect(
      DifferenceRecord(try ModelPair(before, after)).configurations.map(\.line) == [
        "configuration Cloud: + Tag, - Note", "+ configuration New: Note", "- configuration Old",
      ])
  }

  /// A store of the configuration goes on holding its entities, and has those of no other.
  @Test(
    arguments: [
      (["One": ["Note"], "Two": ["Tag"]], ["One": ["Tag"], "Two": ["Tag"]], ["Note"]),
      (["One": ["Note"]], ["One": []], ["Note"]),
      (["One": ["Note"]], ["One": ["Note", "Tag"]], []),
      // Of the version without it nothing tells that its entities stay away.
      (["One": ["Note"]], ["Two": ["Tag"]], []),
      // Its stores are stores of all entities.
      (["All": ["Note", "Tag"]], ["All": ["Tag"]], []),
    ] as [([String: [EntityName]], [String: [EntityName]], [EntityName])])
  func `say what leaves a configuration`(
    before: [String: [EntityName]], after: [String: [EntityName]], lost: [EntityName]
  ) throws {
    let pair = try ModelPair(version("A", properties, before), version("B", properties, after))
    let record = DifferenceRecord(pair)
    #expect(record.isCompatible)
    #expect(record.losses.map(\.entity) == lost)
    #expect(record.fails == !lost.isEmpty)
    #expect(record.lines.contains("B is compatible with A: nothing to migrate.") == lost.isEmpty)
  }
}
