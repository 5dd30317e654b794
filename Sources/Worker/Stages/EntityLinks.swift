import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// The to-one relationships of one entity: what may be their targets, and what becomes of them.
final class EntityLinks {
  private struct Reference {
    var check: ReferenceCheck
    var table: Int
    /// Destination `Z_ENT` by source `Z_ENT`; −1 for entities that may not be targets, 0 for
    /// targets without successor.
    var numbers: [Int64]
    var key: RawValue = .null
    var target: Int64 = 0
    /// The key is kept: it has a surviving target, or pointed to nothing before.
    var keeps = false
  }

  let isMapped: Bool
  private let entity: String
  private let programs: [RelationshipProgram]
  private var references: [Reference]

  init(_ program: EntityProgram, finder: TargetFinder) throws {
    entity = program.source.rawValue
    isMapped = program.destination != nil
    programs = program.relationships
    references = try program.references.map { check in
      let size = Int(max(0, min(check.allowed.max() ?? 0, 100_000))) + 1
      var numbers = [Int64](repeating: -1, count: size)
      for number in check.allowed where numbers.indices.contains(Int(number)) {
        numbers[Int(number)] = check.surviving[Int(number)] ?? 0
      }
      return Reference(
        check: check, table: try finder.table(check.targetTable), numbers: numbers)
    }
  }

  /// Looks every target of the row up, and says what is wrong with it.
  func look(
    at row: UnsafeMutablePointer<RawValue>, primaryKey: Int64, finder: TargetFinder,
    into tally: inout FindingTally
  ) throws {
    for index in references.indices {
      let check = references[index].check
      let key = row[check.key]
      references[index].key = key
      references[index].target = 0
      references[index].keeps = false
      let entityValue = check.entityColumn.map { row[$0] }
      switch key.kind {
      case .null:
        if let entityValue, entityValue.kind != .null {
          report(.entityColumn, "the entity column is set without a target", check, primaryKey, &tally)
        }
      case .integer:
        if let order = check.orderColumn, row[order].kind == .null {
          report(.order, "a member of an ordered list has no place", check, primaryKey, &tally)
        }
        guard let found = try finder.entity(of: key.bits, inTable: references[index].table) else {
          report(.dangling, "the target does not exist", check, primaryKey, &tally)
          references[index].keeps = true
          continue
        }
        if let entityValue, entityValue.kind != .integer || entityValue.bits != found {
          report(
            .entityColumn, "the entity column disagrees with the target", check, primaryKey, &tally)
        }
        let numbers = references[index].numbers
        let number = found >= 0 && found < numbers.count ? numbers[Int(found)] : -1
        if number < 0 {
          report(.targetEntity, "the target is of another entity", check, primaryKey, &tally)
        }
        references[index].target = max(number, 0)
        references[index].keeps = number > 0
      case .real, .text, .blob:
        report(.type, "the key is no integer", check, primaryKey, &tally)
      }
    }
  }

  /// Gives every relationship column of the row its value.
  func fill(
    _ output: UnsafeMutablePointer<RawValue>, from row: UnsafeMutablePointer<RawValue>,
    primaryKey: Int64, queries: [PairCursor], ranks: RankCounter, program: Int
  ) throws {
    for place in programs.indices {
      switch programs[place] {
      case .null:
        output[place] = .null
      case .key(let number):
        let reference = references[number]
        output[place] = reference.keeps ? reference.key : .null
      case .targetEntity(let number):
        let reference = references[number]
        output[place] =
          reference.keeps && reference.target > 0 ? .integer(reference.target) : .null
      case .order(let column, let number):
        let isLost = number.map { !references[$0].keeps && references[$0].key.kind != .null } ?? false
        output[place] = isLost ? .null : row[column]
      case .rank(let number, _):
        let reference = references[number]
        output[place] =
          reference.keeps
          ? .integer(
            OrderPlace.value(
              at: try ranks.next(program, place, owner: reference.key.bits, before: primaryKey)))
          : .null
      case .pairedKey(let query):
        output[place] = queries[query].key(for: primaryKey)
      case .pairedEntity(let query):
        output[place] = queries[query].entity(for: primaryKey)
      case .pairedOrder(let query):
        output[place] = try queries[query].order(for: primaryKey)
      }
    }
  }

  private func report(
    _ kind: StoreFinding.Kind, _ message: String, _ check: ReferenceCheck, _ primaryKey: Int64,
    _ tally: inout FindingTally
  ) {
    tally.add(
      kind, entity: entity, property: check.relationship, message: message,
      primaryKey: primaryKey)
  }
}

/// Finds out what entity the row with a given key is, by the source's own b-tree.
///
/// Memory is flat, whatever the number of rows: a small cache in front, since neighbours often
/// point to the same target.
final class TargetFinder {
  private struct Table {
    var name: String
    var statement: Statement
    var keys: [Int64]
    var entities: [Int64]
  }

  /// 4 096 places of 16 bytes: fits the processor's cache beside the rows.
  private static let cacheMask: UInt64 = 4095
  private static let empty = Int64.min

  private let connection: Connection
  private var tables: [Table] = []

  init(_ connection: Connection) { self.connection = connection }

  func table(_ name: String) throws -> Int {
    if let known = tables.firstIndex(where: { $0.name == name }) { return known }
    let statement = try connection.prepare(
      "SELECT Z_ENT FROM \(quoted(name)) WHERE Z_PK = ?1")
    let size = Int(Self.cacheMask) + 1
    tables.append(
      Table(
        name: name, statement: statement, keys: Array(repeating: Self.empty, count: size),
        entities: Array(repeating: 0, count: size)))
    return tables.count - 1
  }

  /// `Z_ENT` of a row; −1 where it is no integer; nil where there is no such row.
  func entity(of key: Int64, inTable number: Int) throws -> Int64? {
    let place = Int((UInt64(bitPattern: key) &* 0x9E37_79B9_7F4A_7C15) >> 52 & Self.cacheMask)
    if tables[number].keys[place] == key, key != Self.empty { return tables[number].entities[place] }
    let statement = tables[number].statement
    try statement.bind(1, key)
    defer { statement.reset() }
    guard try statement.step() else { return nil }
    var value = RawValue.null
    statement.read(into: &value, from: 0, count: 1)
    let entity = value.kind == .integer ? value.bits : -1
    tables[number].keys[place] = key
    tables[number].entities[place] = entity
    return entity
  }
}
