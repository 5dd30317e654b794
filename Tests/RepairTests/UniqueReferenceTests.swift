import GodwitObjectModel
import GodwitRepair
import GodwitSQLite
import Testing

/// An object says that it has the partner of another one, and a uniqueness constraint has that relationship.
@Suite struct `A one-to-one relationship under a uniqueness constraint` {
  private static func toOne(
    _ name: String, _ destination: EntityName, _ inverse: String, isOptional: Bool = true
  ) -> PropertyDescription {
    .relationship(
      RelationshipDescription(
        traits: PropertyTraits(name: name, isOptional: isOptional), destinationEntity: destination,
        inverseName: inverse, maxCount: 1))
  }

  @Test(arguments: [true, false])
  func `stays where both sides agree, and no object goes`(isOptional: Bool) throws {
    let model = ManagedObjectModel(entities: [
      EntityDescription(
        name: "Item",
        properties: [Self.toOne("box", "Box", "item", isOptional: isOptional)],
        uniquenessConstraints: [["box"]]),
      EntityDescription(name: "Box", properties: [Self.toOne("item", "Item", "box")]),
    ])
    let patient = try Patient(of: model, rows: 6) {
      ($0.nullFraction, $0.deletedFraction) = (0, 0)
    }
    let pairs = try patient.read(
      "SELECT i.Z_PK, b.Z_PK FROM ZITEM i JOIN ZBOX b ON i.ZBOX = b.Z_PK AND b.ZITEM = i.Z_PK "
        + "ORDER BY 1"
    ).map { $0.compactMap(\.integer) }
    try #require(pairs.count > 1)
    try patient.sql(
      "DROP INDEX Z_Item_UNIQUE_box; UPDATE ZITEM SET ZBOX = \(pairs[1][1]) WHERE Z_PK = \(pairs[0][0])"
    )
    let report = try patient.repair()
    #expect(try patient.keys(of: "ZITEM", in: patient.output) == patient.keys(of: "ZITEM"))
    #expect(
      try patient.read("SELECT ZBOX FROM ZITEM WHERE Z_PK = \(pairs[1][0])", of: patient.output)
        == [[.integer(pairs[1][1])]], "\(report.lost)")
    #expect(
      report.lost.contains { $0.property == "box" && $0.primaryKeys == KeyRanges([pairs[0][0]]) })
  }
}
