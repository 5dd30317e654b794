import FoundationEssentials
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// `$destination`: the new object at hand, as the expressions of its own mapping see it.
///
/// In the copy stage an attribute has its value once its attribute mapping was evaluated, and the
/// model's default before. In the link stage all of them have. Relationships of other objects may
/// still change: they cannot be read.
final class DestinationRow {
  /// A text or some data that lies behind ``Values/base``, not yet in its place.
  struct Extent {
    var place: Int
    var offset: Int
    var count: Int
    var isText: Bool
  }

  /// Where the values are at the moment.
  private struct Values {
    /// One for each of the table's attribute places.
    var row: UnsafePointer<RawValue>
    var extents: [Extent]
    var base: UnsafeRawPointer
    /// Attribute mappings from this one on have not been evaluated.
    var order: Int
  }

  private let access: DestinationAccess
  private let names: [String: Int]
  private let composites: CompositeIndex
  private let defaults: AttributeProgramCode
  private let external: ExternalData
  private let newFiles: FilePath
  private let stage: SourceObjects.Pass
  private var values: Values?
  /// The object. Its key is 0 as long as it has none.
  private(set) var object: ObjectReference

  init(
    _ access: DestinationAccess, _ mapping: EntityMappingPlan, _ context: MappedContext,
    stage: SourceObjects.Pass
  ) {
    self.access = access
    self.stage = stage
    names = Dictionary(
      access.attributes.enumerated().map { ($1.name, $0) }, uniquingKeysWith: { a, _ in a })
    composites = CompositeIndex(access.attributes.map(\.name))
    defaults = AttributeProgramCode(
      access.attributes.map { $0.initial.map(AttributeProgram.constant) ?? .null })
    external = ExternalData(folder: context.plan.externalDataPath)
    newFiles = context.run.external
    object = ObjectReference(mapping.destination ?? "", 0, in: .destination)
  }

  /// Turns to an object whose attributes are complete. They are read until the next call.
  func settle(on row: UnsafePointer<RawValue>, key: Int64) {
    object.primaryKey = key
    values = Values(row: row, extents: [], base: UnsafeRawPointer(row), order: .max)
  }

  /// Turns to a new object, or to its next attribute.
  ///
  /// - Parameters:
  ///   - extents: Values that lie behind `base` and whose places in the row are still empty.
  ///   - order: The number of the attribute mapping that is being evaluated.
  func settle(
    on row: UnsafePointer<RawValue>, _ extents: [Extent], behind base: UnsafeRawPointer,
    before order: Int
  ) {
    values = Values(row: row, extents: extents, base: base, order: order)
  }

  func value(forKey key: String) throws -> ExpressionValue? {
    if let isToMany = access.relationships[key] {
      guard stage == .copy else {
        throw EvaluationProblem.access(
          "relationships of destination objects cannot be read while they are being set. "
            + "Use the source's")
      }
      return isToMany ? .set([]) : .null
    }
    guard let values else { return nil }
    guard let number = names[key] else {
      return try composites.value(of: key) { try self.attribute($0, values) }
    }
    return try attribute(number, values)
  }

  func isComposite(_ key: String) -> Bool { composites.contains(key) }

  private func attribute(_ number: Int, _ values: Values) throws -> ExpressionValue {
    let attribute = access.attributes[number]
    guard let place = attribute.place, let order = attribute.order, order < values.order else {
      return try ExpressionValue(stored: defaults.operations[number].value, as: attribute.type)
    }
    var raw = values.row[place]
    if let extent = values.extents.last(where: { $0.place == place }) {
      let start = values.base + extent.offset
      raw =
        extent.isText
        ? .text(start, count: extent.count) : .blob(start, count: extent.count)
    }
    return try value(raw, attribute)
  }

  private func value(_ raw: RawValue, _ attribute: DestinationAccess.Attribute) throws
    -> ExpressionValue
  {
    guard attribute.isExternal, raw.kind == .blob, let marker = RowRules.marker(of: raw.buffer)
    else { return try ExpressionValue(stored: raw, as: attribute.type) }
    guard marker == .file else { return .data(Array(raw.buffer.dropFirst())) }
    // The file is the source's, or a new one that the commit is going to add.
    if let name = ExternalData.fileName(raw.buffer) {
      let bytes = try RegularFile.bytesIfPresent(
        of: newFiles.appending(name), limit: ExternalData.mostBytes)
      if let bytes { return .data(bytes) }
    }
    return .data(
      try external.file(
        named: raw, entity: object.entity.rawValue, primaryKey: object.primaryKey))
  }
}

/// Reads the copied attributes of one shard's objects again, beside its rows in the link stage.
final class CopiedAttributes {
  private let reader: CheckpointReader
  private let values: RowValues
  private let table: TablePlan
  private let unit: Int

  init(_ reader: CheckpointReader, _ table: TablePlan, unit: Int) {
    self.reader = reader
    self.table = table
    self.unit = unit
    values = RowValues(count: 2 + table.attributePlaces.count)
  }

  /// The attributes of the row with a key; keys must come ascending. Valid until the next call.
  func row(_ key: Int64) throws -> UnsafePointer<RawValue> {
    while let entry = try reader.next() {
      guard entry.channel == 0, entry.key >= key else { continue }
      guard entry.key == key,
        RecordFormat.decode(record: entry.payload, into: values.values, count: values.count)
      else { break }
      return UnsafePointer(values.values + 2)
    }
    throw StageError.checkpointMismatch(
      table: table.name, unit: unit, what: "row \(key) was not copied")
  }
}
