import Foundation
import GodwitKeyedArchive
import GodwitObjectModel
import Testing

@testable import GodwitExpressions
@testable import GodwitMapping

@Suite struct `Xcode's mapping model file` {
  private func read(_ objects: String) throws -> MappingDocument {
    let text = """
      <?xml version="1.0" standalone="yes"?>
      <!DOCTYPE database SYSTEM "file:///System/Library/DTDs/CoreData.dtd">
      <database>
        <databaseInfo><version>134481920</version></databaseInfo>
        \(objects)
      </database>
      """
    return try MappingDocument(bytes: Array(text.utf8), name: "test")
  }

  private let model = """
    <object type="XDDEVMAPPINGMODEL" id="z1">
      <attribute name="sourcemodelpath" type="string">A.xcdatamodeld/A 1.xcdatamodel</attribute>
      <relationship name="entitymappings" type="0/0" destination="XDDEVENTITYMAPPING"
        idrefs="z3 z2"></relationship>
    </object>
    """

  private static func mapping(_ references: String) -> String {
    """
    <object type="XDDEVMAPPINGMODEL" id="z1"><relationship name="entitymappings"
      destination="XDDEVENTITYMAPPING" idrefs="\(references)"></relationship></object>
    """
  }

  private static func row(_ id: String) -> String {
    "<object type=\"XDDEVENTITYMAPPING\" id=\"\(id)\"></object>"
  }

  @Test func `is read in order, without what an edit left behind`() throws {
    let document = try read(
      model + """
        <object type="XDDEVENTITYMAPPING" id="z2">
          <attribute name="mappingtypename" type="string">Undefined</attribute>
          <attribute name="mappingnumber" type="int16">1</attribute>
          <attribute name="sourcename" type="string">Note</attribute>
          <attribute name="destinationname" type="string">Note</attribute>
          <attribute name="migrationpolicyclassname" type="string"></attribute>
          <attribute name="sourcefilterpredicatestring" type="string">id \\u3c00 10 \\u2600\\u2600 x \\u3e00 1</attribute>
          <relationship name="attributemappings" type="0/0" destination="XDDEVATTRIBUTEMAPPING"
            idrefs="z6 z5"></relationship>
          <relationship name="relationshipmappings" type="0/0"
            destination="XDDEVRELATIONSHIPMAPPING" idrefs="z7 z8"></relationship>
        </object>
        <object type="XDDEVENTITYMAPPING" id="z3">
          <attribute name="mappingnumber" type="int16">2</attribute>
          <attribute name="sourcename" type="string">Gone</attribute>
        </object>
        <object type="XDDEVENTITYMAPPING" id="z4">
          <attribute name="mappingnumber" type="int16">1</attribute>
          <attribute name="sourcename" type="string">LeftBehind</attribute>
        </object>
        <object type="XDDEVATTRIBUTEMAPPING" id="z5">
          <attribute name="name" type="string">b</attribute>
        </object>
        <object type="XDDEVATTRIBUTEMAPPING" id="z6">
          <attribute name="name" type="string">a</attribute>
        </object>
        <object type="XDDEVRELATIONSHIPMAPPING" id="z7">
          <attribute name="name" type="string">note</attribute>
          <attribute name="autogenerateexpression" type="bool">1</attribute>
          <attribute name="sourcekeypath" type="string">$source</attribute>
          <attribute name="sourcemappingname" type="string">NoteToNote</attribute>
        </object>
        <object type="XDDEVRELATIONSHIPMAPPING" id="z8">
          <attribute name="name" type="string">other</attribute>
          <attribute name="sourcekeypath" type="string">$source.a.b</attribute>
        </object>
        """)
    #expect(document.sourceModelPath == "A.xcdatamodeld/A 1.xcdatamodel")
    #expect(document.entityMappings.map(\.effectiveName) == ["NoteToNote", "Gone"])
    let note = document.entityMappings[0]
    #expect(note.policy == nil)
    #expect(
      note.selection
        == .filter(try PredicateExpression(parsing: "id < 10 && x > 1")))
    #expect(note.attributes == [.init("a", .automatic), .init("b", .automatic)])
    #expect(
      note.relationships == [
        .init(
          "note",
          .expression(.destinationInstances(ofMapping: "NoteToNote", from: .variable("source")))),
        .init("other", .along(try ValueExpression(parsing: "$source.a.b"))),
      ])
  }

  @Test(arguments: [
    ("", "it holds 0 mapping models"),
    (
      "<object type=\"XDDEVMAPPINGMODEL\" id=\"z1\"/><object type=\"XDDEVMAPPINGMODEL\" id=\"z2\"/>",
      "it holds 2 mapping models"
    ),
    ("<open>", "not well formed"),
    // As a bad merge leaves it.
    (mapping("z2 z9") + row("z2"), "refers to \"z9\""),
    (mapping("z2 z1") + row("z2"), "refers to \"z1\""),
    (mapping("z2") + row("z2") + row("z2"), "two of its objects have the id \"z2\""),
    (mapping("z2 z2") + row("z2"), "have the object \"z2\""),
    (
      mapping("z2") + """
        <object type="XDDEVENTITYMAPPING" id="z2"><relationship name="attributemappings"
          destination="XDDEVATTRIBUTEMAPPING" idrefs="z3"></relationship></object>
        <object type="XDDEVATTRIBUTEMAPPING" id="z3">
          <attribute name="name" type="string"></attribute></object>
        """, "a property mapping names no property"
    ),
  ])
  func `that is none is refused with a reason`(objects: String, reason: String) {
    let error = #expect(throws: MappingError.self) { try read(objects) }
    #expect(error?.description.contains(reason) == true, "\(String(describing: error))")
  }

  @Test func `says where a filter cannot be read`() throws {
    let error = #expect(throws: MappingError.self) {
      try read(
        model + """
          <object type="XDDEVENTITYMAPPING" id="z2">
            <attribute name="sourcename" type="string">Note</attribute>
            <attribute name="sourcefilterpredicatestring" type="string">id ==</attribute>
          </object>
          <object type="XDDEVENTITYMAPPING" id="z3"></object>
          """)
    }
    #expect(error?.description.hasPrefix("In the entity mapping Note, the filter: ") == true)
  }
}
