import GodwitExpressions
import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import Testing

@testable import GodwitPlanning

/// One side of a relationship.
struct RelationshipSide: Sendable, CustomStringConvertible {
  var isToMany = false
  var isOrdered = false
  var isTransient = false
  var hasInverse = true

  static let many = RelationshipSide(isToMany: true)
  static let list = RelationshipSide(isToMany: true, isOrdered: true)
  static let one = RelationshipSide()

  var transient: RelationshipSide {
    var side = self
    side.isTransient = true
    return side
  }
  var alone: RelationshipSide {
    var side = self
    side.hasInverse = false
    return side
  }

  var description: String {
    (isTransient ? "transient " : "") + (isOrdered ? "list" : isToMany ? "many" : "one")
      + (hasInverse ? "" : " alone")
  }

  func property(_ name: String, to destination: EntityName, inverse: String)
    -> PropertyDescription
  {
    .relationship(
      RelationshipDescription(
        traits: PropertyTraits(name: name, isTransient: isTransient),
        destinationEntity: destination, inverseName: hasInverse ? inverse : nil,
        maxCount: isToMany ? 0 : 1, isOrdered: isOrdered))
  }
}

private typealias Side = RelationshipSide

/// `A.x` and `B.y`, which are inverses unless one of them is alone.
private func model(_ x: RelationshipSide?, _ y: RelationshipSide?) throws -> EntityHierarchy {
  try EntityHierarchy(
    ManagedObjectModel(entities: [
      EntityDescription(
        name: "A", properties: x.map { [$0.property("x", to: "B", inverse: "y")] } ?? []),
      EntityDescription(
        name: "B", properties: y.map { [$0.property("y", to: "A", inverse: "x")] } ?? []),
    ]))
}

private func succession(_ versions: EntityHierarchy...) -> Succession {
  Succession(
    zip(versions, versions.dropFirst()).map { InferredMapping(source: $0, destination: $1) })
}

extension Succession {
  fileprivate var fateOfX: PairFate { fate(of: "x", from: "A", to: "B", inverse: "y") }
  fileprivate var losesPlaceOfX: Bool { losesPlace(in: "x", from: "A", to: "B", inverse: "y") }
}

@Suite struct `What becomes of a pair` {
  private static let sides = [true, false].flatMap { isToMany in
    [true, false].map { RelationshipSide(isToMany: isToMany, isTransient: $0) }
  }

  @Test(arguments: Self.sides, Self.sides)
  func `is asked of the columns that the layout has`(x: RelationshipSide, y: RelationshipSide)
    throws
  {
    for y in [y, nil] {
      let hierarchy = try model(y == nil ? x.alone : x, y)
      let layout = StoreLayout(hierarchy)
      for (entity, name) in [("A", "x"), ("B", "y")] as [(EntityName, String)] {
        guard let relationship = hierarchy.property(name, of: entity)?.property.relationship
        else { continue }
        let hasPlace =
          !relationship.traits.isTransient
          && layout.pairStorage(of: relationship, declaredBy: entity) != nil
        #expect(hierarchy.storesPairs(of: relationship) == hasPlace, "\(entity).\(name)")
      }
    }
  }

  @Test(
    arguments: [
      (Side.many, Side.one, Side.many, Side.one, true),
      // The pairs are the to-one's column.
      (Side.many, Side.one, Side.many, Side.one.transient, false),
      (Side.many, Side.one, Side.many.transient, Side.one, true),
      // Each to-one has a column of its own, and either to-many has the join table made.
      (Side.one, Side.one, Side.one, Side.one.transient, true),
      (Side.one, Side.one, Side.one.transient, Side.one.transient, false),
      (Side.many, Side.many, Side.many, Side.many.transient, true),
      (Side.many, Side.many, Side.many.transient, Side.many.transient, false),
    ] as [(RelationshipSide, RelationshipSide, RelationshipSide, RelationshipSide, Bool)])
  func `is told by what has a place in the store`(
    x: RelationshipSide, y: RelationshipSide, newX: RelationshipSide, newY: RelationshipSide,
    isKept: Bool
  ) throws {
    let fate = try succession(model(x, y), model(newX, newY)).fateOfX
    #expect(fate == (isKept ? .kept : .withoutRelationship))
  }

