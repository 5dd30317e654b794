/// The record of a row or an index entry, of which the end may be lost.
package struct DamagedRecord {
  /// What of a record its bytes bear out.
  package enum Condition: Sendable {
    /// Header and values take just the bytes that there are.
    case whole
    /// The last overflow pages are lost: values on them are missing.
    case cut
    /// Header and values do not add up: values may be wrong.
    case doubtful
  }

  package let bytes: UnsafeRawBufferPointer
  /// Bytes that the record had; more than there are where its end is lost.
  package let size: Int

  package init(bytes: UnsafeRawBufferPointer, size: Int) { (self.bytes, self.size) = (bytes, size) }

  /// A record with all its bytes.
  package init(whole bytes: UnsafeRawBufferPointer) { self.init(bytes: bytes, size: bytes.count) }

  /// A copy of a record that proves whole and has no more values than there are columns; else nil.
  package func wholeBytes(
    columns: Int, _ values: UnsafeMutablePointer<RawValue>
  ) -> [UInt8]? {
    var lost: [Int] = []
    guard let (count, condition) = decode(into: values, count: columns, lost: &lost),
      condition == .whole, count <= columns
    else { return nil }
    return [UInt8](bytes)
  }

  /// Reads the first `count` values; those that are lost, and those that the record never had, are
  /// NULL.
  ///
  /// - Parameter lost: Gets the numbers of the values that are lost.
  /// - Returns: How many values the record says it has, and its condition; nil where its header
  ///   cannot be read.
  package func decode(
    into values: UnsafeMutablePointer<RawValue>, count: Int, lost: inout [Int]
  ) -> (count: Int, condition: Condition)? {
    lost.removeAll(keepingCapacity: true)
    for index in 0..<count { values[index] = .null }
    guard let (types, headerEnd, end) = RecordFormat.parts(of: bytes) else { return nil }
    var place = types
    let there = UInt64(end - headerEnd)
    let room = there + UInt64(size - bytes.count)
    var (number, body) = (0, UInt64(0))
    while place < headerEnd {
      guard let type = Varint.read(&place, end: headerEnd), type != 10, type != 11 else {
        for index in number..<max(number, count) { lost.append(index) }
        return (max(number, 1), .doubtful)
      }
      let width = type < 12 ? UInt64(RecordFormat.fixedSize(of: type)) : (type - 12) >> 1
      let isThere = body + width <= there
      if number < count {
        if isThere, let value = RecordFormat.read(type, at: headerEnd + Int(body), end: end) {
          values[number] = value
        } else {
          lost.append(number)
        }
      }
      number += 1
      let (sum, isPast) = body.addingReportingOverflow(width)
      guard !isPast, sum <= room else {
        for index in number..<max(number, count) { lost.append(index) }
        return (number, .doubtful)
      }
      body = sum
    }
    guard body == room else { return (number, .doubtful) }
    return (number, lost.isEmpty && bytes.count == size ? .whole : .cut)
  }
}
