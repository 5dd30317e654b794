/// SQLite's variable-length integers.
///
/// 1 to 9 bytes, big-endian. The first eight bytes carry seven bits each, with the high bit set
/// when another byte follows; a ninth byte carries eight bits.
///
/// Source: https://sqlite.org/fileformat2.html §1.6.
public enum Varint {
  /// How many bytes the integer takes: 1…9.
  @inlinable @inline(__always)
  public static func size(of value: UInt64) -> Int {
    if value < 0x80 { return 1 }
    let bits = 64 &- value.leadingZeroBitCount
    return bits > 56 ? 9 : (bits &+ 6) / 7
  }

  /// Writes the integer, for which there must be room, and gives the number of bytes written.
  @inlinable @inline(__always)
  public static func write(_ value: UInt64, to place: UnsafeMutableRawPointer) -> Int {
    if value < 0x80 {
      place.storeBytes(of: UInt8(truncatingIfNeeded: value), as: UInt8.self)
      return 1
    }
    if value < 0x4000 {
      place.storeBytes(of: UInt8(truncatingIfNeeded: value &>> 7) | 0x80, as: UInt8.self)
      place.storeBytes(
        of: UInt8(truncatingIfNeeded: value) & 0x7F, toByteOffset: 1, as: UInt8.self)
      return 2
    }
    return writeLong(value, to: place)
  }

  @usableFromInline
  static func writeLong(_ value: UInt64, to place: UnsafeMutableRawPointer) -> Int {
    let size = size(of: value)
    var rest = value
    var last = size - 1
    if size == 9 {
      place.storeBytes(of: UInt8(truncatingIfNeeded: rest), toByteOffset: 8, as: UInt8.self)
      rest &>>= 8
      last = 7
    }
    for offset in stride(from: last, through: 0, by: -1) {
      let more: UInt8 = offset == size - 1 ? 0 : 0x80
      place.storeBytes(
        of: UInt8(truncatingIfNeeded: rest) & 0x7F | more, toByteOffset: offset, as: UInt8.self)
      rest &>>= 7
    }
    return size
  }

  /// Reads an integer that lies whole in front of `end`, and moves `place` behind it.
  ///
  /// - Returns: `nil` when the bytes end first; `place` is then of no use.
  @inlinable @inline(__always)
  public static func read(
    _ place: inout UnsafeRawPointer, end: UnsafeRawPointer
  ) -> UInt64? {
    guard place < end else { return nil }
    let first = place.load(as: UInt8.self)
    if first < 0x80 {
      place += 1
      return UInt64(first)
    }
    return readLong(&place, end: end)
  }

  /// Reads an integer as ``read(_:end:)`` does; `nil`, too, for one in more bytes than it takes.
  @inlinable @inline(__always)
  static func readShortest(
    _ place: inout UnsafeRawPointer, end: UnsafeRawPointer
  ) -> UInt64? {
    let start = place
    guard let value = read(&place, end: end), place - start == size(of: value) else { return nil }
    return value
  }

  @usableFromInline
  static func readLong(_ place: inout UnsafeRawPointer, end: UnsafeRawPointer) -> UInt64? {
    var value: UInt64 = 0
    for index in 0..<9 {
      guard place < end else { return nil }
      let byte = place.load(as: UInt8.self)
      place += 1
      if index == 8 { return value &<< 8 | UInt64(byte) }
      value = value &<< 7 | UInt64(byte & 0x7F)
      if byte < 0x80 { return value }
    }
    return nil
  }
}
