private import CZlib
import GodwitKeyedArchive

/// A model as a store keeps it in `Z_MODELCACHE.Z_CONTENT`: a keyed archive, raw-deflated.
///
/// Raw means RFC 1951 without the header of zlib. Source: `core-data-sqlite-format.md` §3.
package enum ModelCache {
  /// 64 MiB. The largest model cache seen inflates to 0.4 MiB.
  package static let inflatedByteLimit = 64 << 20

  /// The archive that the bytes of a model cache hold.
  ///
  /// - Throws: ``ModelError/modelCache(reason:)`` for a stream that is damaged, cut short, or
  ///   larger than ``inflatedByteLimit``.
  package static func inflate(_ bytes: [UInt8]) throws -> [UInt8] {
    guard !bytes.isEmpty else { throw ModelError.modelCache(reason: "it is empty") }
    var stream = z_stream()
    guard
      inflateInit2_(&stream, -MAX_WBITS, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
    else { throw ModelError.modelCache(reason: "zlib has no memory") }
    defer { inflateEnd(&stream) }
    var output: [UInt8] = []
    let status = try pump(&stream, bytes, into: &output, limit: inflatedByteLimit) {
      CZlib.inflate(&$0, Z_NO_FLUSH)
    }
    guard status == Z_STREAM_END else {
      throw ModelError.modelCache(
        reason: status == Z_DATA_ERROR ? "it is damaged" : "it is cut short")
    }
    return output
  }

  /// The same bytes always give the same stream.
  package static func deflate(_ bytes: [UInt8]) throws -> [UInt8] {
    var stream = z_stream()
    guard
      deflateInit2_(
        &stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY,
        ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK
    else { throw ModelError.modelCache(reason: "zlib has no memory") }
    defer { deflateEnd(&stream) }
    var output: [UInt8] = []
    let status = try pump(&stream, bytes, into: &output, limit: .max) {
      CZlib.deflate(&$0, Z_FINISH)
    }
    guard status == Z_STREAM_END else {
      throw ModelError.modelCache(reason: "zlib cannot compress it")
    }
    return output
  }

  /// 64 KiB a step.
  private static let stepBytes = 64 << 10

  private static func pump(
    _ stream: inout z_stream, _ input: [UInt8], into output: inout [UInt8], limit: Int,
    step: (inout z_stream) -> Int32
  ) throws -> Int32 {
    guard let count = UInt32(exactly: input.count) else {
      throw ModelError.modelCache(reason: "it is larger than 4 GiB")
    }
    var input = input
    var buffer = [UInt8](repeating: 0, count: stepBytes)
    return try input.withUnsafeMutableBufferPointer { source in
      stream.next_in = source.baseAddress
      stream.avail_in = count
      while true {
        let (status, made) = buffer.withUnsafeMutableBufferPointer { place in
          stream.next_out = place.baseAddress
          stream.avail_out = UInt32(stepBytes)
          let status = step(&stream)
          return (status, stepBytes - Int(stream.avail_out))
        }
        guard output.count + made <= limit else {
          throw ModelError.modelCache(reason: "it inflates to more than \(limit) bytes")
        }
        output += buffer[..<made]
        if status != Z_OK || (made == 0 && stream.avail_in == 0) { return status }
      }
    }
  }
}

extension ManagedObjectModel {
  /// Reads the model that a store carries in `Z_MODELCACHE.Z_CONTENT`.
  ///
  /// - Throws: ``ModelError``. One store in a hundred has a damaged cache: it is a cache, not a
  ///   condition for opening the store.
  package init(modelCache bytes: [UInt8]) throws {
    // The stores of a fleet carry the same few.
    self = try Self.recentCaches.output(for: bytes) {
      let path = "Z_MODELCACHE"
      let model = try ArchivedModelReader.read(try ModelCache.inflate(bytes), path: path)
      // The store of one configuration keeps what leads out of it.
      try ModelRules.require(model, path: path, isWhole: false)
      return model
    }
  }

  private static let recentCaches = RecentResults<[UInt8], ManagedObjectModel>(limit: 4)
}

extension EntityHierarchy {
  /// Of the model that a store carries, see ``ManagedObjectModel/init(modelCache:)``.
  package init(modelCache bytes: [UInt8]) throws {
    self = try Self.recentCaches.output(for: bytes) {
      try EntityHierarchy(ManagedObjectModel(modelCache: bytes))
    }
  }

  private static let recentCaches = RecentResults<[UInt8], EntityHierarchy>(limit: 4)
}

extension ManagedObjectModel {

  /// Reads a keyed archive, the content of a `.mom` file.
  ///
  /// - Parameter path: Where the bytes are from, for messages.
  /// - Throws: ``ModelError``.
  package init(archive bytes: [UInt8], path: String) throws {
    self = try ArchivedModelReader.read(bytes, path: path)
    try ModelRules.require(self, path: path)
  }

  /// Reads a `contents` file of an `.xcdatamodel`.
  ///
  /// - Parameter path: Where the bytes are from, for messages.
  /// - Throws: ``ModelError``.
  package init(xml bytes: [UInt8], path: String) throws {
    self = try XMLModelReader.read(bytes, path: path)
    try ModelRules.require(self, path: path)
  }
}
