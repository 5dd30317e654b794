private import CSQLite

extension Connection {
  private final class TextFunction {
    let body: (String) -> String

    init(_ body: @escaping (String) -> String) { self.body = body }
  }

  /// Makes an SQL function of one argument that gives another text for a text, and NULL for
  /// everything else.
  public func registerTextFunction(
    _ name: String, _ body: @escaping (String) -> String
  ) throws {
    let context = Unmanaged.passRetained(TextFunction(body)).toOpaque()
    // SQLite releases it, also where it fails.
    let code = sqlite3_create_function_v2(
      try openHandle(name), name, 1,
      SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, context,
      { context, _, values in
        guard let value = values?[0], sqlite3_value_type(value) == SQLITE_TEXT,
          let function = sqlite3_user_data(context)
        else { return sqlite3_result_null(context) }
        let bytes = UnsafeRawBufferPointer(
          start: sqlite3_value_text(value), count: Int(sqlite3_value_bytes(value)))
        var result = Unmanaged<TextFunction>.fromOpaque(function).takeUnretainedValue()
          .body(String(decoding: bytes, as: UTF8.self))
        result.withUTF8 { text in
          text.withMemoryRebound(to: CChar.self) {
            sqlite3_result_text64(
              context, $0.baseAddress, UInt64($0.count),
              transient, UInt8(SQLITE_UTF8))
          }
        }
      }, nil, nil,
      { context in
        guard let context else { return }
        Unmanaged<TextFunction>.fromOpaque(context).release()
      })
    guard code == SQLITE_OK else { throw failure(code, in: "function \(name)") }
  }
}
