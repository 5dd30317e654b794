import GodwitCheckpoints
import GodwitExpressions
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// The first stage of an entity mapping: destination rows with their attributes, of one shard of
/// the source entity's objects.
///
/// Validation is off, as in Core Data's own first stage. Rows that keep their key have it in the
/// checkpoint; others count from 1, and an entry of ``UnitKeys/associations`` before each says
/// which source object it is. Source: `core-data-migration.md` §5.1.
struct MappedCopyStage {
  let context: ShardContext

  func run(_ unit: Int) throws -> ShardSummary {
    let shard = try context.shard(unit)
    guard case .mapping(let index) = shard.subject else {
      throw StageError.outOfOrder("a copy of unit \(unit), which is not an entity mapping")
    }
    let mapping = try context.mapped.mapping(index)
    if mapping.policy != nil { return try PolicyCopyStage(context: context).run(index, unit) }
    let table = try context.mapped.table(of: mapping)
    let writer = try context.writer(.copy, unit)
    var summary = ShardSummary()
    try copyRows(of: mapping, index, to: table, shard.keys, writer, &summary)
    try writer.finish(summary)
    return summary
  }

  private func copyRows(
    of mapping: EntityMappingPlan, _ index: Int, to table: TablePlan, _ keys: ClosedRange<Int64>,
    _ writer: CheckpointWriter, _ summary: inout ShardSummary
  ) throws {
    let code = AttributeProgramCode(mapping.attributes)
    let external = ExternalData(folder: context.plan.externalDataPath)
    let newFiles = NewExternalFiles(
      folder: context.run.external, fingerprint: context.fingerprint, mapping: index)
    let related = RelatedAttributes(
      of: mapping.source, behind: mapping.copyColumns.count, context.mapped)
    let statement = try context.mapped.rows(
      of: mapping, mapping.copyColumns + related.keyColumns, keys)
    let columns = Int32(statement.columnCount)
    let expressions = try RowExpressions(context.mapped, mapping, related)
    expressions.newFiles = newFiles
    let row = RowValues(count: Int(columns) + related.count)
    let output = RowValues(count: 2 + table.attributePlaces.count)
    var record = RawBuffer(capacity: 64 << 10)
    var scratch = RawBuffer(capacity: 16)
    var values = RawBuffer(capacity: 4 << 10)
    var failures = RowFailures()
    while try statement.step() {
      statement.read(into: row.values, from: 0, count: columns)
      let key = row.values[0].bits
      let attributes = row.values + 1
      expressions.begin(key, attributes)
      guard try expressions.accepts(attributes) else { continue }
      mapping.sourceRules.check(attributes, key: key, into: &failures)
      output.values[0] = .integer(mapping.destinationNumber)
      // Objects of a new store: they have been saved once. Source: §5.4.
      output.values[1] = .integer(1)
      CopyStage.run(code.operations, from: attributes, to: output.values + 2)
      if code.needsScratch {
        scratch.removeAll()
        try external.settle(
          code.operations, from: attributes, to: output.values + 2, scratch: &scratch,
          newFiles: newFiles,
          entity: mapping.source?.rawValue ?? "", primaryKey: key)
      }
      if !expressions.isEmpty {
        try expressions.fill(output.values + 2, from: attributes, &values)
      }
      summary.rows += 1
      summary.highestKey = key
      if mapping.assignsKeys {
        var ordinal = summary.rows.littleEndian
        try withUnsafeBytes(of: &ordinal) {
          try writer.append(channel: UnitKeys.associations, key: key, $0)
        }
      }
      record.removeAll()
      RecordFormat.encode(output.values, count: output.count, into: &record)
      try writer.append(
        channel: 0, key: mapping.assignsKeys ? summary.rows : key, record.bytes)
      summary.bytes += Int64(record.count)
    }
    // A missing value is the destination's rules' affair: the mapping may have given one.
    summary.findings = failures.findings(mapping.sourceRules).filter { $0.kind != .required }
  }
}

/// The filter and the attribute expressions of one entity mapping, for one row after another.
final class RowExpressions {
  private struct Attribute {
    var plan: AttributeExpression
    var expression: ValueExpression
    var compiled: CompiledExpression?
    /// The relationships that it follows, by their number in ``RelatedAttributes``.
    var followed: [Int] = []
    var scope: EvaluationScope
    var description: AttributeDescription
  }

  private let mapping: EntityMappingPlan
  let objects: SourceObjects
  private let evaluator: Evaluator
  private let filter: PredicateExpression?
  private let compiledFilter: CompiledExpression?
  @exclusivity(unchecked) private var attributes: [Attribute] = []
  private var object: ObjectReference
  private var extents: [DestinationRow.Extent] = []
  /// Found with the first row: the expression may ask the policy, which is not there before.
  private var selection: SourceSelectionKeys?
  private let runDate: Double
  /// Where large external values go; without it all are inline.
  var newFiles: NewExternalFiles?
  /// `$destination`, where expressions speak of it.
  private let destinationRow: DestinationRow?
  private let related: RelatedAttributes?

