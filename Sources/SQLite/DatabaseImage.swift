private import CSQLite

extension Connection {
  /// Gives the bytes that the database in memory would have as a file, an open transaction's changes
  /// among them.
  ///
  /// - Parameter commits: How many commits the file is to say that it has seen.
  ///
  /// Source: https://sqlite.org/c3ref/serialize.html; https://sqlite.org/fileformat2.html §1.3, of
  /// whose fields a database in memory leaves out three.
  public func withImage<Result>(
    commits: UInt32, _ body: (UnsafeMutableRawBufferPointer) throws -> Result
  ) throws -> Result {
    var size: Int64 = 0
    guard let bytes = sqlite3_serialize(try openHandle("serialize"), "main", &size, 0), size >= 512
    else { throw failure(SQLITE_NOMEM, in: "serialize") }
    defer { sqlite3_free(bytes) }
    let image = UnsafeMutableRawBufferPointer(start: bytes, count: Int(size))
    for place in [24, 92] {
      image.storeBytes(of: commits.bigEndian, toByteOffset: place, as: UInt32.self)
    }
    let version = UInt32(truncatingIfNeeded: sqlite3_libversion_number())
    image.storeBytes(of: version.bigEndian, toByteOffset: 96, as: UInt32.self)
    return try body(image)
  }
}
