import GodwitMapping
import GodwitObjectModel
import Testing

@Suite struct `A check of the objects that an expression gives` {
  private func findings(_ rows: String, pets more: String = "") throws -> [String] {
    let source = try model(
      entity("Owner", attribute("name"), toOne("pet", "Pet"), toMany("pets", "Pet")),
      entity("Pet"), entity("Cat", parent: "Pet"), entity("Dog", parent: "Pet"))
    let destination = try model(
      entity(
        "Owner", attribute("name"), attribute("number", .integer64), toOne("pet", "Pet"),
        toOne("cat", "Cat"), toOne("stone", "Stone"), toMany("pets", "Pet")),
      entity("Pet"), entity("Cat", parent: "Pet"), entity("Stone"))
    let rows = rows.replacing("ASK(", with: "FUNCTION($manager, \"\(ask)\", ")
      .replacing("ORIGIN(", with: "FUNCTION($manager, \"\(origin)\", ")
    let document = try MappingDocument(
      bytes: Array(
        """
        mapping-model: 1
        entity-mappings:
          - { source: Owner, destination: Owner, others: none, \(rows) }
          - { source: Pet, destination: Pet\(more) }
          - { source: Cat, destination: Cat }
          - { source: Dog, destination: Stone }
        """.utf8), name: "test")
    return MappingCheck(
      MappingModel(document, source: source, destination: destination), source: source,
      destination: destination
    ).findings.map { "\($0.severity) \($0.kind.rawValue): \($0.message)" }
  }

  private let ask = "destinationInstancesForEntityMappingNamed:sourceInstances:"
  private let origin = "sourceInstancesForEntityMappingNamed:destinationInstances:"

  @Test(arguments: [
    "pet: 'ASK(\"PetToPet\", $source.pet)'", "pet: 'ASK(\"CatToCat\", $source.pet)'",
    "cat: 'ASK(\"CatToCat\", $source.pet)'",
    "pets: 'ASK(\"PetToPet\", {$source.pet, $source.pet})'",
    "pet: 'TERNARY($source.name == nil, ASK(\"PetToPet\", $source.pet), ASK(\"CatToCat\", $source.pet))'",
    "pet: 'TERNARY($source.name == nil, ASK(\"PetToPet\", $source.pet), NULL)'",
    "pets: '{}'", "pet: '{}'", "pet: NULL",
  ])
  func `finds nothing wrong`(row: String) throws {
    #expect(try findings("relationships: { \(row) }") == [])
  }

  /// A policy may have associated objects of any entity.
  @Test(arguments: [
    "ASK(\"PetToPet\", $source)", "ASK(\"PetToPet\", ORIGIN(\"PetToPet\", $destination))",
  ])
  func `finds nothing wrong with a policy that is asked for other objects`(pet: String) throws {
    let row = "relationships: { pet: '\(pet)' }"
    #expect(try findings(row).count { $0.contains("yields-nothing") } == 1)
    let found = try findings(row, pets: ", policy: PetPolicy")
    #expect(found.filter { !$0.contains("missing-policy") } == [])
  }

  /// What it makes by itself is known: of an object that its mapping takes.
  @Test(arguments: [
    ("ASK(\"PetToPet\", $source)", 0),
    ("ASK(\"PetToPet\", TERNARY(1 == 1, $source, $source.pet))", 1),
    ("ASK(\"PetToPet\", $source.pet)", 1),
  ])
  func `finds a wrong entity only in what a policy makes of its own objects`(
    stone: String, wrong: Int
  ) throws {
    let found = try findings("relationships: { stone: '\(stone)' }", pets: ", policy: PetPolicy")
    #expect(found.count { $0.contains("type-mismatch: Pet is not") } == wrong)
  }

