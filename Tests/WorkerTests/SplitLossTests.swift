import GodwitObjectModel
import GodwitPlanning
import Testing

@testable import GodwitWorker

/// What is counted, as `kind entity.property count`, over all shards.
private func sums(_ losses: [Loss]) -> [String] {
  var sums: [String: Int64] = [:]
  for loss in losses {
    sums["\(loss.kind.rawValue) \(loss.entity ?? "-").\(loss.property ?? "-")", default: 0] +=
      loss.count
  }
  return sums.map { "\($0.key) \($0.value)" }.sorted()
}

/// What the plan counts, and what the stages do.
private func losses(
  of fixture: MigrationFixture, _ lines: [String], shardBytes: Int64
) throws -> [[String]] {
  _ = try fixture.migrate(
    "mapping-model: 1\nentity-mappings:\n" + lines.map { "  - { \($0) }\n" }.joined(),
    shardBytes: shardBytes)
  return [sums(try #require(fixture.latest).plan.losses), sums(fixture.droppedByMapping)]
}

/// `place`: a street and, where there is a type for it, a number.
private func place(_ name: String, _ number: AttributeType?) -> PropertyDescription {
  let elements =
    [attribute("street").attribute] + (number.map { [attribute("num", $0).attribute] } ?? [])
  return .attribute(
    AttributeDescription(
      traits: PropertyTraits(name: name), type: .composite,
      compositeElements: elements.compactMap(\.self)))
}

private let kind = attribute("kind", .integer64)

@Suite struct `What each half of a split entity keeps` {
  private static let first = "source: E, destination: A, filter: kind == 1"
  private static let second = "source: E, destination: B, filter: kind == 2"

  /// The number's type in `A` and in `B`, what the plan counts, and what the stages do.
  @Test(
    arguments: [
      (.double, .double, [], []), (nil, nil, ["attribute E.place.num 2"], []),
      // An element of a type that is not converted is none.
      (.string, nil, ["attribute E.place.num 2"], []),
      (.double, nil, [], ["attribute E.place.num 1"]),
      (nil, .double, [], ["attribute E.place.num 1"]),
      (.double, .integer64, [], ["narrowing E.place.num 1"]),
    ] as [(AttributeType?, AttributeType?, [String], [String])], [Int64(1), 1 << 20])
  func `of a composite is told element by element`(
    example: (a: AttributeType?, b: AttributeType?, planned: [String], counted: [String]),
    shardBytes: Int64
  ) throws {
    let fixture = try MigrationFixture(
      from: [entity("E", kind, place("place", .double))],
      to: [
        entity("A", kind, place("place", example.a)), entity("B", kind, place("place", example.b)),
      ],
      rows: """
        INSERT INTO ZE (Z_PK, Z_ENT, Z_OPT, ZKIND, ZSTREET, ZNUM)
        VALUES (1, 1, 1, 1, 'Main', 11.5), (2, 1, 1, 2, 'High', 12.5)
        """)
    let found = try losses(of: fixture, [Self.first, Self.second], shardBytes: shardBytes)
    #expect(found == [example.planned, example.counted])
  }

  @Test(arguments: [Int64(1), 1 << 20])
  func `is nothing of what its derivation replaces`(shardBytes: Int64) throws {
    let derived = PropertyDescription.attribute(
      AttributeDescription(
        traits: PropertyTraits(name: "name"), type: .string,
        derivationExpression: "canonical:(other)"))
    let fixture = try MigrationFixture(
      from: [entity("E", kind, attribute("name"), attribute("other"))],
      to: [
        entity("A", kind, derived, attribute("other")),
        entity("B", kind, attribute("name"), attribute("other")),
      ],
      rows: """
        INSERT INTO ZE (Z_PK, Z_ENT, Z_OPT, ZKIND, ZNAME, ZOTHER)
        VALUES (1, 1, 1, 1, 'lost', 'o'), (2, 1, 1, 2, 'kept', 'p')
        """)
    let found = try losses(of: fixture, [Self.first, Self.second], shardBytes: shardBytes)
    #expect(found == [[], ["attribute E.name 1"]])
  }

  /// The number's type in `A` and in `B`, what the plan counts, and what the stages do.
  @Test(
    arguments: [
      (first, .double, .double, [], []),
      (first, .double, .integer64, [], ["narrowing E.d 2"]),
      (first, .integer64, .double, [], ["narrowing E.d 2"]),
      (first, .decimal, .integer64, [], ["narrowing E.d 2"]),
      // What neither half has the plan has counted.
      (first, .integer64, .integer32, ["narrowing E.d 4"], []),
      (first, .float, .integer64, ["narrowing E.d 1"], ["narrowing E.d 2"]),
      // Each object has all of its mappings.
      ("source: E, destination: A", .double, .integer64, [], []),
    ] as [(String, AttributeType, AttributeType, [String], [String])], [Int64(1), 1 << 20])
  func `of a number is told by its own type`(
    example: (
      first: String, a: AttributeType, b: AttributeType, planned: [String], counted: [String]
    ), shardBytes: Int64
  ) throws {
    let fixture = try MigrationFixture(
      from: [entity("E", kind, attribute("d", .double))],
      to: [
        entity("A", kind, attribute("d", example.a)), entity("B", kind, attribute("d", example.b)),
      ],
      rows: """
        INSERT INTO ZE (Z_PK, Z_ENT, Z_OPT, ZKIND, ZD)
        VALUES (1, 1, 1, 1, 1.5), (2, 1, 1, 1, 3.141592653589793), (3, 1, 1, 2, 2.75),
               (4, 1, 1, 2, 3.25), (5, 1, 1, 2, 4), (6, 1, 1, 2, NULL)
        """)
    let found = try losses(of: fixture, [example.first, Self.second], shardBytes: shardBytes)
    #expect(found == [example.planned, example.counted])
  }

  /// How `A` is made, whether the lists of `A` and `B` are ordered, the rows for `B.tags` and `T.b`, what the
  /// plan counts, and what the stages do.
  @Test(
    arguments: [
      (first, true, true, ("automatic", "default"), [], []),
      (first, true, false, ("automatic", "default"), [], ["order E.tags 2"]),
      (first, true, false, ("default", "{ along: e }"), [], ["order E.tags 2"]),
      (first, false, false, ("automatic", "default"), ["order E.tags 4"], []),
      ("source: E, destination: A", true, false, ("automatic", "default"), [], []),
    ] as [(String, Bool, Bool, (String, String), [String], [String])], [Int64(1), 1 << 20])
  func `of a list is told by its own list`(
    example: (
      first: String, a: Bool, b: Bool, rows: (tags: String, b: String), planned: [String],
      counted: [String]
    ), shardBytes: Int64
  ) throws {
    func list(_ owner: EntityName, _ inverse: String, _ isOrdered: Bool) -> EntityDescription {
      entity(owner, kind, toMany("tags", "T", inverse: inverse, ordered: isOrdered))
    }
    let fixture = try MigrationFixture(
      from: [list("E", "e", true), entity("T", toOne("e", "E", inverse: "tags"))],
      to: [
        list("A", "a", example.a), list("B", "b", example.b),
        entity("T", toOne("a", "A", inverse: "tags"), toOne("b", "B", inverse: "tags")),
      ],
      rows: """
        INSERT INTO ZE (Z_PK, Z_ENT, Z_OPT, ZKIND) VALUES (1, 1, 1, 1), (2, 1, 1, 2);
        INSERT INTO ZT (Z_PK, Z_ENT, Z_OPT, ZE, Z_FOK_E)
        VALUES (1, 2, 1, 1, 3072), (2, 2, 1, 1, 2048), (3, 2, 1, 2, 3072), (4, 2, 1, 2, 2048)
        """)
    let found = try losses(
      of: fixture,
      [
        example.first, Self.second + ", relationships: { tags: \(example.rows.tags) }",
        "source: T, destination: T, relationships: { a: default, b: \(example.rows.b) }",
      ], shardBytes: shardBytes)
    #expect(found == [example.planned, example.counted])
  }

  @Test func `is added up by its reason`() throws {
    for made in [Loss.init(narrowedIn:of:_:), Loss.init(unplacedIn:of:_:)] {
      let (one, more) = (made("d", "E", RowTally([7])), made("d", "E", RowTally([3, 9])))
      let both = try #require(one).adding(try #require(more))
      #expect(both == made("d", "E", RowTally([3, 7, 9])))
    }
    let planned = Loss(.narrowing, entity: "E", property: "d", count: 1, message: "becomes Float")
    let found = try #require(Loss(narrowedIn: "d", of: "E", RowTally([7])))
    #expect(planned.adding(found) == nil)
  }
}

@Suite struct `What several mappings of both ends keep` {
  private static let card = "source: Person, destination: Card"
  private static let person = "source: Person, destination: Person"
  private static let company = "source: Company, destination: Company"
  private static let address = "source: Company, destination: Address"

  /// Entity mappings, and what the stages do.
  @Test(
    arguments: [
      ([card, person, company, address], []), ([person, card, company, address], []),
      ([card, person, address, company], []), ([address, card, company, person], []),
      // A company that is an address alone.
      ([card, person, company + ", filter: kind == 1", address], ["reference Company.people 1"]),
      ([address, card, company + ", filter: kind == 1", person], ["reference Company.people 1"]),
    ] as [([String], [String])], [Int64(1), 1 << 20])
  func `of a reference is what any of them does`(
    example: (mappings: [String], counted: [String]), shardBytes: Int64
  ) throws {
    let staff = toOne("company", "Company", inverse: "people")
    let people = toMany("people", "Person", inverse: "company")
    let fixture = try MigrationFixture(
      from: [
        entity("Person", attribute("name"), attribute("mail"), staff),
        entity("Company", kind, attribute("street"), people),
      ],
      to: [
        entity("Person", attribute("name"), staff), entity("Card", attribute("mail")),
        entity("Company", kind, people), entity("Address", kind, attribute("street")),
      ],
      rows: """
        INSERT INTO ZCOMPANY (Z_PK, Z_ENT, Z_OPT, ZKIND, ZSTREET)
        VALUES (1, 1, 1, 1, 'Main'), (2, 1, 1, 2, 'High');
        INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZNAME, ZMAIL, ZCOMPANY)
        VALUES (1, 2, 1, 'a', 'm', 1), (2, 2, 1, 'b', 'n', 2), (3, 2, 1, 'c', 'o', NULL)
        """)
    let found = try losses(of: fixture, example.mappings, shardBytes: shardBytes)
    #expect(found == [[], example.counted])
  }

  /// The kind of the one that is another's boss and twin, the twins of both, what a further mapping takes,
  /// and what the stages do.
  @Test(
    arguments: [
      (0, "2", "1", "kind < 2", ["reference E.boss 1", "reference E.twin 1"]),
      (0, "2", "1", "kind > 9", ["reference E.boss 1", "reference E.twin 1"]),
      (3, "2", "1", "kind < 2", []),
      // A pair that one column alone has.
      (0, "NULL", "1", "kind < 2", ["reference E.boss 1", "reference E.twin 1"]),
      (0, "2", "NULL", "kind < 2", ["reference E.boss 1", "reference E.twin 1"]),
      (0, "NULL", "1", "kind > 9", ["reference E.boss 1", "reference E.twin 1"]),
      (0, "2", "NULL", "kind > 9", ["reference E.boss 1", "reference E.twin 1"]),
      (3, "NULL", "1", "kind < 2", []),
    ] as [(Int, String, String, String, [String])], [Int64(1), 1 << 20])
  func `is lost once a pair, from either side`(
    example: (kind: Int, first: String, second: String, further: String, counted: [String]),
    shardBytes: Int64
  ) throws {
    func one(_ name: EntityName) -> EntityDescription {
      entity(
        name, kind, toOne("boss", name, inverse: "staff"), toMany("staff", name, inverse: "boss"),
        toOne("twin", name, inverse: "twin"))
    }
    let fixture = try MigrationFixture(
      from: [one("E")], to: [one("A"), one("E")],
      rows: """
        INSERT INTO ZE (Z_PK, Z_ENT, Z_OPT, ZKIND, ZBOSS, ZTWIN)
        VALUES (1, 1, 1, \(example.kind), NULL, \(example.first)), (2, 1, 1, 3, 1, \(example.second))
        """)
    let alone =
      "source: E, destination: A, relationships: { boss: default, staff: default, twin: default }"
    let found = try losses(
      of: fixture,
      [
        "name: All, \(alone)", "name: Further, \(alone), filter: \(example.further)",
        "name: High, source: E, destination: E, filter: kind > 1",
      ], shardBytes: shardBytes)
    #expect(found == [[], example.counted])
  }

  private static let list = "source: List, destination: List"
  private static let item = "source: Item, destination: Item"
  private static let archive = "source: List, destination: Archive"
  private static let record = "source: Item, destination: Record"
  private static let current = item + ", filter: kind > 1"
  private static let rest = "name: Rest, " + item + ", filter: kind <= 1"
  private static let listOfCurrent =
    list + ", relationships: { items: 'FUNCTION($manager, "
    + "\"destinationInstancesForEntityMappingNamed:sourceInstances:\", \"ItemToItem\", $source.items)' }"

  /// Entity mappings, of which those to `List` keep places, what the plan counts, and what the stages do.
  @Test(
    arguments: [
      ([list, current, archive, record], [], ["order List.items 3"]),
      ([archive, record, list, current], [], ["order List.items 3"]),
      ([list, item, archive, record], [], []),
      ([archive, record], ["order List.items 5"], []),
      // The other side makes the rest members, which have no places; the list's own row removes them.
      ([listOfCurrent, current, rest], [], ["order List.items 3"]),
      ([current, rest, listOfCurrent], [], ["shared-target Item.list 3"]),
      ([list, current, rest], [], []),
    ] as [([String], [String], [String])], [Int64(1), 1 << 20])
  func `of a place is that of the members that their lists ask for`(
    example: (mappings: [String], planned: [String], counted: [String]), shardBytes: Int64
  ) throws {
    let items = toMany("items", "Item", inverse: "list", ordered: true)
    let member = toOne("list", "List", inverse: "items")
    let fixture = try MigrationFixture(
      from: [entity("List", items), entity("Item", kind, member)],
      to: [
        entity("List", items), entity("Item", kind, member),
        entity("Archive", toMany("items", "Record", inverse: "list")),
        entity("Record", kind, toOne("list", "Archive", inverse: "items")),
      ],
      rows: """
        INSERT INTO ZLIST (Z_PK, Z_ENT, Z_OPT) VALUES (1, 2, 1);
        INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZKIND, ZLIST, Z_FOK_LIST)
        VALUES (5, 1, 1, 5, 1, 2048), (4, 1, 1, 1, 1, 3072), (3, 1, 1, 4, 1, 4096),
               (2, 1, 1, 0, 1, 5120), (1, 1, 1, -1, 1, 6144)
        """)
    let found = try losses(of: fixture, example.mappings, shardBytes: shardBytes)
    #expect(found == [example.planned, example.counted])
  }
}

@Suite struct `What several rows keep together` {
  /// The types of what a Double is handed over to, and how many numbers change in all of them.
  @Test(
    arguments: [
      ([.integer64, .float], 1), ([.float, .float], 1), ([.integer64, .integer64], 2),
      ([.integer64, .float, .double], 0), ([.integer64, .float, .integer16], 1),
    ] as [([AttributeType], Int)])
  func `of a number is what the best of them has`(types: [AttributeType], changed: Int) throws {
    let names = types.indices.map { "d\($0)" }
    let fixture = try MigrationFixture(
      from: [entity("E", attribute("d", .double))],
      to: [
        EntityDescription(
          name: "E", properties: zip(names, types).map { attribute($0, $1) })
      ],
      rows: """
        INSERT INTO ZE (Z_PK, Z_ENT, Z_OPT, ZD)
        VALUES (1, 1, 1, 3.141592653589793), (2, 1, 1, 2.5), (3, 1, 1, 4)
        """)
    let rows = names.map { "\($0): $source.d" }.joined(separator: ", ")
    let plan = try fixture.plan(
      "mapping-model: 1\nentity-mappings: [{ source: E, destination: E, attributes: { \(rows) } }]")
    #expect(sums(plan.losses) == (changed == 0 ? [] : ["narrowing E.d \(changed)"]))
  }

  @Test(
    arguments: [
      (nil, nil, ["attribute E.place.num 2"]), (nil, .double, []), (.string, .double, []),
      (.integer64, nil, ["narrowing E.place.num 2"]),
      (.integer64, .float, ["narrowing E.place.num 1"]),
    ] as [(AttributeType?, AttributeType?, [String])])
  func `of a composite is what one of them has`(
    place number: AttributeType?, copy: AttributeType?, expected: [String]
  ) throws {
    let fixture = try MigrationFixture(
      from: [entity("E", place("place", .double))],
      to: [entity("E", place("place", number), place("copy", copy))],
      rows: """
        INSERT INTO ZE (Z_PK, Z_ENT, Z_OPT, ZSTREET, ZNUM)
        VALUES (1, 1, 1, 'Main', 3.141592653589793), (2, 1, 1, 'High', 2.5)
        """)
    let plan = try fixture.plan(
      "mapping-model: 1\nentity-mappings: "
        + "[{ source: E, destination: E, attributes: { copy: $source.place } }]")
    #expect(sums(plan.losses) == expected)
  }
}