  @Test func `is decided by the version on the way that has no place for it`() throws {
    let ends = try model(Side.many, Side.one)
    let without = try model(Side.many, Side.one.transient)
    let halved = try model(Side.many.transient, Side.one)
    #expect(succession(ends, without, ends).fateOfX == .withoutRelationship)
    #expect(succession(ends, halved, ends).fateOfX == .kept)
  }

  @Test(arguments: [(Side.one, true), (Side.one.transient, false)])
  func `is not told by an expression for a relationship without a place`(
    newY: RelationshipSide, isKept: Bool
  ) throws {
    let row = PropertyMapping(name: "x", expression: try ValueExpression(parsing: "$source.x"))
    let mappings = [
      EntityMapping(
        name: "A",
        type: .transform(
          source: "A", destination: "A", PropertyMappings(relationships: [row]))),
      EntityMapping(
        name: "B", type: .transform(source: "B", destination: "B", PropertyMappings())),
    ]
    let (source, destination) = (try model(Side.many, Side.one), try model(Side.many, newY))
    let mapped = MappedSuccession(mappings, source: source, destination: destination)
    let fate: PairFate = isKept ? .kept : .withoutRelationship
    #expect(mapped.fate(of: "y", from: "B", to: "A", inverse: "x") == fate)
    #expect(mapped.fate(of: "x", from: "A", to: "B", inverse: "y") == fate)
  }
}

@Suite struct `What inference leaves behind of pairs` {
  /// `A.x` and `B.y` are inverses; either may be to-many, and either transient before and after.
  @Test(
    arguments: [
      // The pairs are the to-one's column.
      (Side.many, Side.one, Side.many, Side.one.transient, ["B.y"]),
      (Side.many, Side.one, Side.many.transient, Side.one, []),
      // Each to-one has a column, and either to-many has the join table made.
      (Side.one, Side.one, Side.one, Side.one.transient, []),
      (Side.one, Side.one, Side.one.transient, Side.one.transient, ["A.x"]),
      (
        Side.many, Side.many, Side.many.transient,
        Side.many, []
      ),
      // What had no place has nothing to lose, and the other side speaks for itself.
      (Side.many, Side.one.transient, nil, nil, []),
      (Side.one.transient, Side.one, nil, nil, ["B.y"]),
      (Side.many.transient, Side.many, nil, nil, ["B.y"]),
    ] as [(RelationshipSide, RelationshipSide, RelationshipSide?, RelationshipSide?, [String])])
  func `names a relationship that no longer has a place in the store`(
    x: RelationshipSide, y: RelationshipSide, newX: RelationshipSide?, newY: RelationshipSide?,
    expected: [String]
  ) throws {
    let inferred = InferredMapping(source: try model(x, y), destination: try model(newX, newY))
    #expect(inferred.losses.map { "\($0.entity).\($0.property ?? "-")" } == expected)
  }
}

@Suite struct `Pairs of entities that inherit a relationship` {
  /// `A.x` and three entities below `A`.
  private func version(_ x: EntityName?, _ names: [EntityName] = ["B", "C", "D"]) throws
    -> EntityHierarchy
  {
    try EntityHierarchy(
      ManagedObjectModel(
        entities: [
          EntityDescription(
            name: "A",
            properties: x.map { [Side.one.alone.property("x", to: $0, inverse: "")] } ?? [])
        ] + names.map { EntityDescription(name: $0, superentity: "A", properties: []) }))
  }

  /// Where `x` leads in the destination, which drops `D`; nil where it is gone.
  @Test(arguments: ["A", nil, "B"] as [EntityName?])
  func `are asked together only where the same becomes of them`(x: EntityName?) throws {
    let names: [EntityName] = ["A", "B", "C", "D"]
    let steps = succession(try version("A"), try version(x, ["B", "C"]))
    let groups = steps.groups(of: "x", from: names, to: names, inverse: nil)
    #expect(groups.flatMap(\.targets).count == 16)
    for group in groups {
      let fates = group.targets.map {
        steps.fate(of: "x", from: group.owner, to: $0, inverse: nil)
      }
      #expect(fates.allSatisfy { $0 == fates[0] }, "\(group)")
    }
    // For each owner those that stay and the dropped one.
    if x != "B" { #expect(groups.count == 8) }
  }

  @Test func `lose in one group what they lose one by one`() throws {
    let inferred = InferredMapping(source: try version("A"), destination: try version(nil, ["B"]))
    #expect(
      inferred.losses.map { "\($0.entity).\($0.property ?? "-")" } == ["A.x", "B.x", "C.-", "D.-"])
  }
}

