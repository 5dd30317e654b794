extension EntityHierarchy {
  /// The model as a keyed archive: what a `.mom` file holds. The same model always gives the
  /// same bytes. Source: `core-data-models.md` §4.
  package func archiveBytes() -> [UInt8] { ArchivedModelWriter.write(self) }

  /// The model as a store keeps it in `Z_MODELCACHE.Z_CONTENT`: ``archiveBytes()``, raw-deflated.
  package func modelCacheBytes() throws -> [UInt8] {
    try modelCache.value { try ModelCache.deflate(archiveBytes()) }
  }

  /// What a destination depends on: what the model says, as far as an archive holds it, and recorded hashes where others are computed.
  package func identityBytes() throws -> [UInt8] {
    try modelCacheBytes() + (recordedHashes.isEmpty ? [] : Array(versionChecksum.utf8))
  }
}

extension ManagedObjectModel {
  /// See ``EntityHierarchy/archiveBytes()``.
  /// - Throws: ``ModelError`` for a model whose inheritance cannot be followed.
  package func archiveBytes() throws -> [UInt8] { try EntityHierarchy(self).archiveBytes() }

  /// See ``EntityHierarchy/modelCacheBytes()``.
  /// - Throws: ``ModelError``.
  package func modelCacheBytes() throws -> [UInt8] { try EntityHierarchy(self).modelCacheBytes() }
}
