private import CSQLite

extension Connection {
  /// Calls `visit` with each row of a query, in the order in which SQLite reads them.
  ///
  /// The columns are the arguments of an aggregate function, so a row does not leave the statement's
  /// loop: that costs a little more than half of stepping and reading columns. `visit` may use this
  /// connection, and visit other rows.
  ///
  /// - Parameters:
  ///   - columns: SQL expressions.
  ///   - source: What follows them: `FROM …`. An `ORDER BY` there has no effect.
  ///   - arguments: Values of the parameters in `source`.
  ///   - visit: Texts and blobs of the row are valid until it returns. What it throws ends the query.
  public func visitRows(
    _ columns: [String], _ source: String, _ arguments: [SQLiteValue] = [],
    _ visit: (UnsafeMutablePointer<RawValue>) throws -> Void
  ) throws {
    let row = UnsafeMutablePointer<RawValue>.allocate(capacity: max(columns.count, 1))
    row.initialize(repeating: .null, count: max(columns.count, 1))
    defer { row.deallocate() }
    let list = columns.joined(separator: ", ")
    // An SQL function takes 127 arguments at most, unless SQLite was built otherwise.
    guard columns.count <= 100 else {
      let statement = try prepare("SELECT \(list) \(source)", arguments)
      while try statement.step() {
        statement.read(into: row, from: 0, count: Int32(columns.count))
        try visit(row)
      }
      return
    }
    let (current, isUTF8) = (try currentVisit(), try isUTF8())
    let statement = try prepare("SELECT \(visitFunction)(\(list)) \(source)", arguments)
    try withoutActuallyEscaping(visit) { visit in
      let outer = current.pointee
      let mine = UnsafeMutablePointer<RowVisit>.allocate(capacity: 1)
      mine.initialize(to: RowVisit(row: row, visit: visit, isUTF8: isUTF8))
      current.pointee = mine
      defer {
        current.pointee = outer
        mine.deinitialize(count: 1)
        mine.deallocate()
      }
      do {
        try statement.step()
      } catch {
        throw mine.pointee.failure ?? error
      }
    }
  }

  /// Whether the bytes of texts are those that ``RawValue`` has.
  private func isUTF8() throws -> Bool {
    if let textsAreUTF8 { return textsAreUTF8 }
    let isUTF8 = try rows("PRAGMA encoding").first?.first?.text == "UTF-8"
    textsAreUTF8 = isUTF8
    return isUTF8
  }

  /// Where the aggregate function finds the visit that is going on. Made, and the function with it,
  /// for the first visit; the function owns it.
  private func currentVisit() throws -> UnsafeMutablePointer<UnsafeMutablePointer<RowVisit>?> {
    if let visits { return visits.assumingMemoryBound(to: UnsafeMutablePointer<RowVisit>?.self) }
    let current = UnsafeMutablePointer<UnsafeMutablePointer<RowVisit>?>.allocate(capacity: 1)
    current.initialize(to: nil)
    // SQLite calls the destructor when it cannot make the function, too.
    let code = sqlite3_create_function_v2(
      try openHandle(visitFunction), visitFunction, -1, SQLITE_UTF8 | SQLITE_DIRECTONLY,
      UnsafeMutableRawPointer(current), nil,
      { context, count, values in
        guard let context, let values,
          let visit = sqlite3_user_data(context)?
            .assumingMemoryBound(to: UnsafeMutablePointer<RowVisit>?.self).pointee
        else { return }
        take(values, count, for: visit, context)
      },
      { context in sqlite3_result_null(context) }, { $0?.deallocate() })
    guard code == SQLITE_OK else { throw failure(code, in: "function \(visitFunction)") }
    visits = UnsafeMutableRawPointer(current)
    return current
  }
}

private let visitFunction = "godwit_visit"

private struct RowVisit {
  let row: UnsafeMutablePointer<RawValue>
  let visit: (UnsafeMutablePointer<RawValue>) throws -> Void
  /// The database's texts are in UTF-8.
  let isUTF8: Bool
  var failure: (any Error)?
}

private func take(
  _ values: UnsafeMutablePointer<OpaquePointer?>, _ count: Int32,
  for visit: UnsafeMutablePointer<RowVisit>, _ context: OpaquePointer
) {
  let (row, isUTF8) = (visit.pointee.row, visit.pointee.isUTF8)
  var isWhole = true
  for place in 0..<Int(count) {
    let value = values[place]
    switch sqlite3_value_type(value) {
    case SQLITE_INTEGER: row[place] = .integer(sqlite3_value_int64(value))
    case SQLITE_FLOAT: row[place] = .real(sqlite3_value_double(value))
    case SQLITE_TEXT where isUTF8:
      // As a text it would be copied, to get a terminator.
      let bytes = sqlite3_value_blob(value)
      let size = Int(sqlite3_value_bytes(value))
      if bytes == nil, size > 0 { isWhole = false }
      row[place] = .text(bytes, count: size)
    case SQLITE_TEXT:
      // Text always has a terminator, so nil means that there was no memory for it.
      let bytes = sqlite3_value_text(value)
      if bytes == nil { isWhole = false }
      row[place] = .text(UnsafeRawPointer(bytes), count: Int(sqlite3_value_bytes(value)))
    case SQLITE_BLOB:
      let size = Int(sqlite3_value_bytes(value))
      let bytes = sqlite3_value_blob(value)
      if bytes == nil, size > 0 { isWhole = false }
      row[place] = .blob(bytes, count: size)
    default: row[place] = .null
    }
  }
  guard isWhole else { return sqlite3_result_error_nomem(context) }
  do {
    try visit.pointee.visit(row)
  } catch {
    visit.pointee.failure = error
    sqlite3_result_error(context, "the visit of the rows was ended", -1)
  }
}
