/// SQLite's record format: what a table's row is on disk.
///
/// A record is a header and a body. The header is a varint of its own size followed by one serial
/// type (a varint) a value; the body is the values, in the same order, without padding.
///
///     serial type  bytes  value
///               0      0  NULL
///               1      1  signed integer, big-endian
///               2      2  …
///               3      3  …
///               4      4  …
///               5      6  …
///               6      8  …
///               7      8  IEEE 754 double, big-endian
///               8      0  the integer 0
///               9      0  the integer 1
///          10, 11         never in a database file
///       12+2n          n  blob
///       13+2n          n  text, in the database's encoding
///
/// Values are encoded as they are, by kind. What depends on a *column* is the caller's: affinity;
/// an INTEGER PRIMARY KEY, which is NULL in the record; and integral numbers in columns of REAL
/// affinity, which SQLite keeps as integers.
///
/// Source: https://sqlite.org/fileformat2.html §2.1. Types 8 and 9 need schema format 4 (§1.3.10,
/// offset 44 of the file), which SQLite gives every database it makes by default.
public enum RecordFormat {
  /// The serial type of a value. A real that is not a number is NULL, as `sqlite3_bind_double`
  /// makes it.
  @inlinable @inline(__always)
  public static func serialType(of value: RawValue) -> UInt64 {
    switch value.kind {
    case .null: return 0
    case .integer: return serialType(of: value.bits)
    case .real: return value.real.isNaN ? 0 : 7
    case .text: return UInt64(truncatingIfNeeded: value.count) &* 2 &+ 13
    case .blob: return UInt64(truncatingIfNeeded: value.count) &* 2 &+ 12
    }
  }

  /// The smallest serial type that holds an integer.
  @inlinable @inline(__always)
  static func serialType(of integer: Int64) -> UInt64 {
    let magnitude = UInt64(bitPattern: integer ^ (integer &>> 63))
    if magnitude <= 0x7F {
      return integer & 1 == integer ? UInt64(bitPattern: integer) &+ 8 : 1
    }
    if magnitude <= 0x7FFF { return 2 }
    if magnitude <= 0x7F_FFFF { return 3 }
    if magnitude <= 0x7FFF_FFFF { return 4 }
    if magnitude <= 0x7FFF_FFFF_FFFF { return 5 }
    return 6
  }

  /// Bytes in the body of a value of a serial type below 12.
  @inlinable @inline(__always)
  static func fixedSize(of serialType: UInt64) -> Int {
    // One digit a type, type 0 rightmost: 0 1 2 3 4 6 8 8 0 0.
    Int(truncatingIfNeeded: 0x00_8864_3210 as UInt64 &>> (serialType &* 4)) & 0xF
  }

  /// Bytes in the body of a value of any serial type of a record in memory.
  @inlinable @inline(__always)
  static func size(of serialType: UInt64) -> Int {
    serialType < 12
      ? fixedSize(of: serialType) : Int(truncatingIfNeeded: (serialType &- 12) &>> 1)
  }
}

extension RecordFormat {
  /// The size of the record of `count` values.
  @inlinable
  public static func size(of values: UnsafePointer<RawValue>, count: Int) -> Int {
    var (types, body) = (0, 0)
    for index in 0..<count {
      let type = serialType(of: values[index])
      types &+= Varint.size(of: type)
      body &+= size(of: type)
    }
    return headerSize(types: types) &+ body
  }

  /// Appends the record of `count` values to the buffer.
  ///
  /// The bytes are those SQLite writes for the same values in a table without affinities.
  ///
  /// - Returns: The size of the record in bytes.
  @inlinable
  @discardableResult
  public static func encode(
    _ values: UnsafePointer<RawValue>, count: Int, into buffer: inout RawBuffer
  ) -> Int {
    var types = 0
    var body = 0
    for index in 0..<count {
      let type = serialType(of: values[index])
      types &+= Varint.size(of: type)
      body &+= size(of: type)
    }
    let header = headerSize(types: types)
    let record = buffer.appendUninitialized(header &+ body)
    var typePlace = record + Varint.write(UInt64(truncatingIfNeeded: header), to: record)
    var bodyPlace = record + header
    for index in 0..<count {
      let type = serialType(of: values[index])
      typePlace += Varint.write(type, to: typePlace)
      bodyPlace += write(values[index], as: type, to: bodyPlace)
    }
    return header &+ body
  }

