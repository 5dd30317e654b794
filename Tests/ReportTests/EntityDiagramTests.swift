import Foundation
import GodwitObjectModel
import Testing

@testable import GodwitReport

private func relationship(
  _ name: String, to destination: EntityName, inverse: String?, isToMany: Bool = false
) -> PropertyDescription {
  .relationship(
    .init(
      traits: .init(name: name), destinationEntity: destination, inverseName: inverse,
      maxCount: isToMany ? 0 : 1))
}

private func attribute(_ name: String, from identifier: String? = nil) -> PropertyDescription {
  var traits = PropertyTraits(name: name)
  traits.renamingIdentifier = identifier
  return .attribute(.init(traits: traits, type: .string))
}

private func hierarchy(_ entities: EntityDescription...) throws -> EntityHierarchy {
  try EntityHierarchy(ManagedObjectModel(entities: entities))
}

@Suite struct `A diagram of a model` {
  @Test func `draws a relationship and its inverse once, with both names and how many`() throws {
    let diagram = EntityDiagram(
      try hierarchy(
        EntityDescription(name: "A", properties: [relationship("b", to: "B", inverse: "a")]),
        EntityDescription(
          name: "B", properties: [relationship("a", to: "A", inverse: "b", isToMany: true)])))
    #expect(diagram.lines.count == 1)
    #expect(diagram.lines.first?.label == ["b (one)", "a (many)"])
    #expect(diagram.lines.first?.toEnd?.isToMany == false)
    #expect(diagram.lines.first?.fromEnd?.isToMany == true)
    #expect(diagram.dot.contains("n0 -> n1 ["))
    #expect(!diagram.dot.contains("n1 -> n0 ["))
  }

  @Test func `draws a relationship that is its own inverse once, with one name`() throws {
    let diagram = EntityDiagram(
      try hierarchy(
        EntityDescription(
          name: "A",
          properties: [relationship("friends", to: "A", inverse: "friends", isToMany: true)])))
    #expect(diagram.lines.map(\.label) == [["friends (many)"]])
    #expect(diagram.lines.map { [$0.from, $0.to] } == [[0, 0]])
  }

  @Test func `draws an arrow from an entity to its superentity`() throws {
    let diagram = EntityDiagram(
      try hierarchy(
        EntityDescription(name: "Animal", isAbstract: true),
        EntityDescription(name: "Dog", superentity: "Animal")))
    #expect(diagram.lines.map(\.isInheritance) == [true])
    #expect(diagram.boxes.map(\.notes) == [["abstract"], []])
    #expect(diagram.dot.contains("n1 -> n0 ["))
  }

  /// Names that mean something in Graphviz's language, in its tables, or nothing anywhere.
  @Test(arguments: ["A<\"&{|", "</TABLE>>];", "a\u{0}b", "a\u{FFFE}", "-->", "\\N", "Ünïcödé 名前"])
  func `cannot be broken by a name`(name: String) throws {
    let diagram = EntityDiagram(
      try hierarchy(
        EntityDescription(name: EntityName(rawValue: name), properties: [attribute(name)])))
    let svg = try Graphviz.svg(of: diagram)
    #expect(svg.components(separatedBy: "<g id=\"node").count == 2)
  }

  @Test(arguments: ["\\N", "C:\\Games\\New", "\\Qa.b\\E\\G", "a\\\\T", "\\"])
  func `has the backslashes of a name`(name: String) throws {
    let diagram = EntityDiagram(
      try hierarchy(EntityDescription(name: "A", properties: [attribute(name)])))
    #expect(try Graphviz.svg(of: diagram).contains(">\(name)</text>"))
  }
}

@Suite struct `A diagram of a change` {
  @Test func `has a word and a mark for everything that differs`() throws {
    let diagram = EntityDiagram(
      source: try hierarchy(
        EntityDescription(
          name: "Book", properties: [attribute("title"), attribute("isbn"), attribute("shelf")]),
        EntityDescription(name: "Magazine", properties: [attribute("issue")])),
      destination: try hierarchy(
        EntityDescription(
          name: "Book",
          properties: [
            attribute("name", from: "title"), attribute("isbn"), attribute("pages"),
          ]),
        EntityDescription(name: "Reader", properties: [attribute("name")])))
    #expect(diagram.boxes.map(\.title) == ["Book", "Reader", "Magazine"])
    #expect(diagram.boxes.map(\.kind) == [.changed, .added, .removed])
    let rows = diagram.boxes[0].rows
    #expect(rows.first { $0.name == "name" }?.detail == "was title")
    #expect(rows.first { $0.name == "pages" }?.detail == "added: String, optional")
    #expect(rows.first { $0.name == "shelf" }?.kind == .removed)
    #expect(rows.last == .init(name: "1 unchanged", detail: "attribute"))
    for text in ["~ Book", "+ Reader", "− Magazine", "+ pages", "− shelf", "~ name"] {
      #expect(diagram.dot.contains(">\(text)<"), "\(text)")
    }
  }

  @Test func `draws removed, added and kept relationships, each once`() throws {
    let diagram = EntityDiagram(
      source: try hierarchy(
        EntityDescription(
          name: "A",
          properties: [
            relationship("kept", to: "B", inverse: "back"),
            relationship("old", to: "B", inverse: nil),
          ]),
        EntityDescription(name: "B", properties: [relationship("back", to: "A", inverse: "kept")])),
      destination: try hierarchy(
        EntityDescription(
          name: "A",
          properties: [
            relationship("kept", to: "B", inverse: "back"),
            relationship("new", to: "A", inverse: nil),
          ]),
        EntityDescription(name: "B", properties: [relationship("back", to: "A", inverse: "kept")])))
    #expect(diagram.lines.map(\.kind) == [.same, .added, .removed])
    #expect(diagram.lines.map { $0.label[0] } == ["kept (one)", "new (one)", "old (one)"])
  }

  @Test func `of a large model leaves out what has nothing to do with the change`() throws {
    let entities = (0..<100).map { place in
      EntityDescription(
        name: EntityName(rawValue: "E\(place + 100)"),
        properties: [
          relationship(
            "next", to: EntityName(rawValue: "E\((place + 1) % 100 + 100)"), inverse: nil)
        ])
    }
    var changed = entities
    changed[7].properties.append(attribute("note"))
    let diagram = EntityDiagram(
      source: try EntityHierarchy(ManagedObjectModel(entities: entities)),
      destination: try EntityHierarchy(ManagedObjectModel(entities: changed)))
    #expect(diagram.boxes.map(\.title) == ["E107", "E108"])
    #expect(diagram.omittedCount == 98)
  }
}

@Suite struct `A drawing program` {
  private let diagram = EntityDiagram()

  @Test func `that is not installed is said, with what to do`() {
    #expect(throws: Graphviz.Failure.notInstalled) {
      try Graphviz.svg(of: diagram, program: nil)
    }
    #expect("\(Graphviz.Failure.notInstalled)".contains("--format dot"))
  }

  @Test func `that fails is said with its reason`() throws {
    let program = try shellScript("echo 'no fonts' >&2; exit 3")
    defer { try? FileManager.default.removeItem(atPath: program) }
    #expect(throws: Graphviz.Failure.failed(message: "no fonts")) {
      try Graphviz.svg(of: diagram, program: program)
    }
  }

  @Test func `that takes too long is ended`() throws {
    let program = try shellScript("exec sleep 600")
    defer { try? FileManager.default.removeItem(atPath: program) }
    #expect(throws: Graphviz.Failure.tookTooLong(seconds: 1)) {
      try Graphviz.svg(of: diagram, program: program, timeoutSeconds: 1)
    }
  }
}
