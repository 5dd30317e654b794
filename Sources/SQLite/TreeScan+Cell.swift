// What a scan gives.
extension TreeScan {
  /// The page is for SQLite to read.
  public struct NotUnderstood: Error {
    public init() {}
  }

  public enum Kind: Sendable { case table, index }

  /// A row, with its key, or an entry of an index.
  public struct Cell: BitwiseCopyable {
    /// 0 for an entry of an index.
    public var key: Int64
    @usableFromInline var start: UnsafeRawPointer
    @usableFromInline var count: Int

    /// Valid until the next leaf.
    @inlinable @inline(__always)
    public var record: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }
  }
}