  /// The size of a header whose serial types take `types` bytes. It counts itself.
  @inlinable @inline(__always)
  static func headerSize(types: Int) -> Int {
    if types <= 126 { return types &+ 1 }
    let size = Varint.size(of: UInt64(truncatingIfNeeded: types))
    let header = types &+ size
    return Varint.size(of: UInt64(truncatingIfNeeded: header)) > size ? header &+ 1 : header
  }

  @inlinable @inline(__always)
  static func write(
    _ value: RawValue, as type: UInt64, to place: UnsafeMutableRawPointer
  ) -> Int {
    if type >= 12 {
      let count = value.count
      if count > 0, let bytes = value.bytes { place.copyMemory(from: bytes, byteCount: count) }
      return count
    }
    let size = fixedSize(of: type)
    switch size {
    case 0: break
    case 1: place.storeBytes(of: Int8(truncatingIfNeeded: value.bits), as: Int8.self)
    case 2:
      place.storeBytes(of: Int16(truncatingIfNeeded: value.bits).bigEndian, as: Int16.self)
    case 4:
      place.storeBytes(of: Int32(truncatingIfNeeded: value.bits).bigEndian, as: Int32.self)
    case 8: place.storeBytes(of: value.bits.bigEndian, as: Int64.self)
    default:  // 3 or 6
      var rest = value.bits
      for offset in stride(from: size &- 1, through: 0, by: -1) {
        place.storeBytes(
          of: UInt8(truncatingIfNeeded: rest), toByteOffset: offset, as: UInt8.self)
        rest &>>= 8
      }
    }
    return size
  }
}

extension RecordFormat {
  /// Reads the first `count` values of a record; values the record does not have are NULL, as they
  /// are for SQLite. Values behind them are not looked at.
  ///
  /// Never reads outside the record, whatever its bytes say. Texts and blobs point into it.
  ///
  /// - Returns: `false` when the record is malformed; the values are then of no use.
  @inlinable
  public static func decode(
    record: UnsafeRawBufferPointer, into values: UnsafeMutablePointer<RawValue>, count: Int
  ) -> Bool {
    forEachValue(of: record, count: count) { index, value in values[index] = value }
  }

  /// Reads the first `count` values of a record to where they are wanted.
  ///
  /// - Parameter places: For each value its place in `row`; −1 for one that nobody wants.
  /// - Returns: `false` when the record is malformed; the values are then of no use.
  @inlinable
  public static func scatter(
    record: UnsafeRawBufferPointer, into row: UnsafeMutablePointer<RawValue>,
    places: UnsafePointer<Int32>, count: Int
  ) -> Bool {
    forEachValue(of: record, count: count) { index, value in
      let place = Int(truncatingIfNeeded: places[index])
      if place >= 0 { row[place] = value }
    }
  }

