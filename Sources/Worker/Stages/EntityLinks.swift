import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// The to-one relationships of one entity: what may be their targets, and what becomes of them.
final class EntityLinks {
  /// What the row loop needs of a relationship, without ownership.
  private struct Reference: BitwiseCopyable {
    var keyPlace: Int
    /// −1 where there is none.
    var entityPlace: Int
    var orderPlace: Int
    var table: Int
    /// Destination `Z_ENT` by source `Z_ENT`, 0 without a successor in the targets' table. For entities that
    /// may not be targets its complement, which is below 0.
    var numbers: UnsafeMutableBufferPointer<Int64>
    var key: RawValue = .null
    var target: Int64 = 0
    /// The key is kept: it has a surviving target, be it of a wrong entity, or pointed to nothing before, or is
    /// no key at all: damage that is accepted is carried as found.
    var keeps = false
  }

  let isMapped: Bool
  private let entity: String
  private let programs: [RelationshipProgram]
  private let names: [String]
  private let references: UnsafeMutableBufferPointer<Reference>

  /// - Parameter lookups: How many are likely to come for each relationship, of all shards.
  init(_ program: EntityProgram, finder: TargetFinder, lookups: Int64) throws {
    entity = program.source.rawValue
    isMapped = program.destination != nil
    programs = program.relationships
    names = program.references.map(\.relationship)
    let checks = program.references
    let tables = try checks.map { try finder.table($0.targetTable) }
    // A few are done before the table's extent is known.
    if lookups >= 64 { for table in tables { try finder.expect(lookups, inTable: table) } }
    references = .allocate(capacity: checks.count)
    for (index, check) in checks.enumerated() {
      let highest = max(check.allowed.max() ?? 0, check.surviving.keys.max().map { Int64($0) } ?? 0)
      let size = Int(max(0, min(highest, 100_000))) + 1
      let numbers = UnsafeMutableBufferPointer<Int64>.allocate(capacity: size)
      numbers.initialize(repeating: ~0)
      for (number, next) in check.surviving where numbers.indices.contains(number) {
        numbers[number] = ~next
      }
      for number in check.allowed where numbers.indices.contains(Int(number)) {
        numbers[Int(number)] = check.surviving[Int(number)] ?? 0
      }
      references.initializeElement(
        at: index,
        to: Reference(
          keyPlace: check.key, entityPlace: check.entityColumn ?? -1,
          orderPlace: check.orderColumn ?? -1, table: tables[index], numbers: numbers))
    }
  }

  deinit {
    for reference in references { reference.numbers.deallocate() }
    references.deallocate()
  }

  /// Looks every target of the row up, and says what is wrong with it.
  func look(
    at row: UnsafeMutablePointer<RawValue>, primaryKey: Int64, finder: TargetFinder,
    into tally: inout FindingTally
  ) throws {
    for index in 0..<references.count {
      var reference = references[index]
      let key = row[reference.keyPlace]
      let place = reference.entityPlace < 0 ? RawValue.null : row[reference.entityPlace]
      reference.key = key
      reference.target = 0
      reference.keeps = false
      switch key.kind {
      case .null:
        if place.kind != .null {
          report(
            .entityColumn, "the entity column is set without a target", index, primaryKey, &tally)
        }
      case .integer:
        if reference.orderPlace >= 0, row[reference.orderPlace].kind != .integer {
          if row[reference.orderPlace].kind == .null {
            report(.order, "a member of an ordered list has no place", index, primaryKey, &tally)
          } else {
            report(
              .type, "the place of a member of an ordered list is not an integer", index,
              primaryKey, &tally)
          }
        }
        if let found = try finder.entity(of: key.bits, inTable: reference.table) {
          if reference.entityPlace >= 0, place.kind != .integer || place.bits != found {
            report(
              .entityColumn, "the entity column disagrees with the target", index, primaryKey,
              &tally)
          }
          let isKnown = found >= 0 && found < Int64(reference.numbers.count)
          let number = isKnown ? reference.numbers[Int(found)] : ~0
          if number < 0 {
            report(
              .targetEntity, "the target is of another entity", index, primaryKey, &tally)
          }
          reference.target = number < 0 ? ~number : number
          reference.keeps = reference.target > 0
        } else {
          report(.dangling, "the target does not exist", index, primaryKey, &tally)
          reference.keeps = true
        }
      case .real, .text, .blob:
        report(.type, "the key is not an integer", index, primaryKey, &tally)
        reference.keeps = true
      }
      references[index] = reference
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
        let isLost =
          number.map { !references[$0].keeps && references[$0].key.kind != .null } ?? false
        output[place] = isLost ? .null : row[column]
      case .rank(let number, _):
        let reference = references[number]
        output[place] =
          reference.keeps && reference.key.kind == .integer
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
    _ kind: StoreFinding.Kind, _ message: String, _ index: Int, _ primaryKey: Int64,
    _ tally: inout FindingTally
  ) {
    tally.add(
      kind, entity: entity, property: names[index], message: message,
      primaryKey: primaryKey)
  }
}
