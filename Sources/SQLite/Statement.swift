// Public, since the functions of the hot path are inlined into other modules.
public import CSQLite

/// One prepared statement, finalized when the value goes away.
///
/// Keeps its connection open. Parameters are numbered from 1 and columns from 0, as SQLite does.
public final class Statement {
  /// Columns of a row; 0 for a statement that gives none.
  public let columnCount: Int
  /// The text as SQLite prepared it.
  public let sql: String
  @usableFromInline let handle: OpaquePointer
  private let connection: Connection
  /// A text or blob could not be had for lack of memory, so the row read last is not whole.
  @usableFromInline var isShortOfMemory = false

  init(_ handle: OpaquePointer, of connection: Connection) {
    self.handle = handle
    self.connection = connection
    columnCount = Int(sqlite3_column_count(handle))
    sql = sqlite3_sql(handle).map { String(cString: $0) } ?? ""
  }

  deinit { sqlite3_finalize(handle) }
}

extension Statement {
  public func bind(_ index: Int32, _ value: SQLiteValue) throws {
    switch value {
    case .null: try check(sqlite3_bind_null(handle, index))
    case .integer(let integer): try bind(index, integer)
    case .real(let number): try check(sqlite3_bind_double(handle, index, number))
    case .text(var text):
      try check(
        text.withUTF8 { bytes in
          let start = bytes.baseAddress.map { UnsafeRawPointer($0) } ?? emptyBytes
          return sqlite3_bind_text64(
            handle, index, start.assumingMemoryBound(to: CChar.self), UInt64(bytes.count),
            transient, UInt8(SQLITE_UTF8))
        })
    case .blob(let blob):
      try check(
        blob.withUnsafeBytes { bytes in
          sqlite3_bind_blob64(
            handle, index, bytes.baseAddress ?? emptyBytes, UInt64(bytes.count),
            transient)
        })
    }
  }

  @inlinable @inline(__always)
  public func bind(_ index: Int32, _ value: Int64) throws {
    let code = sqlite3_bind_int64(handle, index, value)
    if code != SQLITE_OK { throw failure(code) }
  }

  /// Binds without a copy: the bytes of a text or blob must stay where they are until the next
  /// ``reset()`` or bind of the same parameter.
  ///
  /// Text must be valid UTF-8, or SQLite keeps it as it is.
  @inlinable
  public func bind(_ index: Int32, _ value: borrowing RawValue) throws {
    let code: Int32
    switch value.kind {
    case .integer: code = sqlite3_bind_int64(handle, index, value.bits)
    case .real: code = sqlite3_bind_double(handle, index, value.real)
    case .null: code = sqlite3_bind_null(handle, index)
    case .text:
      // A nil pointer would bind NULL, so empty values get a place of their own.
      let start = value.bytes ?? emptyBytes
      code = sqlite3_bind_text64(
        handle, index, start.assumingMemoryBound(to: CChar.self), UInt64(value.count), nil,
        UInt8(SQLITE_UTF8))
    case .blob:
      code = sqlite3_bind_blob64(
        handle, index, value.bytes ?? emptyBytes, UInt64(value.count), nil)
    }
    if code != SQLITE_OK { throw failure(code) }
  }

  /// Makes every parameter NULL.
  public func clearBindings() { sqlite3_clear_bindings(handle) }
}

extension Statement {
  /// Runs the statement up to its next row.
  ///
  /// A statement that failed is reset.
  ///
  /// - Returns: `true` when a row is there, `false` when there are no more.
  @inlinable
  @discardableResult
  public func step() throws -> Bool {
    let code = sqlite3_step(handle)
    if code == SQLITE_ROW, !isShortOfMemory { return true }
    if code == SQLITE_DONE, !isShortOfMemory { return false }
    throw stepFailure(code)
  }

  /// Makes the statement ready to run again. Bound values stay.
  @inlinable
  public func reset() {
    // The code repeats the error that step() has thrown already.
    _ = sqlite3_reset(handle)
  }

  /// Runs a statement that gives no rows, and makes it ready to run again.
  @inlinable
  public func run() throws {
    try step()
    reset()
  }
}

extension Statement {
  /// A copy of a column of the current row.
  public func value(_ column: Int32) -> SQLiteValue {
    withUnsafeTemporaryAllocation(of: RawValue.self, capacity: 1) { place in
      guard let start = place.baseAddress else { return .null }
      start.initialize(to: .null)
      read(into: start, from: column, count: 1)
      return SQLiteValue(start.pointee)
    }
  }

  /// A column of the current row as an integer; 0 for NULL.
  @inlinable @inline(__always)
  public func int64(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }

  /// Reads `count` columns of the current row, from column `first` on.
  ///
  /// Texts and blobs point into SQLite's memory, and are valid until the next ``step()`` or
  /// ``reset()``. Lack of memory while reading is told by the next ``step()``.
  @inlinable
  public func read(into values: UnsafeMutablePointer<RawValue>, from first: Int32, count: Int32) {
    var place = values
    var column = first
    let end = first &+ count
    while column < end {
      switch sqlite3_column_type(handle, column) {
      case SQLITE_INTEGER:
        place.pointee = .integer(sqlite3_column_int64(handle, column))
      case SQLITE_TEXT:
        // The bytes are asked for after the text, or a conversion could move them.
        // Text always has a terminator, so `nil` means that it could not be converted.
        let bytes = sqlite3_column_text(handle, column)
        if bytes == nil { isShortOfMemory = true }
        let size = Int(sqlite3_column_bytes(handle, column))
        place.pointee = .text(UnsafeRawPointer(bytes), count: size)
      case SQLITE_BLOB:
        let bytes = sqlite3_column_blob(handle, column)
        if bytes == nil { noteMissingBlob() }
        place.pointee = .blob(bytes, count: Int(sqlite3_column_bytes(handle, column)))
      case SQLITE_FLOAT:
        place.pointee = .real(sqlite3_column_double(handle, column))
      default:
        place.pointee = .null
      }
      place += 1
      column &+= 1
    }
  }

  /// An empty blob is `nil` too.
  @inline(never)
  @usableFromInline func noteMissingBlob() {
    if sqlite3_errcode(sqlite3_db_handle(handle)) & 0xFF == SQLITE_NOMEM {
      isShortOfMemory = true
    }
  }
}

extension Statement {
  private func check(_ code: Int32) throws {
    if code != SQLITE_OK { throw failure(code) }
  }

  @inline(never)
  @usableFromInline func failure(_ code: Int32) -> SQLiteError {
    Connection.failure(
      code, sqlite3_db_handle(handle), sql, database: connection.path, mode: connection.mode)
  }

  @inline(never)
  @usableFromInline func stepFailure(_ code: Int32) -> SQLiteError {
    let error =
      isShortOfMemory
      ? SQLiteError.failed(
        code: SQLITE_NOMEM, message: "out of memory", statement: sql, database: connection.path)
      : failure(code)
    isShortOfMemory = false
    reset()
    return error
  }
}

/// A place to point at for values of no bytes. Never written, never freed.
@usableFromInline nonisolated(unsafe) let emptyBytes = UnsafeRawPointer(
  UnsafeMutableRawPointer.allocate(byteCount: 1, alignment: 1))

/// Tells SQLite to copy what is bound.
let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
