import FoundationEssentials
import GodwitExpressions

/// The values of an object's transient attributes, by their number in the entity, as bytes: no store
/// holds them, but the objects of Core Data's destination context keep them from stage to stage.
///
/// JSON, since few policies set any. Empty where there are none. No attribute takes an object, so that
/// nothing in them changes when keys are given out.
enum TransientValues {
  static func bytes(_ values: [Int: ExpressionValue]) throws -> [UInt8] {
    if values.isEmpty { return [] }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    return [UInt8](try encoder.encode(values))
  }

  /// Reads what ``bytes(_:)`` has made.
  static func values(_ bytes: UnsafeRawBufferPointer) throws -> [Int: ExpressionValue] {
    if bytes.isEmpty { return [:] }
    return try JSONDecoder().decode([Int: ExpressionValue].self, from: Data(bytes))
  }
}
