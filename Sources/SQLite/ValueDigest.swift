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
  /// Takes in one row by its values, as SQLite keeps them: a real that is not a number as NULL, and
  /// a zero without a sign.
  @inlinable
  public mutating func add(_ values: UnsafePointer<RawValue>, count: Int) {
    var hash = RowHash(length: count)
    for place in 0..<count {
      let value = values[place]
      if value.kind == .real, !(value.real < 0 || value.real > 0) {
        hash.add(value.real.isNaN ? .null : .real(0))
      } else {
        hash.add(value)
      }
    }
    add(hash)
  }
}
