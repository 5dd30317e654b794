import GodwitExpressions
import GodwitMapping
import GodwitObjectModel

enum MappingTargets {
  /// - Parameter start: Bytes that tell the form; without them they are put before the input, so
  ///   that no time is lost in another reader.
  static func document(_ bytes: [UInt8], startingWith start: String?) throws {
    let start = Array((start ?? "").utf8)
    let document = try MappingDocument(
      bytes: bytes.starts(with: start) ? bytes : start + bytes, name: "input")
    let mapping = MappingModel(document, source: model, destination: model)
    _ = MappingCheck(mapping, source: model, destination: model)
    if let text = try? document.text() {
      let again = certain("a written mapping model reads") {
        try MappingDocument(bytes: Array(text.utf8), name: "again").text()
      }
      hold("a mapping model stays as it is when it is written", again == text)
    }
  }

  static func expression(_ bytes: [UInt8]) throws {
    let text = String(decoding: bytes, as: UTF8.self)
    if let predicate = try? PredicateExpression(parsing: text) {
      let written = predicate.description
      let again = certain("a written predicate reads") {
        try PredicateExpression(parsing: written).description
      }
      hold("a predicate stays as it is when it is written", again == written)
    }
    let expression = try ValueExpression(parsing: text)
    let written = expression.description
    let again = certain("a written expression reads") {
      try ValueExpression(parsing: written).description
    }
    hold("an expression stays as it is when it is written", again == written)
  }

  /// A model for mapping models to be about.
  private static let model = certain("the model reads") {
    try EntityHierarchy(ManagedObjectModel(xml: Array(text.utf8), path: "contents"))
  }

  private static let text = """
    <model documentVersion="1.0">
      <entity name="Item">
        <attribute name="name" optional="YES" attributeType="String"/>
        <attribute name="total" attributeType="Integer 32" defaultValueString="1"/>
        <relationship name="parts" optional="YES" toMany="YES" destinationEntity="Part" \
    inverseName="item" inverseEntity="Part"/>
      </entity>
      <entity name="Part">
        <relationship name="item" optional="YES" maxCount="1" destinationEntity="Item" \
    inverseName="parts" inverseEntity="Item"/>
      </entity>
    </model>
    """
}
