import Foundation
import Godwit

/// Computes a default: every item gets an identifier.
final class IdentifierPolicy: EntityMigrationPolicy {
  override class var scope: Scope { .shard }

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    let made = try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source])
    for item in made { item["identifier"] = source.uriRepresentation.map(Self.identifier(of:)) }
  }

  /// Not `UUID()`: when a worker is killed, its shard is done again, and must come out the same.
  /// A name-based UUID is new for every object and the same in every run.
  ///
  /// Version 8 of RFC 9562: 122 bits of one's own, here FNV-1a of the object's URI.
  static func identifier(of uri: String) -> UUID {
    var hash: UInt128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d
    for byte in uri.utf8 { hash = (hash ^ UInt128(byte)) &* 0x0100_0000_0000_0000_0000_013b }
    hash = hash & ~(0xf << 76) | 0x8 << 76  // the version
    hash = hash & ~(0x3 << 62) | 0x2 << 62  // the variant
    return withUnsafeBytes(of: hash.bigEndian) { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
  }
}