@Suite struct `A derived attribute over several versions` {
  /// What derives `A.d` in each version; nil where it is an attribute like any other.
  @Test(
    arguments: [
      (["n", "n"], nil), (["n", "uppercase:(n)"], true), (["n", "x.n"], false),
      ([nil, nil], nil), ([nil, "n"], true), (["n", nil], nil),
      // The last derivation decides.
      (["n", "uppercase:(n)", "x.n"], false), (["n", "x.n", "n"], true),
      (["n", "x.n", nil], false),
      (["n", nil, "n"], true), (["x.n", nil, "x.n"], false),
    ] as [([String?], Bool?)])
  func `has what the last of its derivations gives`(derivations: [String?], isComputed: Bool?)
    throws
  {
    let versions = try derivations.map { derivation in
      try EntityHierarchy(
        ManagedObjectModel(entities: [
          EntityDescription(
            name: "A",
            properties: [("n", nil), ("d", derivation)].map { name, derivation in
              .attribute(
                AttributeDescription(
                  traits: PropertyTraits(name: name), type: .string,
                  derivationExpression: derivation))
            } + [Side.one.alone.property("x", to: "A", inverse: "")])
        ]))
    }
    let steps = zip(versions, versions.dropFirst()).map {
      InferredMapping(source: $0, destination: $1)
    }
    let d = try #require(versions[0].property("d", of: "A")?.property.attribute)
    #expect(Succession(steps).derivesAnew(d, in: "A") == isComputed)
  }
}

@Suite struct `The place of a member` {
  @Test(
    arguments: [
      (Side.list, Side.one, Side.list, Side.one, false),
      (Side.list, Side.one, Side.many, Side.one, true),
      // The inverse keeps the pairs, and nothing their order.
      (Side.list, Side.one, nil, Side.one.alone, true),
      (Side.list, Side.one, Side.list.transient, Side.one, true),
      // Without inverse there is no column for places.
      (Side.list, Side.one, Side.list.alone, nil, true),
      // The pairs go, which is a loss by itself.
      (Side.list, Side.one, nil, nil, false),
      (Side.list, Side.one, Side.list, Side.one.transient, false),
      (Side.list, Side.list, Side.list, Side.list, false),
      (Side.list, Side.list, Side.many, Side.list, true),
      (Side.list, Side.list, Side.list, Side.many, false),
      (Side.list, Side.list, Side.list.transient, Side.list, true),
      (Side.list, Side.list, Side.list, Side.list.transient, false),
      (Side.list, Side.one, Side.list, Side.many, false),
    ] as [(RelationshipSide, RelationshipSide, RelationshipSide?, RelationshipSide?, Bool)])
  func `is lost where the pair stays and its order has no column`(
    x: RelationshipSide, y: RelationshipSide, newX: RelationshipSide?, newY: RelationshipSide?,
    isLost: Bool
  ) throws {
    #expect(try succession(model(x, y), model(newX, newY)).losesPlaceOfX == isLost)
  }

  @Test func `is lost on the way, whatever comes later`() throws {
    let ends = try model(Side.list, Side.one)
    let unordered = try model(Side.many, Side.one)
    #expect(succession(ends, unordered, ends).losesPlaceOfX)
    #expect(!succession(ends, ends, ends).losesPlaceOfX)
  }

  @Test func `is kept by another list that is the inverse of what keeps the pairs`() throws {
    let other = try EntityHierarchy(
      ManagedObjectModel(entities: [
        EntityDescription(
          name: "A", properties: [Side.list.property("z", to: "B", inverse: "y")]),
        EntityDescription(
          name: "B", properties: [Side.one.property("y", to: "A", inverse: "z")]),
      ]))
    let before = try model(Side.list, Side.one)
    #expect(!succession(before, other).losesPlaceOfX)
  }
}
