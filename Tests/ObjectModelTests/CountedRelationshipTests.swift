import GodwitObjectModel
import Testing

@Suite struct `A derived attribute that counts` {
  private static func attribute(
    _ derivation: String?, _ type: AttributeType = .integer64
  ) -> AttributeDescription {
    AttributeDescription(
      traits: PropertyTraits(name: "n"), type: type, derivationExpression: derivation)
  }

  @Test(
    arguments: [
      ("count:(pages)", "pages"), ("pages.@count", "pages"), ("book.pages.@count", nil),
      ("pages.@sum.size", nil), ("count:(lowercase:(x))", nil), (".@count", nil), (nil, nil),
      ("count:(pages\u{6DD})", "pages\u{6DD}"), ("pages\u{6DD}.@count", "pages\u{6DD}"),
    ] as [(String?, String?)])
  func `names a relationship and nothing more`(derivation: String?, relationship: String?) {
    #expect(Self.attribute(derivation).countedRelationship == relationship)
  }

  @Test(arguments: AttributeType.allCases)
  func `has a type that numbers are values of`(type: AttributeType) {
    let holds: Set<AttributeType> = [
      .integer16, .integer32, .integer64, .decimal, .double, .float, .date,
    ]
    let counted = Self.attribute("pages.@count", type).countedRelationship
    #expect((counted == "pages") == holds.contains(type))
    // Whoever writes rows gives a number the form that SQLite would give it in the column.
    #expect(type.storesReals == [.double, .float].contains(type))
  }
}
