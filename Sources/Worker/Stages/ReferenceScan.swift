import GodwitPersistentStore
import GodwitSQLite

/// One ``ReferenceRule``, compiled for the rows of its table.
struct ReferenceScan {
  private(set) var isClean = true
  private let place: Int
  private let target: Int
  /// Of the target, where there is one by now; else the finder is asked.
  private let map: TargetFinder.Map?
  private let isOptional: Bool
  private let entities: ProgramTable?
  private let allowed: ProgramTable
  /// −1 where the reference has no such column.
  private let entityPlace: Int
  private let orderPlace: Int

  /// Nil where the rule cannot be judged by these columns.
  init?(
    _ rule: ReferenceRule, _ columns: [String], _ target: Int, _ map: TargetFinder.Map?
  ) {
    let places = [rule.column, rule.entityColumn, rule.orderColumn].map { name in
      name.map { columns.firstIndex(of: $0) } ?? -1
    }
    guard let place = places[0], let entityPlace = places[1], let orderPlace = places[2],
      (rule.allowed + (rule.entities ?? [])).allSatisfy(ProgramTable.numbers.contains)
    else { return nil }
    self.place = place
    self.entityPlace = entityPlace
    self.orderPlace = orderPlace
    isOptional = rule.isOptional
    entities = rule.entities.map { ProgramTable(numbers: $0, elsewhere: []) }
    allowed = ProgramTable(numbers: rule.allowed, elsewhere: [])
    self.target = target
    self.map = map
  }

  /// - Parameter row: `Z_ENT` is its second column where the rule names entities.
  @inline(__always)
  mutating func check(_ row: UnsafeMutablePointer<RawValue>, _ targets: TargetFinder) throws {
    guard isClean else { return }
    if let entities, entities.program(for: row[1]) < 0 { return }
    isClean = try holds(row, targets)
  }

  @inline(__always)
  private func holds(_ row: UnsafeMutablePointer<RawValue>, _ targets: TargetFinder) throws -> Bool
  {
    let key = row[place]
    guard key.kind == .integer else {
      return key.kind == .null && isOptional && (entityPlace < 0 || row[entityPlace].kind == .null)
    }
    let found =
      if let map { map.entity(of: key.bits) } else {
        try targets.entity(of: key.bits, inTable: target)
      }
    guard let entity = found, allowed.program(for: .integer(entity)) >= 0 else { return false }
    if entityPlace >= 0 {
      guard row[entityPlace].kind == .integer, row[entityPlace].bits == entity else { return false }
    }
    return orderPlace < 0 || row[orderPlace].kind == .integer
  }
}

extension ReferenceScan {
  /// True where every reference of a rule leads somewhere it may, which SQL takes ten times as long to
  /// say. False where SQL has to say what is wrong, if anything is.
  static func isSound(
    _ rule: ReferenceRule, _ targets: TargetFinder, in file: Connection
  ) throws -> Bool {
    let columns =
      [rule.column, "Z_ENT"] + [rule.entityColumn, rule.orderColumn].compactMap(\.self)
    let read = rule.entities == nil ? [rule.column] : columns
    let target = try targets.table(rule.target)
    if let keys = try file.extent(of: rule.table, key: "rowid") {
      let (width, overflow) = keys.upperBound.subtractingReportingOverflow(keys.lowerBound)
      try targets.expect(overflow ? .max : width, inTable: target)
    }
    guard var scan = ReferenceScan(rule, read, target, targets.map(ofTable: target)) else {
      return false
    }
    try file.forEachRow(of: rule.table, read) { try scan.check($0, targets) }
    return scan.isClean
  }
}
