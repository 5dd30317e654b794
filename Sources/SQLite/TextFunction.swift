private import CSQLite

extension Connection {
  private final class Function {
    let body: (_ context: OpaquePointer?, _ value: OpaquePointer) -> Void

    init(_ body: @escaping (OpaquePointer?, OpaquePointer) -> Void) { self.body = body }
  }

  /// Makes an SQL function of one argument that gives another text for a text, and NULL for
  /// everything else.
  public func registerTextFunction(
    _ name: String, _ body: @escaping (String) -> String
  ) throws {
    try register(name) { context, value in
      guard sqlite3_value_type(value) == SQLITE_TEXT else { return sqlite3_result_null(context) }
      let bytes = UnsafeRawBufferPointer(
        start: sqlite3_value_text(value), count: Int(sqlite3_value_bytes(value)))
      var result = body(String(decoding: bytes, as: UTF8.self))
      result.withUTF8 { text in
        text.withMemoryRebound(to: CChar.self) {
          sqlite3_result_text64(
            context, $0.baseAddress, UInt64($0.count), transient, UInt8(SQLITE_UTF8))
        }
      }
    }
  }

  /// Makes an SQL function of one argument that gives other bytes for bytes; everything else stays as it is.
  public func registerBytesFunction(
    _ name: String, _ body: @escaping (UnsafeRawBufferPointer) -> [UInt8]
  ) throws {
    try register(name) { context, value in
      guard sqlite3_value_type(value) == SQLITE_BLOB else {
        return sqlite3_result_value(context, value)
      }
      let bytes = UnsafeRawBufferPointer(
        start: sqlite3_value_blob(value), count: Int(sqlite3_value_bytes(value)))
      body(bytes).withUnsafeBytes {
        sqlite3_result_blob64(context, $0.baseAddress, UInt64($0.count), transient)
      }
    }
  }

  private func register(
    _ name: String, _ body: @escaping (OpaquePointer?, OpaquePointer) -> Void
  ) throws {
    let function = Unmanaged.passRetained(Function(body)).toOpaque()
    // SQLite releases it, also where it fails.
    let code = sqlite3_create_function_v2(
      try openHandle(name), name, 1,
      SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, function,
      { context, _, values in
        guard let value = values?[0], let function = sqlite3_user_data(context) else {
          return sqlite3_result_null(context)
        }
        Unmanaged<Function>.fromOpaque(function).takeUnretainedValue().body(context, value)
      }, nil, nil,
      { function in
        guard let function else { return }
        Unmanaged<Function>.fromOpaque(function).release()
      })
    guard code == SQLITE_OK else { throw failure(code, in: "function \(name)") }
  }
}
