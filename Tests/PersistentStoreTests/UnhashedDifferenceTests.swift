import GodwitObjectModel
import Testing

@testable import GodwitPersistentStore

/// An attribute of the entity `P`.
private func model(_ properties: PropertyDescription...) throws -> EntityHierarchy {
  try EntityHierarchy(
    ManagedObjectModel(entities: [EntityDescription(name: "P", properties: properties)]))
}

private func attribute(
  _ name: String, _ type: AttributeType = .string, id: String? = nil,
  default value: StoredDefault? = nil, isExternal: Bool = false, isPreserved: Bool = false,
  isTransient: Bool = false, derived: String? = nil, elements: [AttributeDescription]? = nil
) -> AttributeDescription {
  AttributeDescription(
    traits: PropertyTraits(name: name, isTransient: isTransient, renamingIdentifier: id),
    type: type, defaultValue: value, allowsExternalBinaryDataStorage: isExternal,
    preservesValueInHistoryOnDeletion: isPreserved, derivationExpression: derived,
    compositeElements: elements)
}

/// A composite of two composites, both of which have an `id`.
private func pair(_ name: String, _ elements: String...) -> PropertyDescription {
  .attribute(
    attribute(
      name, .composite,
      elements: elements.map { attribute($0, .composite, elements: [attribute("id")]) }))
}

@Suite struct `What no version hash covers` {
  @Test(
    arguments: [
      (
        pair("c", "x", "y"), pair("c", "y", "x"),
        [
          "P.c.x.id is read as String in ZID, where c.y.id was written, and was written as String in ZID1",
          "P.c.y.id is read as String in ZID1, where c.x.id was written, and was written as String in ZID",
        ]
      ),
      (
        .attribute(attribute("b", .binary, isPreserved: true)),
        .attribute(attribute("b", .binary, isExternal: true)),
        ["P.b is read as Binary in ZB and was written as Binary with external storage in ZB"]
      ),
      (
        .attribute(attribute("n", .integer64, derived: "count:(x)")),
        .attribute(attribute("n", .string, derived: "count:(x)")),
        ["P.n is read as Integer 64 in ZN and was written as String in ZN"]
      ),
      (
        pair("c", "x"), pair("d", "x"),
        [
          "P.c.x.id is read as String in ZID, where d.x.id was written, and is not in the store's own model",
          "P.d.x.id was written as String in ZID and is not in the given model",
        ]
      ),
      // Neither changes a place or a form.
      (
        .attribute(attribute("s", isPreserved: true)),
        .attribute(attribute("s", isExternal: true)), []
      ),
      (.attribute(attribute("s")), .attribute(attribute("s")), []),
    ] as [(PropertyDescription, PropertyDescription, [String])])
  func `is told where values lie elsewhere or in another form`(
    given: PropertyDescription, own: PropertyDescription, storage: [String]
  ) throws {
    let (given, own) = (try model(given), try model(own))
    #expect(given.versionHashes == own.versionHashes)
    #expect(
      UnhashedDifference.between(given: given, own: own).storage.map(\.description) == storage)
  }

  @Test(
    arguments: [
      (
        [["ab"]], [["a"], ["b"]],
        [
          "P.ab is under a uniqueness constraint that the store's own model does not have",
          "P.a is not under the uniqueness constraint that the store's own model has",
          "P.b is not under the uniqueness constraint that the store's own model has",
        ]
      ),
      ([["a"], ["b"]], [["b"], ["a"]], []),
    ] as [([[String]], [[String]], [String])])
  func `is told where other properties are under constraints`(
    given: [[String]], own: [[String]], storage: [String]
  ) throws {
    func model(_ constraints: [[String]]) throws -> EntityHierarchy {
      try EntityHierarchy(
        ManagedObjectModel(entities: [
          EntityDescription(
            name: "P", properties: ["a", "ab", "b"].map { .attribute(attribute($0)) },
            uniquenessConstraints: constraints)
        ]))
    }
    let (given, own) = (try model(given), try model(own))
    #expect(given.versionHashes == own.versionHashes)
    let difference = UnhashedDifference.between(given: given, own: own)
    #expect(difference.storage.map(\.description) == storage)
    #expect(UnhashedDifference.closest(to: own, among: [given]) == (storage.isEmpty ? 0 : nil))
  }

  /// Composites of one form: the first one by name has the first column.
  @Test(arguments: [
    ("zhome", [false, false, false]), ("heim", [true, true]),
  ])
  func `is carried where a renamed value is read in its own place`(
    name: String, isCarried: [Bool]
  ) throws {
    func composite(_ name: String, id: String? = nil) -> PropertyDescription {
      .attribute(attribute(name, .composite, id: id, elements: [attribute("street")]))
    }
    let difference = UnhashedDifference.between(
      given: try model(composite(name, id: "home"), composite("work")),
      own: try model(composite("home"), composite("work")))
    #expect(difference.storage.map(\.isCarried) == isCarried)
  }

  @Test func `is told of renaming identifiers and default values`() throws {
    let given = try model(.attribute(attribute("s", id: "old", default: .text("x"))))
    let difference = UnhashedDifference.between(
      given: given, own: try model(.attribute(attribute("s"))))
    #expect(difference.storage == [])
    #expect(difference.identifiers.count == 1 && difference.defaults.count == 1)
  }

  @Test func `decides which of several models is closest to a store's own`() throws {
    let own = try model(.attribute(attribute("b", .binary, isExternal: true)))
    let same = try model(.attribute(attribute("b", .binary, isExternal: true)))
    let renamed = try model(.attribute(attribute("b", .binary, id: "old", isExternal: true)))
    let other = try model(.attribute(attribute("b", .binary, isPreserved: true)))
    #expect(UnhashedDifference.closest(to: own, among: [other, renamed, same]) == 2)
    #expect(UnhashedDifference.closest(to: own, among: [other, renamed]) == 1)
    #expect(UnhashedDifference.closest(to: own, among: [same, same]) == 0)
    #expect(UnhashedDifference.closest(to: own, among: [other]) == nil)
    #expect(UnhashedDifference.closest(to: own, among: []) == nil)
  }
}
