import GodwitPages
import GodwitSQLite

/// SQLite's order of values, as integers that compare alike.
///
/// NULL comes before numbers, numbers before texts, texts before blobs; integers and reals compare
/// by their exact values; texts and blobs byte by byte.
///
/// A value may need several integers, its *pieces*: the next one counts where those before are
/// equal. The two highest bits of a piece say which class the value is of. For texts and blobs 56
/// bits of content follow, and how many bytes were left, 8 standing for more than fit.
///
/// Source: https://sqlite.org/datatype3.html §4.1.
enum KeyOrder {
  /// - Parameter piece: Which piece, from 0.
  @inline(__always)
  static func key(of value: RawValue, piece: Int, isDescending: Bool) -> UInt64 {
    let key: UInt64
    switch value.kind {
    case .null: key = 0
    case .integer, .real: key = 1 &<< 62 | number(value, piece)
    case .text: key = 2 &<< 62 | content(value, piece)
    case .blob: key = 3 &<< 62 | content(value, piece)
    }
    return isDescending ? ~key : key
  }

  /// Whether equal pieces mean equal values.
  @inline(__always)
  static func isLast(_ key: UInt64, piece: Int, isDescending: Bool, coarseNumbers: Bool) -> Bool {
    let key = isDescending ? ~key : key
    switch key &>> 62 {
    case 0: return true
    case 1: return piece > 0 || !coarseNumbers
    default: return key &>> 2 & 15 <= 7
    }
  }

  /// Whether a number's first piece does not say all of it.
  @inline(__always)
  static func isCoarse(_ value: RawValue) -> Bool {
    switch value.kind {
    case .integer: return value.bits.magnitude > 1 &<< 50
    case .real: return value.bits & 3 != 0
    default: return false
    }
  }

  /// Reals in the order of their bits, and the distance of an integer from the real next to it.
  @inline(__always)
  static func ordered(_ value: RawValue) -> (real: UInt64, distance: Int64) {
    var real = value.real
    var distance: Int64 = 0
    if value.kind == .integer {
      real = Double(value.bits)
      if value.bits.magnitude > 1 &<< 53 {
        // 2^63 is not an Int64, but the difference is right modulo 2^64.
        distance = real < 0x1p63 ? value.bits &- Int64(real) : value.bits &- Int64.min
      }
    }
    let bits = (real == 0 ? 0 : real).bitPattern
    return (bits &>> 63 == 0 ? bits | 1 &<< 63 : ~bits, distance)
  }

  @inline(__always)
  private static func number(_ value: RawValue, _ piece: Int) -> UInt64 {
    let (real, distance) = ordered(value)
    if piece == 0 { return real &>> 2 }
    // Distances lie within ±1024: half of what lies between two reals below 2^63.
    return (real & 3) &<< 32 | UInt64(bitPattern: distance &+ 4096)
  }

  @inline(__always)
  private static func content(_ value: RawValue, _ piece: Int) -> UInt64 {
    let done = 7 &* piece
    let left = max(0, value.count &- done)
    guard left > 0, let start = value.bytes else { return 0 }
    var bytes: UInt64 = 0
    if left >= 8 {
      bytes = UInt64(bigEndian: (start + done).loadUnaligned(as: UInt64.self)) &>> 8
    } else {
      for place in 0..<left {
        bytes |= UInt64((start + done + place).load(as: UInt8.self)) &<< UInt64(48 - 8 * place)
      }
    }
    return bytes &<< 6 | UInt64(min(left, 8)) &<< 2
  }
}

/// Compares entries of an index, which are records.
final class EntryComparison {
  let index: CoveredTable.Index
  private let left: UnsafeMutablePointer<RawValue>
  private let right: UnsafeMutablePointer<RawValue>

  init(_ index: CoveredTable.Index) {
    self.index = index
    left = .allocate(capacity: index.fields.count)
    right = .allocate(capacity: index.fields.count)
    left.initialize(repeating: .null, count: index.fields.count)
    right.initialize(repeating: .null, count: index.fields.count)
  }

  deinit {
    left.deallocate()
    right.deallocate()
  }
}

extension EntryComparison {
  /// Negative, 0 or positive. The row's key is not looked at.
  ///
  /// - Parameter first: The first field to look at.
  func compare(
    _ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer, from first: Int = 0
  ) -> Int {
    decode(one, other)
    for field in first..<index.keyCount {
      let order = EntryComparison.compare(left[field], right[field])
      if order != 0 { return index.fields[field].isDescending ? -order : order }
    }
    return 0
  }

  /// Whether two entries must not be in a unique index together: equal, and without NULL.
  func isViolation(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) -> Bool {
    decode(one, other)
    for field in 0..<index.keyCount {
      if left[field].isNull || EntryComparison.compare(left[field], right[field]) != 0 {
        return false
      }
    }
    return true
  }

  /// One value of an entry.
  func value(_ field: Int, of entry: UnsafeRawBufferPointer) -> RawValue {
    _ = RecordFormat.decode(record: entry, into: left, count: field + 1)
    return left[field]
  }

  private func decode(_ one: UnsafeRawBufferPointer, _ other: UnsafeRawBufferPointer) {
    // The records are our own.
    _ = RecordFormat.decode(record: one, into: left, count: index.keyCount)
    _ = RecordFormat.decode(record: other, into: right, count: index.keyCount)
  }

  static func compare(_ one: RawValue, _ other: RawValue) -> Int {
    let (oneClass, otherClass) = (rank(one), rank(other))
    if oneClass != otherClass { return oneClass < otherClass ? -1 : 1 }
    switch oneClass {
    case 0: return 0
    case 1:
      let (left, right) = (KeyOrder.ordered(one), KeyOrder.ordered(other))
      return left == right ? 0 : left < right ? -1 : 1
    default:
      let (left, right) = (one.buffer, other.buffer)
      let common = min(left.count, right.count)
      if common > 0, let first = left.baseAddress, let second = right.baseAddress {
        let order = compareBytes(first, second, common)
        if order != 0 { return order }
      }
      return left.count == right.count ? 0 : left.count < right.count ? -1 : 1
    }
  }

  private static func rank(_ value: RawValue) -> Int {
    switch value.kind {
    case .null: 0
    case .integer, .real: 1
    case .text: 2
    case .blob: 3
    }
  }
}
