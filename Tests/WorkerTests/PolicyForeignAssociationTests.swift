import GodwitObjectModel
import GodwitPlanning
import Testing

@testable import GodwitWorker

/// Dogs take over the cats of the same name: the cat is associated with what became of the dog.
private final class MergingPolicy: EntityMigrationPolicy {
  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    let dog = try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source])[0]
    try manager.forEachSourceObject(ofEntity: "Cat") { cat in
      guard cat["name"] as String? == source["name"] as String? else { return }
      try manager.associate(sourceInstance: cat, withDestinationInstance: dog, for: mapping)
    }
  }
}

/// Associates the leaves of a tree with what became of the tree, which is of another table.
private final class TreePolicy: EntityMigrationPolicy {
  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    let tree = try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source])[0]
    for leaf in source.value(forKey: "leaves") as? Set<ManagedObject> ?? [] {
      try manager.associate(sourceInstance: leaf, withDestinationInstance: tree, for: mapping)
    }
  }
}

/// The forms of one question: what one mapping made of the objects of `$source.KEY`, by known routes and by an
/// expression that is evaluated.
private func questions(_ mapping: String, _ key: String, isToMany: Bool = true) -> [String] {
  let ask = "FUNCTION($manager, \"destinationInstancesForEntityMappingNamed:sourceInstances:\", "
  return ["$source.\(key)"].map { "\(ask)\"\(mapping)\", \($0))" }
    + [
      isToMany
        ? "\(ask)\"\(mapping)\", SUBQUERY($source.\(key), $x, TRUEPREDICATE))"
        : "\(ask)\"\(mapping)\", TERNARY(TRUEPREDICATE, $source.\(key), NULL))"
    ]
}

@Suite struct `What a policy associated with objects that its mapping does not take` {
  /// Cats 3 `Rex` of owner 1 and 4 `Ida` of none; dogs 1 `Rex` of none and 2 `Ida` of owner 2.
  private static func pets(isToMany: Bool) throws -> MigrationFixture {
    func model(_ more: PropertyDescription...) -> [EntityDescription] {
      [
        entity("Cat", parent: "Pet"), entity("Dog", parent: "Pet"),
        EntityDescription(
          name: "Owner", properties: [toMany("pets", "Pet", inverse: "owners")] + more),
        entity(
          "Pet", attribute("name"),
          isToMany
            ? toMany("owners", "Owner", inverse: "pets")
            : toOne("owners", "Owner", inverse: "pets")),
      ]
    }
    let fixture = try MigrationFixture(
      from: model(), to: model(attribute("fresh")),
      rows: """
        INSERT INTO ZOWNER (Z_PK, Z_ENT, Z_OPT) VALUES (1, 1, 1), (2, 1, 1);
        INSERT INTO ZPET (Z_PK, Z_ENT, Z_OPT, ZNAME)
        VALUES (1, 4, 1, 'Rex'), (2, 4, 1, 'Ida'), (3, 3, 1, 'Rex'), (4, 3, 1, 'Ida');
        """
          + (isToMany
            ? "INSERT INTO Z_1PETS (Z_1OWNERS, Z_2PETS) VALUES (1, 3), (2, 2)"
            : "UPDATE ZPET SET ZOWNERS = 1 WHERE Z_PK = 3; UPDATE ZPET SET ZOWNERS = 2 WHERE Z_PK = 2")
    )
    fixture.policies = PolicyRegistry(["MergingPolicy": MergingPolicy.self])
    return fixture
  }

  @Test(
    arguments: questions("DogToDog", "pets") + [
      "FUNCTION($manager, \"destinationInstancesForSourceRelationshipNamed:sourceInstances:\", "
        + "\"pets\", $source.pets)"
    ], [true, false])
  func `is found by references of one table, and they are no loss`(
    question: String, isToMany: Bool
  ) throws {
    let fixture = try Self.pets(isToMany: isToMany)
    let mapping = """
      mapping-model: 1
      entity-mappings:
        - { source: Dog, destination: Dog, policy: MergingPolicy, relationships: { owners: default } }
        - { type: remove, source: Cat }
        - { source: Owner, destination: Owner, relationships: { pets: '\(question)' } }
      """
    let store = try fixture.migrate(mapping)
    let pairs =
      isToMany
      ? """
      SELECT j.Z_1OWNERS, p.ZNAME FROM Z_1PETS AS j JOIN ZPET AS p ON p.Z_PK = j.Z_2PETS ORDER BY 1
      """ : "SELECT ZOWNERS, ZNAME FROM ZPET ORDER BY 1"
    #expect(try store.table(pairs) == ["1 Rex", "2 Ida"])
    #expect(fixture.latest?.plan.losses.filter { $0.kind == .reference } == [])
    #expect(fixture.droppedByMapping == [] && fixture.findings.isEmpty)
  }

