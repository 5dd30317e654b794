/// A growable run of bytes that is emptied and filled again instead of made again.
///
/// Fresh large buffers cost page faults; this one keeps its memory until it goes away. Growing
/// moves the bytes, so pointers into it are valid only until the next append.
@frozen public struct RawBuffer: ~Copyable {
  @usableFromInline var start: UnsafeMutableRawPointer
  @usableFromInline var used: Int
  @usableFromInline var room: Int

  /// - Parameter capacity: Bytes to make room for at once.
  public init(capacity: Int = 4096) {
    room = max(capacity, 16)
    start = UnsafeMutableRawPointer.allocate(byteCount: room, alignment: 16)
    used = 0
  }

  deinit { start.deallocate() }
}

extension RawBuffer {
  /// Where the bytes start; 16-byte aligned.
  @inlinable @inline(__always)
  public var base: UnsafeMutableRawPointer { start }

  /// Bytes in use.
  @inlinable @inline(__always)
  public var count: Int { used }

  /// Bytes there is room for.
  @inlinable @inline(__always)
  public var capacity: Int { room }

  @inlinable @inline(__always)
  public var isEmpty: Bool { used == 0 }

  /// The bytes in use.
  @inlinable @inline(__always)
  public var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: used) }

  /// Makes room for `additional` bytes after those in use.
  @inlinable @inline(__always)
  public mutating func reserve(_ additional: Int) {
    if room &- used < additional { grow(by: additional) }
  }

  @inline(never)
  @usableFromInline mutating func grow(by additional: Int) {
    precondition(additional >= 0, "a buffer cannot grow by a negative number of bytes")
    let larger = max(room * 2, used + additional)
    let moved = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 16)
    moved.copyMemory(from: start, byteCount: used)
    start.deallocate()
    start = moved
    room = larger
  }

  /// Forgets the bytes and keeps the memory.
  @inlinable @inline(__always)
  public mutating func removeAll() { used = 0 }

  /// Appends `size` bytes that the caller writes at the returned place at once.
  @inlinable @inline(__always)
  public mutating func appendUninitialized(_ size: Int) -> UnsafeMutableRawPointer {
    reserve(size)
    let place = start + used
    used &+= size
    return place
  }

  @inlinable @inline(__always)
  public mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let start = bytes.baseAddress, bytes.count > 0 else { return }
    appendUninitialized(bytes.count).copyMemory(from: start, byteCount: bytes.count)
  }

  public mutating func append(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { append($0) }
  }

  @inlinable @inline(__always)
  public mutating func append(_ byte: UInt8) {
    appendUninitialized(1).storeBytes(of: byte, as: UInt8.self)
  }

  /// Appends an integer in the byte order it has in memory; pass `.littleEndian` or `.bigEndian`.
  @inlinable @inline(__always)
  public mutating func append<Number: FixedWidthInteger & BitwiseCopyable>(number: Number) {
    appendUninitialized(MemoryLayout<Number>.size).storeBytes(of: number, as: Number.self)
  }

  /// Appends an SQLite varint: 1 to 9 bytes, big-endian, seven bits a byte, eight in the ninth.
  ///
  /// Source: https://sqlite.org/fileformat2.html §1.6.
  @inlinable @inline(__always)
  public mutating func appendVarint(_ value: UInt64) {
    let place = appendUninitialized(Varint.size(of: value))
    _ = Varint.write(value, to: place)
  }
}
