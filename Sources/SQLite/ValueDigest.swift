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

  /// Takes in a value as its column may keep it: columns of numbers have whole ones in either form,
  /// which SQLite takes for equal and gives the one or the other when a row is written again. A real
  /// that is not a number is NULL.
  @inlinable @inline(__always)
  public mutating func add(kept value: RawValue) {
    guard value.kind == .real else { return add(value) }
    if let whole = Int64(exactly: value.real) { return add(.integer(whole)) }
    add(value.real.isNaN ? .null : value)
  }
}

extension RowSetDigest {
  /// Takes in one row by its values, as their columns may keep them.
  @inlinable
  public mutating func add(_ values: UnsafePointer<RawValue>, count: Int) {
    var hash = RowHash(length: count)
    for place in 0..<count { hash.add(kept: values[place]) }
    add(hash)
  }
}
