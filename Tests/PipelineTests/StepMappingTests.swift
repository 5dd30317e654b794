import Foundation
import Testing

/// A pipeline over versions A, B and C, with a mapping model for each step.
@Suite struct `Mapping models of two steps in one pipeline` {
  private static func model(_ attributes: [String]) -> String {
    let rows = attributes.map {
      #"<attribute name="\#($0)" optional="YES" attributeType="Integer 32"/>"#
    }
    return """
      <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
      <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" \
      userDefinedModelVersionIdentifier="">
        <entity name="Item">\(rows.joined())</entity>
      </model>
      """
  }

  private static func mapping(_ versions: String, _ value: String) -> String {
    """
    mapping-model: 1
    \(versions)
    entity-mappings:
      - { source: Item, destination: Item, attributes: { n: \(value) } }
    """
  }

  /// - Parameter names: Whether the mapping models say which step they are for.
  private func folder(_ keys: String, names: Bool = true) throws -> PipelineFolder {
    let folder = try PipelineFolder("total-cost")
    for (name, attributes) in [("A", ["n"]), ("B", ["n", "x"]), ("C", ["n", "x", "y"])] {
      let path = folder.path("Shop.xcdatamodeld/\(name).xcdatamodel")
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      try Self.model(attributes).write(
        toFile: path + "/contents", atomically: true, encoding: .utf8)
    }
    for (name, from, to, value) in [
      ("ab", "A", "B", "$source.n + 1"), ("bc", "B", "C", "$source.n * 10"),
    ] {
      let versions = "source-model: Shop.xcdatamodeld/\(from).xcdatamodel\ndestination-model: \(to)"
      try Self.mapping(names ? versions : "", value).write(
        toFile: folder.path("\(name).yaml"), atomically: true, encoding: .utf8)
    }
    try """
    stores: { roots: stores }
    models: Shop.xcdatamodeld
    destination: C
    \(keys)
    """.write(toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
    for name in ["A", "B"] {
      try folder.write(
        "stores/\(name).sqlite", "Shop.xcdatamodeld/\(name)",
        "INSERT INTO ZITEM (Z_PK, Z_ENT, Z_OPT, ZN) VALUES (1, 1, 1, 5), (2, 1, 1, 6)")
    }
    return folder
  }

  private func values(_ folder: PipelineFolder) throws -> [[String]] {
    try ["A", "B"].map {
      try folder.table("stores/\($0).sqlite", "SELECT ZN FROM ZITEM ORDER BY Z_PK")
    }
  }

  @Test(arguments: [("direct", ["5", "6"]), ("progressive", ["60", "70"])])
  func `are each for its own step, and no object is made twice`(
    chain: String, ofA: [String]
  ) throws {
    let folder = try folder("mappings: [ab.yaml, bc.yaml]\nchain: \(chain)")
    let run = try Godwit.run(folder)
    #expect(run.status == 0, "\(run.messages)")
    #expect(try values(folder) == [ofA, ["50", "60"]])
    let notes = run.results.first { $0.key.hasSuffix("/A.sqlite") }?.value["notes"] as? [String]
    #expect(
      (notes ?? []).filter { $0.contains("is not used") }.count == (chain == "direct" ? 2 : 0))
  }

  @Test func `are refused where they do not say which step they are for`() throws {
    let folder = try folder("mappings: [ab.yaml, bc.yaml]", names: false)
    let run = try Godwit.run(folder)
    #expect(run.status == 3, "\(run.messages)")
    #expect(run.reason(of: "A") == "repeated-mapping")
    #expect(try values(folder) == [["5", "6"], ["5", "6"]])
  }

  @Test func `are refused where one is given twice`() throws {
    let folder = try folder("mappings: [bc.yaml, ab.yaml, bc.yaml]")
    let run = try Godwit.run(folder)
    #expect(run.status == 65, "\(run.messages)")
    #expect(run.messages.contains("bc.yaml is given twice"))
    #expect(try values(folder) == [["5", "6"], ["5", "6"]])
  }
}