  @Test(arguments: [
    // What a mapping makes is of its destination entity, and of none below.
    (
      "relationships: { cat: 'ASK(\"PetToPet\", $source.pet)' }",
      "error type-mismatch: Pet is not the relationship's destination, Cat"
    ),
    // Among the pets are dogs, and they become stones.
    (
      "relationships: { pet: 'FUNCTION($manager, "
        + "\"destinationInstancesForSourceRelationshipNamed:sourceInstances:\", \"pet\", $source.pet)' }",
      "warning type-mismatch: Stone is not the relationship's destination, Pet"
    ),
    (
      "relationships: { pet: 'TERNARY($source.name == nil, ASK(\"PetToPet\", $source.pet), "
        + "ASK(\"DogToStone\", $source.pet))' }",
      "warning type-mismatch: Stone is not the relationship's destination, Pet"
    ),
    (
      "relationships: { pets: '{ASK(\"PetToPet\", $source.pet), ASK(\"DogToStone\", $source.pet)}' }",
      "warning type-mismatch: Stone is not the relationship's destination, Pet"
    ),
    // An attribute where objects are needed.
    (
      "relationships: { pet: 'ASK(\"PetToPet\", $source.name)' }",
      "error type-mismatch: it is asked after a text, and takes objects"
    ),
    (
      "relationships: { pet: 'ASK(\"PetToPet\", {$source.pet, $source.name})' }",
      "warning type-mismatch: it is asked after a text, and takes objects"
    ),
    (
      "relationships: { pet: 'ASK(\"PetToPet\", $destination)' }",
      "warning yields-nothing: it takes source objects and is asked for destination objects: this yields "
        + "nothing"
    ),
    (
      "relationships: { pet: $destination.pets }",
      "error yields-nothing: relationships of destination objects cannot be read while they are being set. "
        + "Use the source's"
    ),
    (
      "attributes: { number: '$destination.pets.@count' }",
      "warning yields-nothing: pets of destination objects is set after their attributes: it is empty"
    ),
    (
      "relationships: { pet: 'ASK(\"PetToPet\", TERNARY($source.name == nil, $source, $source.pet))' }",
      "warning yields-nothing: PetToPet takes objects of Pet and is asked for those of Owner: this yields "
        + "nothing"
    ),
    (
      "relationships: { pet: 'ASK(\"PetToPet\", ORIGIN(\"PetToPet\", $destination))' }",
      "warning yields-nothing: PetToPet makes objects of Pet and is asked for those of Owner: this yields "
        + "nothing"
    ),
    (
      "relationships: { pets: 'ASK(\"PetToPet\", nil)' }",
      "error yields-nothing: nil asks for all objects in Core Data, and for none here. Ask for those of a "
        + "FETCH"
    ),
    (
      "relationships: { pet: 'ASK(\"PetToPet\", ORIGIN(\"PetToPet\", NULL))' }",
      "error yields-nothing: nil asks for all objects in Core Data, and for none here. Ask for those of a "
        + "FETCH"
    ),
    // One object or value where several are needed, and the other way round.
    (
      "attributes: { number: '$source.name[FIRST]' }",
      "error type-mismatch: […] needs a collection, and there is one value or object"
    ),
    (
      "attributes: { number: 'SUBQUERY($source.pet, $x, TRUEPREDICATE).@count' }",
      "error type-mismatch: SUBQUERY needs a collection, and there is one value or object"
    ),
    (
      "attributes: { number: '$source.pet + 1' }",
      "error type-mismatch: an object does not support arithmetic"
    ),
    (
      "attributes: { number: '$source.pet + 1' }",
      "error type-mismatch: an object does not support arithmetic"
    ),
    // One case of two.
    (
      "attributes: { number: 'TERNARY($source.name == nil, 1, $source.pet) + 1' }",
      "warning type-mismatch: an object does not support arithmetic"
    ),
    (
      "attributes: { name: 'TERNARY($source.name == nil, $source, $source.pet).name' }",
      "warning unknown-key: the source entity Pet has no property name"
    ),
    (
      "attributes: { number: 'TERNARY($source.name == nil, 0, $source.name)' }",
      "warning type-mismatch: a text is not converted to a number automatically. Convert it, for "
        + "instance with godwit.integer(…) or godwit.double(…)"
    ),
  ])
  func `says what cannot work, and what may not`(rows: String, finding: String) throws {
    #expect(try findings(rows) == [finding])
  }

  @Test(arguments: [
    "$source.name[$source.nme]", "SUBQUERY($source.name, $x, $source.nme == 1)[SIZE]",
  ])
  func `goes on behind what cannot work`(expression: String) throws {
    let found = try findings("attributes: { number: '\(expression)' }")
    #expect(found.count == 2)
    #expect(found.contains { $0.hasPrefix("error type-mismatch: ") })
    #expect(found.contains { $0.contains("has no property nme. Did you mean name?") })
  }
}
