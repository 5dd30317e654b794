import GodwitPlanning
import GodwitSQLite

/// One pair of a relationship: an entry of a link checkpoint, whose key is the group's number.
///
/// Five numbers of eight bytes, little-endian: side and ``Manner``, row, other key, other entity,
/// position.
package struct Edge {
  package static let channel: UInt8 = 2
  /// What hooks have said in the copy stage already, before anything that the link stage says.
  package static let earlyChannel: UInt8 = 8
  static let byteCount = 40
  /// Stands for the other object where a relationship is set to nil, and, where pairs are set one
  /// after the other, before the objects that a to-many is set to. No row's key.
  package static let nobody = Int64.min
  /// The ``side`` of a pair that is only counted: of several objects for a to-one side of a relationship
  /// whose pairs are set one after the other, all but the first.
  package static let withoutRoom: Int64 = 2

  /// How a pair is said. Stands above the eight bits of ``side``.
  package struct Manner: OptionSet, Sendable {
    package let rawValue: Int64

    /// A policy's hook says it.
    package static let hook = Manner(rawValue: 1)
    /// The pair is taken away.
    package static let removal = Manner(rawValue: 2)
    /// The pair is added to what the object has by then.
    package static let addition = Manner(rawValue: 4)

    package init(rawValue: Int64) { self.rawValue = rawValue }
  }

  /// See ``LinkProgram/Emission/side``.
  package var side: Int64
  package var manner: Manner = []
  /// The row that the group sets; for a join table the first key.
  package var row: Int64
  package var other: Int64
  /// `Z_ENT` of the other object in the destination.
  package var entity: Int64
  /// Place in the collection that named it, from 0; −1 where there is none.
  package var position: Int64

  package init(
    side: Int64, row: Int64, other: Int64, entity: Int64, position: Int64, manner: Manner = []
  ) {
    self.side = side
    self.manner = manner
    self.row = row
    self.other = other
    self.entity = entity
    self.position = position
  }

  package init?(_ payload: UnsafeRawBufferPointer) {
    guard payload.count == Self.byteCount else { return nil }
    func number(_ place: Int) -> Int64 {
      Int64(littleEndian: payload.loadUnaligned(fromByteOffset: place * 8, as: Int64.self))
    }
    guard number(0) & 0xff <= Self.withoutRoom else { return nil }
    self.init(
      side: number(0) & 0xff, row: number(1), other: number(2), entity: number(3),
      position: number(4), manner: Manner(rawValue: number(0) >> 8))
  }

  func encode(into buffer: inout RawBuffer) {
    buffer.removeAll()
    buffer.append(number: (side | manner.rawValue << 8).littleEndian)
    buffer.append(number: row.littleEndian)
    buffer.append(number: other.littleEndian)
    buffer.append(number: entity.littleEndian)
    buffer.append(number: position.littleEndian)
  }

  /// Says where the pairs of one object's relationship go beside its own columns.
  ///
  /// - Parameters:
  ///   - key: The object's, in the destination.
  ///   - number: Its `Z_ENT`.
  ///   - manner: Of all pairs.
  ///   - first: For a to-many that keeps what it has, the place of the first target. Nil when the targets
  ///     are all that it has.
  @inline(__always)
  static func emit(
    _ targets: [LinkTargets.Target], _ emissions: [LinkProgram.Emission], isToMany: Bool,
    key: Int64, number: Int64, _ groups: [RelationshipGroup], manner: Manner = [],
    after first: Int? = nil, _ body: (_ group: Int, Edge) throws -> Void
  ) throws {
    if isToMany ? first == nil : targets.isEmpty {
      try emitNil(emissions, isToMany: isToMany, key: key, groups, manner, body)
    }
    for (index, target) in targets.enumerated() {
      let position = Int64(index + (first ?? 0))
      for emission in emissions {
        let group = groups[emission.group]
        let edge =
          emission.side == 0
          ? Edge(
            side: 0, row: key, other: target.key, entity: target.entity,
            position: isToMany ? position : -1, manner: manner)
          : Edge(
            side: 1, row: target.key, other: key, entity: number, position: position,
            manner: manner)
        try body(emission.group, edge)
        // A relationship that is its own inverse has each pair both ways round.
        if case .join(_, _, _, true) = group.target {
          try body(
            emission.group,
            Edge(
              side: 1 - edge.side, row: edge.other, other: edge.row, entity: number,
              position: edge.position, manner: manner))
        }
      }
      if !isToMany { break }
    }
    guard !isToMany else { return }
    for target in targets.dropFirst() {
      for emission in emissions where groups[emission.group].isDecisive {
        let (row, other) = emission.side == 0 ? (key, target.key) : (target.key, key)
        try body(
          emission.group,
          Edge(
            side: withoutRoom, row: row, other: other, entity: number, position: -1,
            manner: manner))
      }
    }
  }

  /// Nil takes an object from its partner, where the relationship is one-to-one, and is a word of
  /// its own, where it is counted. Where pairs are set one after the other, an object leaves its
  /// partners before it gets others.
  private static func emitNil(
    _ emissions: [LinkProgram.Emission], isToMany: Bool, key: Int64, _ groups: [RelationshipGroup],
    _ manner: Manner, _ body: (_ group: Int, Edge) throws -> Void
  ) throws {
    for emission in emissions {
      let group = groups[emission.group]
      guard
        group.isDecisive || group.isOpen == true
          || (!isToMany && group.isCounted && emission.side == 0)
      else { continue }
      try body(
        emission.group,
        Edge(
          side: Int64(emission.side), row: emission.side == 0 ? key : nobody,
          other: emission.side == 0 ? nobody : key, entity: 0, position: -1, manner: manner))
    }
  }
}
