/// One SQLite value without ownership: what the hot path passes around instead of ``SQLiteValue``.
///
/// A trivial type. `bytes` points into somebody else's memory — SQLite's, a record's, a buffer's —
/// and is valid exactly as long as that memory is.
@frozen public struct RawValue: BitwiseCopyable {
  /// The storage class. Raw values are SQLite's own `SQLITE_INTEGER` … `SQLITE_NULL`.
  ///
  /// Source: https://sqlite.org/c3ref/c_blob.html
  @frozen public enum Kind: UInt8, BitwiseCopyable, Sendable {
    case integer = 1
    case real = 2
    case text = 3
    case blob = 4
    case null = 5
  }

  public var kind: Kind
  /// The integer, or the bit pattern of the real; 0 for the other kinds.
  public var bits: Int64
  /// The bytes of a text (UTF-8, no terminator) or blob. May be `nil` when `count` is 0.
  public var bytes: UnsafeRawPointer?
  /// How many bytes; 0 for the other kinds.
  public var count: Int

  @inlinable @inline(__always)
  public init(kind: Kind, bits: Int64, bytes: UnsafeRawPointer?, count: Int) {
    self.kind = kind
    self.bits = bits
    self.bytes = bytes
    self.count = count
  }
}

extension RawValue {
  @inlinable @inline(__always)
  public static var null: RawValue { RawValue(kind: .null, bits: 0, bytes: nil, count: 0) }

  @inlinable @inline(__always)
  public static func integer(_ value: Int64) -> RawValue {
    RawValue(kind: .integer, bits: value, bytes: nil, count: 0)
  }

  @inlinable @inline(__always)
  public static func real(_ value: Double) -> RawValue {
    RawValue(kind: .real, bits: Int64(bitPattern: value.bitPattern), bytes: nil, count: 0)
  }

  @inlinable @inline(__always)
  public static func text(_ bytes: UnsafeRawPointer?, count: Int) -> RawValue {
    RawValue(kind: .text, bits: 0, bytes: bytes, count: count)
  }

  @inlinable @inline(__always)
  public static func blob(_ bytes: UnsafeRawPointer?, count: Int) -> RawValue {
    RawValue(kind: .blob, bits: 0, bytes: bytes, count: count)
  }

  /// The number of a value of kind `real`.
  @inlinable @inline(__always)
  public var real: Double { Double(bitPattern: UInt64(bitPattern: bits)) }

  @inlinable @inline(__always)
  public var isNull: Bool { kind == .null }

  /// The bytes of a text or blob; empty for the other kinds.
  @inlinable @inline(__always)
  public var buffer: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: bytes, count: bytes == nil ? 0 : count)
  }
}
