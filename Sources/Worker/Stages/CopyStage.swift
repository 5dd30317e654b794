import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// The first stage: destination rows with their attributes, from rows of the source.
///
/// Validation is off, as in Core Data's own copy; only the source's own soundness is looked at,
/// since the row is at hand. Rows keep `Z_PK` and `Z_OPT`.
final class CopyStage {
  private let table: TablePlan
  // One for each program. Arrays cost a reference count and a check each time, and this is done for
  // each row.
  private let codes: UnsafeMutableBufferPointer<AttributeProgramCode>
  private let rules: UnsafeMutableBufferPointer<RowRules>
  private let failures: UnsafeMutableBufferPointer<RowFailures>
  private let numbers: UnsafeMutableBufferPointer<Int64>
  private let external: ExternalData
  private let newFiles: NewExternalFiles
  private var scratch = RawBuffer(capacity: 16)
  private var tally = FindingTally()
  private var rowCount: Int64 = 0

  init(_ table: TablePlan, _ context: ShardContext) {
    self.table = table
    // What is computed by SQL lies behind all columns.
    let columnCount = table.copyColumns.count + table.linkColumns.count
    func buffer<Item>(_ item: (EntityProgram) -> Item) -> UnsafeMutableBufferPointer<Item> {
      let buffer = UnsafeMutableBufferPointer<Item>.allocate(capacity: table.entities.count)
      for (place, entity) in table.entities.enumerated() {
        buffer.initializeElement(at: place, to: item(entity))
      }
      return buffer
    }
    codes = buffer { AttributeProgramCode($0.attributes, columnCount: columnCount) }
    rules = buffer(\.sourceRules)
    failures = buffer { _ in RowFailures() }
    numbers = buffer(\.destinationNumber)
    external = ExternalData(folder: context.plan.externalDataPath)
    newFiles = NewExternalFiles(folder: context.run.external, fingerprint: context.fingerprint)
  }

  deinit {
    codes.deinitialize()
    codes.deallocate()
    rules.deinitialize()
    rules.deallocate()
    failures.deinitialize()
    failures.deallocate()
    numbers.deallocate()
  }

  /// True when some value cannot be taken over as it is found: such rows go one at a time.
  var needsScratch: Bool { table.way == .computed && codes.contains(where: \.needsScratch) }

  func run(_ rows: SourceRows, _ piece: borrowing RowPiece) throws {
    for number in 0..<rows.count {
      let row = rows.row(number)
      let index = Int(piece.programs[number])
      guard index >= 0 else {
        if index == ProgramTable.unknown {
          tally.add(
            .rows, entity: table.root.rawValue,
            message: "Z_ENT is not a concrete entity of \(table.sourceTable ?? table.name)",
            primaryKey: row[0].bits)
        }
        continue
      }
      let attributes = row + 3
      rules[index].check(attributes, key: row[0].bits, into: &failures[index])
      let entity = numbers[index]
      guard entity != 0 else { continue }
      let output = piece.attributes + number &* piece.attributeCount
      output[0] = .integer(entity)
      output[1] = row[2]
      let code = codes[index]
      Self.run(code.operations, from: attributes, to: output + 2)
      if code.needsScratch {
        scratch.removeAll()
        try external.settle(
          code.operations, from: attributes, to: output + 2, scratch: &scratch,
          newFiles: newFiles, entity: table.entities[index].source.rawValue,
          primaryKey: row[0].bits)
      }
      rowCount &+= 1
    }
  }

  /// What the stage did.
  var share: StageShare {
    var findings = tally.sorted
    for (rules, failures) in zip(rules, failures) { findings.merge(failures.findings(rules)) }
    return StageShare(rows: rowCount, findings: findings)
  }

  /// The row loop's heart: nothing here allocates or branches on more than an operation's code.
  @inline(__always)
  static func run(
    _ operations: UnsafeMutableBufferPointer<AttributeOperation>,
    from source: UnsafeMutablePointer<RawValue>, to output: UnsafeMutablePointer<RawValue>
  ) {
    for place in 0..<operations.count {
      let operation = operations[place]
      switch operation.code {
      case .constant:
        output[place] = operation.value
      case .source:
        output[place] = source[Int(operation.source)]
      case .sourceOr:
        let value = source[Int(operation.source)]
        output[place] = value.kind == .null ? operation.value : value
      case .converted:
        let value = source[Int(operation.source)]
        output[place] =
          value.kind == .null
          ? operation.value : NumericConversion.convert(value, to: operation.type)
      case .markedInline, .unmarked, .refiled:
        output[place] = .null  // settled afterwards, since it needs memory or a file
      }
    }
  }
}
