/// The record of a row or an index entry, of which the end may be lost.
package struct DamagedRecord {
  /// What of a record its bytes bear out.
  package enum Condition: Sendable {
    /// Header and values take just the bytes that there are.
    case whole
    /// The last overflow pages are lost: values on them are missing.
    case cut
    /// A blob or a number lies on a page of zeros: its own, or what became of others.
    case blank
    /// Header and values do not add up: values may be wrong.
    case doubtful
  }

  package let bytes: UnsafeRawBufferPointer
  /// Bytes that the record had; more than there are where its end is lost.
  package let size: Int
  /// Where overflow pages begin that are zeros from end to end; nil where there are none.
  private let zerosFrom: Int?
  /// Where overflow pages begin that may be another record's; nil where there are none.
  private let doubtfulFrom: Int?

  package init(
    bytes: UnsafeRawBufferPointer, size: Int, zerosFrom: Int? = nil, doubtfulFrom: Int? = nil
  ) {
    (self.bytes, self.size) = (bytes, size)
    (self.zerosFrom, self.doubtfulFrom) = (zerosFrom, doubtfulFrom)
  }

  /// What another record says, of which these are the bytes.
  package init(_ other: DamagedRecord, copiedTo bytes: UnsafeRawBufferPointer) {
    self.init(
      bytes: bytes, size: other.size, zerosFrom: other.zerosFrom, doubtfulFrom: other.doubtfulFrom)
  }

  /// A record with all its bytes.
  package init(whole bytes: UnsafeRawBufferPointer) { self.init(bytes: bytes, size: bytes.count) }

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
    // From here on values lie on pages of zeros: a text is lost there, and of other values nobody can tell
    // whether the zeros are their own.
    let zeros = zerosFrom.map { UInt64(max(0, $0 - (bytes.count - Int(there)))) } ?? .max
    var (number, body, isBlank) = (0, UInt64(0), false)
    while place < headerEnd {
      guard let type = Varint.read(&place, end: headerEnd), type != 10, type != 11 else {
        for index in number..<max(number, count) { lost.append(index) }
        return (max(number, 1), .doubtful)
      }
      let width = type < 12 ? UInt64(RecordFormat.fixedSize(of: type)) : (type - 12) >> 1
      let isThere = body + width <= there
      if number < count {
        let value = isThere ? RecordFormat.read(type, at: headerEnd + Int(body), end: end) : nil
        let isOnZeros = body + width > zeros && width > 0
        if let value, !isOnZeros || type & 1 == 0 || type < 12 {
          values[number] = value
          isBlank = isBlank || (isOnZeros && !Self.beginsWithZeros(value, zeros, body))
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
    if isBlank { return (number, .blank) }
    return (number, lost.isEmpty && bytes.count == size ? .whole : .cut)
  }

  /// The storage classes of all its values, those that are lost included; nil where they do not add up.
  package var kinds: [RawValue.Kind]? {
    guard let (types, headerEnd, end) = RecordFormat.parts(of: bytes) else { return nil }
    let room = UInt64(end - headerEnd) + UInt64(size - bytes.count)
    var (place, body, kinds) = (types, UInt64(0), [RawValue.Kind]())
    while place < headerEnd {
      guard let type = Varint.read(&place, end: headerEnd), type != 10, type != 11 else {
        return nil
      }
      let width = type < 12 ? UInt64(RecordFormat.fixedSize(of: type)) : (type - 12) >> 1
      let (sum, isPast) = body.addingReportingOverflow(width)
      guard !isPast, sum <= room else { return nil }
      body = sum
      switch type {
      case 0: kinds.append(.null)
      case 7: kinds.append(.real)
      case ..<12: kinds.append(.integer)
      default: kinds.append(type & 1 == 0 ? .blob : .text)
      }
    }
    return body == room ? kinds : nil
  }

  /// Whether it goes on in overflow pages that may be another record's.
  package var isDoubtful: Bool { doubtfulFrom != nil }

  /// The numbers of the values that lie on such pages, of the first `count`.
  package func doubtfulValues(count: Int) -> [Int] {
    guard let doubtfulFrom, let (types, headerEnd, end) = RecordFormat.parts(of: bytes) else {
      return []
    }
    let from = UInt64(max(0, doubtfulFrom - (bytes.count - (end - headerEnd))))
    var (place, number, body, found) = (types, 0, UInt64(0), [Int]())
    while number < count, place < headerEnd, let type = Varint.read(&place, end: headerEnd) {
      let width = type < 12 ? UInt64(RecordFormat.fixedSize(of: type)) : (type - 12) >> 1
      let (sum, isPast) = body.addingReportingOverflow(width)
      if isPast || sum > from, width > 0 { found.append(number) }
      if isPast { break }
      (body, number) = (sum, number + 1)
    }
    return found
  }

  /// Whether a blob is zeros before the page of zeros, too: such a one was stored.
  private static func beginsWithZeros(_ value: RawValue, _ zeros: UInt64, _ body: UInt64) -> Bool {
    guard let bytes = value.bytes, zeros > body else { return false }
    let before = UnsafeRawBufferPointer(start: bytes, count: min(value.count, Int(zeros - body)))
    return before.allSatisfy { $0 == 0 }
  }
}