  /// - Parameter related: What finds attributes of related objects; without it, the evaluator does.
  init(
    _ context: MappedContext, _ mapping: EntityMappingPlan, _ related: RelatedAttributes? = nil
  ) throws {
    self.mapping = mapping
    self.related = related
    let objects = SourceObjects(context, mapping, stage: .copy)
    self.objects = objects
    evaluator = Evaluator(access: objects, runDate: context.runDate)
    object = ObjectReference(mapping.source ?? "", 0, in: .source)
    let filter = try mapping.filter.map { try PredicateExpression(parsing: $0) }
    self.filter = filter
    runDate = context.runDate
    let destinationRow = mapping.destinationAccess.map {
      DestinationRow($0, mapping, context, stage: .copy)
    }
    self.destinationRow = destinationRow
    objects.destinationRow = destinationRow
    // Storage markers are none of a value's bytes: such attributes go the general way.
    var columns: [String: CompiledExpression.Column] = [:]
    for (place, attribute) in mapping.copyAttributes.enumerated() where !attribute.isExternal {
      columns[attribute.name] = CompiledExpression.Column(place: place, type: attribute.type)
    }
    let column = { [columns] (name: String) in columns[name] }
    compiledFilter = filter.flatMap { CompiledExpression(filter: $0, column: column) }
    for plan in mapping.expressions {
      let expression = try ValueExpression(parsing: plan.expression)
      related?.used = []
      let compiled =
        plan.isExternal || plan.isDerived
        ? nil
        : CompiledExpression(expression, for: plan.type, column: column) {
          related?.column($0, $1)
        }
      attributes.append(
        Attribute(
          plan: plan, expression: expression, compiled: compiled,
          followed: related?.used.sorted() ?? [], scope: scope(of: plan),
          description: AttributeDescription(
            traits: PropertyTraits(name: plan.property), type: plan.type)))
    }
  }

  var isEmpty: Bool { attributes.isEmpty }

  private func scope(of plan: AttributeExpression) -> EvaluationScope {
    var scope = EvaluationScope(
      destination: destinationRow?.object, entityMapping: mapping.name, property: plan.property)
    if plan.isDerived { scope.evaluatedObject = destinationRow.map { .object($0.object) } }
    scope.entityMappingUserInfo = mapping.userInfo
    return scope
  }

  /// Turns to the next row.
  func begin(_ key: Int64, _ values: UnsafePointer<RawValue>) {
    object.primaryKey = key
    objects.settle(on: object, values)
  }

  /// True when the mapping takes the object.
  func accepts(_ values: UnsafePointer<RawValue>) throws -> Bool {
    if let text = mapping.selection {
      let keys =
        try selection ?? SourceSelectionKeys(text, mapping, objects, runDate: runDate)
      selection = keys
      return keys.contains(object.primaryKey)
    }
    guard let filter else { return true }
    if let compiledFilter {
      do {
        return try compiledFilter.holds(values)
      } catch {
        let scope = EvaluationScope.filter(of: object, entityMapping: mapping.name)
        throw scope.error(error, in: mapping.filter ?? "")
      }
    }
    var scope = EvaluationScope.filter(of: object, entityMapping: mapping.name)
    scope.entityMappingUserInfo = mapping.userInfo
    return try evaluator.holds(filter, in: scope)
  }

  /// Binary data with its storage marker. What Core Data would not keep inline becomes a file.
  private func append(external data: [UInt8], of place: Int, to bytes: inout RawBuffer) throws {
    guard data.count > NewExternalFiles.mostInlineBytes, let newFiles else {
      bytes.append(1 as UInt8)
      bytes.append(data)
      return
    }
    let name = try data.withUnsafeBytes {
      try newFiles.write(
        $0, entity: object.entity.rawValue, primaryKey: object.primaryKey, place: place)
    }
    bytes.append([2] + Array(name.utf8) + [0])
  }

  /// Gives every attribute with an expression its value. Texts and data lie in `bytes` until the
  /// next row.
  ///
  /// - Parameter values: The row at hand, with room for what ``RelatedAttributes`` put behind it.
  func fill(
    _ output: UnsafeMutablePointer<RawValue>, from values: UnsafeMutablePointer<RawValue>,
    _ bytes: inout RawBuffer
  ) throws {
    bytes.removeAll()
    // Pointers are made afterwards: the buffer may move while it grows.
    extents.removeAll(keepingCapacity: true)
    for index in attributes.indices {
      let place = attributes[index].plan.place
      if let compiled = attributes[index].compiled,
        try attributes[index].followed.isEmpty
          || related?.read(attributes[index].followed, of: object.primaryKey, into: values) == true
      {
        do {
          output[place] = try compiled.evaluate(values)
        } catch {
          attributes[index].scope.source = object
          throw attributes[index].scope.error(error, in: attributes[index].plan.expression)
        }
        continue
      }
      attributes[index].scope.source = object
      destinationRow?.settle(
        on: output, extents, behind: UnsafeRawPointer(bytes.base),
        before: attributes[index].plan.order)
      let value = try evaluator.attributeValue(
        of: attributes[index].expression, for: attributes[index].description,
        in: attributes[index].scope)
      let start = bytes.count
      switch value.stored() {
      case .null: output[place] = .null
      case .integer(let number): output[place] = .integer(number)
      case .real(let number): output[place] = .real(number)
      case .text(var text):
        text.withUTF8 { bytes.append(UnsafeRawBufferPointer($0)) }
        extents.append(
          DestinationRow.Extent(
            place: place, offset: start, count: bytes.count - start, isText: true))
      case .blob(let data):
        if attributes[index].plan.isExternal {
          try append(external: data, of: place, to: &bytes)
        } else {
          bytes.append(data)
        }
        extents.append(
          DestinationRow.Extent(
            place: place, offset: start, count: bytes.count - start, isText: false))
      case nil:
        throw attributes[index].scope.error(
          .unacceptable(
            found: "a value of another kind", type: attributes[index].plan.type),
          in: attributes[index].plan.expression)
      }
    }
    for extent in extents {
      let start = UnsafeRawPointer(bytes.base + extent.offset)
      output[extent.place] =
        extent.isText ? .text(start, count: extent.count) : .blob(start, count: extent.count)
    }
  }
}