  /// Kinds of values that a column may hold, as bits.
  public struct Kinds: OptionSet, BitwiseCopyable, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    public static let null = Kinds(rawValue: 1)
    public static let number = Kinds(rawValue: 2)
    public static let text = Kinds(rawValue: 4)
    public static let blob = Kinds(rawValue: 8)
    public static let any: Kinds = [.null, .number, .text, .blob]
    /// The column may be missing in the record.
    public static let missing = Kinds(rawValue: 16)
  }

  /// Whether a record is whole: its header and body end where they should, it has no more values than
  /// there are columns, and each is of a kind that its column may hold.
  public static func holds(
    _ record: UnsafeRawBufferPointer, _ columns: UnsafeBufferPointer<Kinds>
  ) -> Bool {
    guard let (types, headerEnd, end) = parts(of: record) else { return false }
    var place = types
    let room = UInt64(truncatingIfNeeded: end - headerEnd)
    var (number, body) = (0, UInt64(0))
    while place < headerEnd {
      guard number < columns.count, let type = Varint.read(&place, end: headerEnd) else {
        return false
      }
      let kind: Kinds
      if type >= 12 {
        body &+= (type &- 12) &>> 1
        kind = type & 1 == 0 ? .blob : .text
      } else {
        guard type < 10 else { return false }
        body &+= UInt64(truncatingIfNeeded: fixedSize(of: type))
        kind = type == 0 ? .null : .number
      }
      guard body <= room, columns[number].contains(kind) else { return false }
      number &+= 1
    }
    guard place == headerEnd, body == room else { return false }
    while number < columns.count {
      guard columns[number].contains(.missing) else { return false }
      number &+= 1
    }
    return true
  }

  /// Where the serial types of a record begin and end, the latter where its body begins, and where that
  /// ends; nil where they do not lie in the record.
  @inlinable @inline(__always)
  static func parts(
    of record: UnsafeRawBufferPointer
  ) -> (types: UnsafeRawPointer, body: UnsafeRawPointer, end: UnsafeRawPointer)? {
    guard let start = record.baseAddress else { return nil }
    let end = start + record.count
    var place = start
    guard
      let header = Varint.read(&place, end: end),
      header <= UInt64(truncatingIfNeeded: record.count),
      header >= UInt64(truncatingIfNeeded: place - start)
    else { return nil }
    return (place, start + Int(truncatingIfNeeded: header), end)
  }

  /// Bytes of a record up to the end of its first `count` values; nil where its beginning does not tell.
  static func size(ofFirst count: Int, beginning: UnsafeRawBufferPointer) -> Int? {
    guard let (types, headerEnd, end) = parts(of: beginning) else { return nil }
    var (place, number) = (types, 0)
    var size = UInt64(truncatingIfNeeded: beginning.count - (end - headerEnd))
    while number < count, place < headerEnd {
      guard let type = Varint.read(&place, end: headerEnd) else { return nil }
      // No sum of it passes 64 bits, whatever the types say.
      size = min(
        1 << 40,
        size &+ (type < 12 ? UInt64(truncatingIfNeeded: fixedSize(of: type)) : (type &- 12) &>> 1))
      number &+= 1
    }
    return Int(truncatingIfNeeded: size)
  }

  /// Gives the first `count` values of a record with their numbers, NULL for those that it does not
  /// have.
  @inlinable @inline(__always)
  static func forEachValue(
    of record: UnsafeRawBufferPointer, count: Int, _ body: (Int, RawValue) -> Void
  ) -> Bool {
    guard let (types, headerEnd, end) = parts(of: record) else { return false }
    var typePlace = types
    var bodyPlace = headerEnd
    var index = 0
    while index < count, typePlace < headerEnd {
      guard let type = Varint.read(&typePlace, end: headerEnd),
        let value = read(type, at: bodyPlace, end: end)
      else { return false }
      body(index, value)
      bodyPlace += size(of: type)
      index &+= 1
    }
    while index < count {
      body(index, .null)
      index &+= 1
    }
    return true
  }

  @inlinable @inline(__always)
  static func read(
    _ type: UInt64, at place: UnsafeRawPointer, end: UnsafeRawPointer
  ) -> RawValue? {
    let room = end - place
    if type >= 12 {
      let size = (type &- 12) &>> 1
      guard size <= UInt64(truncatingIfNeeded: room) else { return nil }
      let count = Int(truncatingIfNeeded: size)
      return RawValue(kind: type & 1 == 0 ? .blob : .text, bits: 0, bytes: place, count: count)
    }
    guard fixedSize(of: type) <= room else { return nil }
    switch type {
    case 0: return .null
    case 1: return .integer(Int64(place.load(as: Int8.self)))
    case 2: return .integer(Int64(Int16(bigEndian: place.loadUnaligned(as: Int16.self))))
    case 3:
      let high = Int64(place.load(as: Int8.self))
      let low = UInt16(bigEndian: (place + 1).loadUnaligned(as: UInt16.self))
      return .integer(high &<< 16 | Int64(low))
    case 4: return .integer(Int64(Int32(bigEndian: place.loadUnaligned(as: Int32.self))))
    case 5:
      let high = Int64(Int16(bigEndian: place.loadUnaligned(as: Int16.self)))
      let low = UInt32(bigEndian: (place + 2).loadUnaligned(as: UInt32.self))
      return .integer(high &<< 32 | Int64(low))
    case 6: return .integer(Int64(bigEndian: place.loadUnaligned(as: Int64.self)))
    case 7:
      let bits = UInt64(bigEndian: place.loadUnaligned(as: UInt64.self))
      let real = Double(bitPattern: bits)
      return real.isNaN ? .null : .real(real)  // as SQLite reads it
    case 8: return .integer(0)
    case 9: return .integer(1)
    default: return nil
    }
  }
}