  /// Without a policy that is asked, the references to cats are lost as before.
  @Test func `does not hide what nobody asks for`() throws {
    let fixture = try Self.pets(isToMany: true)
    let plan = try fixture.plan(
      """
      mapping-model: 1
      entity-mappings:
        - { source: Dog, destination: Dog, relationships: { owners: default } }
        - { type: remove, source: Cat }
        - { source: Owner, destination: Owner, relationships: { pets: automatic } }
      """)
    #expect(plan.losses.filter { $0.kind == .reference }.map(\.count) == [1])
  }

  /// Leaf 1 is of tree 1, leaves 2 and 3 of tree 2; nest 1 has leaves 1 and 3, and sits on leaf 2.
  private static func forest() throws -> MigrationFixture {
    func model(_ more: PropertyDescription...) -> [EntityDescription] {
      [
        entity(
          "Leaf", toOne("tree", "Tree", inverse: "leaves"),
          toMany("nests", "Nest", inverse: "leaves"),
          toMany("seats", "Nest", inverse: "seat")),
        EntityDescription(
          name: "Nest",
          properties: [
            toMany("leaves", "Leaf", inverse: "nests"), toOne("seat", "Leaf", inverse: "seats"),
          ] + more),
        entity("Tree", toMany("leaves", "Leaf", inverse: "tree")),
      ]
    }
    let fixture = try MigrationFixture(
      from: model(), to: model(toMany("trees", "Tree"), toOne("first", "Tree")),
      rows: """
        INSERT INTO ZTREE (Z_PK, Z_ENT, Z_OPT) VALUES (1, 3, 1), (2, 3, 1);
        INSERT INTO ZLEAF (Z_PK, Z_ENT, Z_OPT, ZTREE) VALUES (1, 1, 1, 1), (2, 1, 1, 2), (3, 1, 1, 2);
        INSERT INTO ZNEST (Z_PK, Z_ENT, Z_OPT, ZSEAT) VALUES (1, 2, 1, 2);
        INSERT INTO Z_1NESTS (Z_1LEAVES, Z_2NESTS) VALUES (1, 1), (3, 1)
        """)
    fixture.policies = PolicyRegistry(["TreePolicy": TreePolicy.self])
    return fixture
  }

  @Test(arguments: [0, 1])
  func `is found by references to another table`(form: Int) throws {
    let fixture = try Self.forest()
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { name: Trees, source: Tree, destination: Tree, policy: TreePolicy }
        - { source: Leaf, destination: Leaf, relationships: { tree: default } }
        - source: Nest
          destination: Nest
          relationships:
            trees: '\(questions("Trees", "leaves")[form])'
            first: '\(questions("Trees", "seat", isToMany: false)[form])'
      """)
    #expect(try store.table("SELECT Z_PK FROM ZTREE WHERE Z2TREES = 1 ORDER BY 1") == ["1", "2"])
    #expect(try store.table("SELECT ZFIRST FROM ZNEST") == ["2"])
  }

  @Test(arguments: ["$source", "TERNARY(TRUEPREDICATE, $source, NULL)"])
  func `is found by the object itself`(source: String) throws {
    let fixture = try Self.forest()
    let store = try fixture.migrate(
      """
      mapping-model: 1
      entity-mappings:
        - { name: Trees, source: Tree, destination: Tree, policy: TreePolicy, relationships: { leaves: default } }
        - source: Leaf
          destination: Leaf
          relationships:
            tree: 'FUNCTION($manager,
              "destinationInstancesForEntityMappingNamed:sourceInstances:", "Trees", \(source))'
        - { source: Nest, destination: Nest }
      """)
    #expect(try store.table("SELECT Z_PK, ZTREE FROM ZLEAF ORDER BY 1") == ["1 1", "2 2", "3 2"])
  }
}
