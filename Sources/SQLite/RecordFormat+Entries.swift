// Records as SQLite writes them, where it reads others otherwise or not at all.
extension RecordFormat {
  /// Reads an entry of an index: `count` values and nothing behind them, in the header that SQLite
  /// writes. Its comparison of keys takes an entry's last value for the row id, however many there are,
  /// and misreads a varint in more bytes than it takes.
  ///
  /// - Returns: `false` for any other, and for a malformed one; the values are then of no use.
  ///
  /// Source: https://sqlite.org/src/file/src/vdbeaux.c, `sqlite3VdbeIdxRowid`,
  /// `sqlite3VdbeRecordCompareWithSkip`.
  @inlinable
  public static func decodeEntry(
    record: UnsafeRawBufferPointer, into values: UnsafeMutablePointer<RawValue>, count: Int
  ) -> Bool {
    guard let (types, headerEnd, end) = shortParts(of: record) else { return false }
    var typePlace = types
    var bodyPlace = headerEnd
    for index in 0..<count {
      guard typePlace < headerEnd, let type = Varint.readShortest(&typePlace, end: headerEnd),
        let value = read(type, at: bodyPlace, end: end)
      else { return false }
      values[index] = value
      bodyPlace += size(of: type)
    }
    return typePlace == headerEnd && bodyPlace == end
  }

  /// Whether a record is one that SQLite writes as an entry of so many values, as
  /// ``decodeEntry(record:into:count:)`` says.
  public static func isEntry(_ record: UnsafeRawBufferPointer, of counts: ClosedRange<Int>) -> Bool
  {
    guard let (types, headerEnd, end) = shortParts(of: record) else { return false }
    var (typePlace, bodyPlace, count) = (types, headerEnd, 0)
    while typePlace < headerEnd {
      guard let type = Varint.readShortest(&typePlace, end: headerEnd),
        read(type, at: bodyPlace, end: end) != nil
      else { return false }
      bodyPlace += size(of: type)
      count &+= 1
    }
    return typePlace == headerEnd && bodyPlace == end && counts.contains(count)
  }

  /// Whether a record that is whole has values behind the first `count`, which nobody reads.
  public static func hasMore(_ record: UnsafeRawBufferPointer, than count: Int) -> Bool {
    guard let (types, headerEnd, _) = parts(of: record) else { return false }
    var (place, found) = (types, 0)
    while place < headerEnd, found <= count {
      guard Varint.read(&place, end: headerEnd) != nil else { return false }
      found &+= 1
    }
    return found > count
  }

  /// As ``parts(of:)``; nil, too, where the header's size is in more bytes than it takes.
  @inlinable @inline(__always)
  static func shortParts(
    of record: UnsafeRawBufferPointer
  ) -> (types: UnsafeRawPointer, body: UnsafeRawPointer, end: UnsafeRawPointer)? {
    guard let start = record.baseAddress, let found = parts(of: record),
      found.types - start == Varint.size(of: UInt64(truncatingIfNeeded: found.body - start))
    else { return nil }
    return found
  }
}
