import GodwitCheckpoints
import GodwitPlanning

/// The source and destination keys of the rows that a shard has copied, ascending.
package final class UnitKeys {
  /// Entries that tell the source key where the destination's is another.
  static let associations: UInt8 = 2

  private let reader: CheckpointReader
  private let channel: UInt8

  package init(_ reader: CheckpointReader, _ mapping: EntityMappingPlan) {
    self.reader = reader
    channel = mapping.assignsKeys ? Self.associations : 0
  }

  package func next() throws -> (source: Int64, destination: Int64)? {
    while let entry = try reader.next() {
      guard entry.channel == channel else { continue }
      if channel == 0 { return (entry.key, entry.key) }
      guard entry.payload.count == 8 else { continue }
      return (entry.key, Int64(littleEndian: entry.payload.loadUnaligned(as: Int64.self)))
    }
    return nil
  }
}
