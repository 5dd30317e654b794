import GodwitCheckpoints
import GodwitPlanning
import GodwitSQLite

/// The entries of a policy's checkpoints.
///
///     channel  key      payload
///           0  ordinal  copy: an attribute record; link: a relationship record; of the mapping's
///                       own table
///           2  group    link: an ``Edge``
///           4  ordinal  as 0, of another table, whose number goes before the record
///           5  ordinal  copy: table, then relationships as the policy set them
///           6  place    copy: an association: source entity and key, destination entity and
///                       ordinal
///           7  ordinal  link: table, then an attribute record that takes the copied one's place
///           8  group    link: an ``Edge`` that a hook has set in the copy stage
///           9  ordinal  copy: `Z_ENT` and ``RelationshipWord`` with its relationship, of a hook
///          10  ordinal  copy: table, then ``TransientValues`` that the policy set
///
/// Numbers before a payload have four bytes, those of an association and `Z_ENT` eight;
/// little-endian. Words stand first, in the order in which they were said. Rows stand table by
/// table, the own one first, each by ascending ordinal; what else there is of an object stands behind its
/// row.
enum PolicyChannel {
  static let own: UInt8 = 0
  static let other: UInt8 = 4
  static let links: UInt8 = 5
  static let association: UInt8 = 6
  static let changed: UInt8 = 7
  static let words: UInt8 = 9
  static let transients: UInt8 = 10
}

extension CheckpointReader.Entry {
  /// Table and rest of a payload that begins with a table; nil for one that is too short.
  var tabled: (table: Int, rest: UnsafeRawBufferPointer)? {
    guard payload.count >= 4 else { return nil }
    return (
      Int(UInt32(littleEndian: payload.loadUnaligned(as: UInt32.self))),
      UnsafeRawBufferPointer(rebasing: payload[4...])
    )
  }

  /// What a policy associated; nil for an entry that is not an association.
  package var association: PolicyPair? {
    guard channel == PolicyChannel.association, payload.count == PolicyPair.byteCount else {
      return nil
    }
    func number(_ place: Int) -> Int64 {
      Int64(littleEndian: payload.loadUnaligned(fromByteOffset: place * 8, as: Int64.self))
    }
    return PolicyPair(
      sourceEntity: number(0), source: number(1), destinationEntity: number(2),
      destination: number(3))
  }

  /// Table and record of a row; nil for an entry that is none.
  func row(ownTable: Int?) -> (table: Int, record: UnsafeRawBufferPointer)? {
    if channel == PolicyChannel.own { return ownTable.map { ($0, payload) } }
    guard channel == PolicyChannel.other, let (table, rest) = tabled else { return nil }
    return (table, rest)
  }
}

/// A source object and a destination object of a policy's making: `Z_ENT` in either store, `Z_PK` of
/// the source object, ordinal of the other.
package struct PolicyPair: BitwiseCopyable {
  static let byteCount = 32

  var sourceEntity: Int64
  var source: Int64
  package var destinationEntity: Int64
  package var destination: Int64

  var numbers: [Int64] { [sourceEntity, source, destinationEntity, destination] }
}

/// Walks the rows of one table in a checkpoint of a policy's shard.
final class PolicyRowCursor {
  private let reader: CheckpointReader
  private let table: Int
  private let channel: UInt8
  private(set) var key: Int64 = 0
  private(set) var record = UnsafeRawBufferPointer(start: nil, count: 0)

  /// - Parameter channel: Of what else there is of the objects, instead of their rows.
  init(_ reader: CheckpointReader, table: Int, ownTable: Int?, channel: UInt8? = nil) {
    self.reader = reader
    self.table = table
    self.channel = channel ?? (table == ownTable ? PolicyChannel.own : PolicyChannel.other)
  }

  /// Goes to the next row; its record is valid until the next call.
  func next() throws -> Bool {
    while let entry = try reader.next() {
      guard entry.channel == channel else { continue }
      if entry.channel == PolicyChannel.own {
        record = entry.payload
      } else {
        guard let (found, rest) = entry.tabled, found == table else { continue }
        record = rest
      }
      key = entry.key
      return true
    }
    return false
  }
}

/// Where the tables of a policy's shard go: table number before the record unless it is the own.
struct PolicyRowWriter {
  let writer: CheckpointWriter
  let ownTable: Int?

  func append(
    _ record: UnsafeRawBufferPointer, table: Int, ordinal: Int64, _ buffer: inout RawBuffer
  ) throws {
    if table == ownTable {
      try writer.append(channel: PolicyChannel.own, key: ordinal, record)
    } else {
      try append(PolicyChannel.other, record, table: table, ordinal: ordinal, &buffer)
    }
  }

  func append(
    _ channel: UInt8, _ payload: UnsafeRawBufferPointer, table: Int, ordinal: Int64,
    _ buffer: inout RawBuffer
  ) throws {
    buffer.removeAll()
    buffer.append(number: UInt32(table).littleEndian)
    buffer.append(payload)
    try writer.append(channel: channel, key: ordinal, buffer.bytes)
  }
}

/// The relationships of an object as bytes: for each its number in the entity and the number of its
/// members in four bytes, then the members, entity and key in eight bytes each. Little-endian.
enum LinkBytes {
  typealias Links = [(relationship: Int, targets: [LinkTargets.Target])]

  static func append(_ links: Links, to buffer: inout RawBuffer) {
    for (relationship, targets) in links {
      buffer.append(number: UInt32(relationship).littleEndian)
      buffer.append(number: UInt32(targets.count).littleEndian)
      for target in targets {
        buffer.append(number: target.entity.littleEndian)
        buffer.append(number: target.key.littleEndian)
      }
    }
  }

  /// Reads what ``append(_:to:)`` has written; a damaged end is left out.
  static func links(_ bytes: UnsafeRawBufferPointer) -> Links {
    var links: Links = []
    var place = 0
    func number<Number: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, _: Number.Type)
      -> Number
    {
      Number(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: Number.self))
    }
    while place + 8 <= bytes.count {
      let relationship = Int(number(place, UInt32.self))
      let count = Int(number(place + 4, UInt32.self))
      place += 8
      guard count * 16 <= bytes.count - place else { break }
      var targets: [LinkTargets.Target] = []
      targets.reserveCapacity(count)
      for index in 0..<count {
        targets.append(
          LinkTargets.Target(
            entity: number(place + index * 16, Int64.self),
            key: number(place + index * 16 + 8, Int64.self)))
      }
      place += count * 16
      links.append((relationship, targets))
    }
    return links
  }
}
