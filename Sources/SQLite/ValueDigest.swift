public import GodwitDigests

extension RowHash {
  /// Takes in a value: what kind it is of, how long it is, and its bits or bytes.
  @inlinable @inline(__always)
  public mutating func add(_ value: RawValue) {
    let size = value.bytes == nil ? 0 : value.count
    add(
      UInt64(value.kind.rawValue) | UInt64(truncatingIfNeeded: size) &<< 8,
      UInt64(bitPattern: value.bits))
    if size > 0 { add(value.buffer) }
  }
}

extension RowSetDigest {
  /// Takes in one row by its values. A real that is not a number counts as NULL, as SQLite keeps it.
  @inlinable
  public mutating func add(_ values: UnsafePointer<RawValue>, count: Int) {
    var hash = RowHash(length: count)
    for place in 0..<count {
      let value = values[place]
      hash.add(value.kind == .real && value.real.isNaN ? .null : value)
    }
    add(hash)
  }
}
