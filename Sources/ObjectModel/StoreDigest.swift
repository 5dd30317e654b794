import Foundation
import GodwitDigests

/// Digests over all version hashes of a model, as stores and `.momd` bundles keep them.
///
/// Entities enter in byte order of their names. Source: `core-data-models.md` §6.3 and §6.4.
package enum StoreDigest {
  /// `NSStoreModelVersionHashesDigest`: base64 of SHA-512 over name ‖ hash of each entity.
  package static func hashesDigest(of hashes: [EntityName: VersionHash]) -> String {
    var content: [UInt8] = []
    for (name, hash) in hashes.sorted(by: { $0.key < $1.key }) {
      content += name.rawValue.utf8
      content += hash.bytes
    }
    return Data(SHA512.digest(of: content)).base64EncodedString()
  }

  /// `NSStoreModelVersionChecksumKey`, and `NSManagedObjectModel_VersionChecksums` of a `.momd`:
  /// base64 of SHA-256 over the hashes alone.
  package static func versionChecksum(of hashes: [EntityName: VersionHash]) -> String {
    let content = hashes.sorted { $0.key < $1.key }.flatMap(\.value.bytes)
    return Data(SHA256.digest(of: content)).base64EncodedString()
  }
}

extension EntityHierarchy {
  /// The checksum that Xcode records for the model. See ``StoreDigest/versionChecksum(of:)``.
  package var versionChecksum: String { StoreDigest.versionChecksum(of: versionHashes) }
}
