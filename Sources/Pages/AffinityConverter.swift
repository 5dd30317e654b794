import GodwitSQLite

/// Gives values the form in which SQLite would store them in their columns.
///
/// Texts that may be numbers, and numbers that become texts, are rare, and how SQLite writes and
/// reads digits is its own affair: it is asked.
package final class AffinityConverter {
  /// Real columns keep whole numbers as integers up to this size, in 6 bytes.
  ///
  /// Source: https://sqlite.org/src/file/src/vdbe.c, `OP_MakeRecord`, `MEM_IntReal`.
  private static let compactReals: ClosedRange<Int64> = -140_737_488_355_328...140_737_488_355_327

  @exclusivity(unchecked) private var asker: (insert: Statement, select: Statement)?
  @exclusivity(unchecked) private var connection: Connection?
  /// Texts of the current row that nobody else keeps.
  @exclusivity(unchecked) private var kept: [UnsafeMutableRawBufferPointer] = []

  deinit { for text in kept { text.deallocate() } }
}

extension AffinityConverter {
  /// Forgets the texts that ``convert(_:_:)`` made for the row before.
  @inline(__always)
  func beginRow() { if !kept.isEmpty { forget() } }

  private func forget() {
    for text in kept { text.deallocate() }
    kept.removeAll()
  }

  @inline(__always)
  func convert(_ value: inout RawValue, _ affinity: ColumnAffinity) throws {
    switch (value.kind, affinity) {
    case (.null, _), (.blob, _), (.text, .text), (.integer, .numeric), (.integer, .integer): break
    case (.real, .numeric), (.real, .integer), (.real, .real):
      convertReal(&value, affinity)
    case (.real, .blob):
      if value.real.isNaN { value = .null }
    case (.integer, .real):
      if !AffinityConverter.compactReals.contains(value.bits) { value = .real(Double(value.bits)) }
    case (.integer, .blob), (.text, .blob): break
    case (.text, .numeric), (.text, .integer), (.text, .real):
      if mayBeNumber(value.buffer) { try ask(&value, affinity) }
    case (.integer, .text), (.real, .text): try ask(&value, affinity)
    }
  }

  private func convertReal(_ value: inout RawValue, _ affinity: ColumnAffinity) {
    let real = value.real
    if real.isNaN {
      value = .null
    } else if let integer = Int64(exactly: real), integer > .min, integer < .max {
      if affinity != .real || AffinityConverter.compactReals.contains(integer) {
        value = .integer(integer)
      }
    }
  }

  /// Numbers begin with a digit, a sign or a point, after spaces.
  private func mayBeNumber(_ text: UnsafeRawBufferPointer) -> Bool {
    for byte in text {
      switch byte {
      case 0x09...0x0D, 0x20: continue
      case 0x2B, 0x2D, 0x2E, 0x30...0x39: return true
      default: return false
      }
    }
    return false
  }

  private func ask(_ value: inout RawValue, _ affinity: ColumnAffinity) throws {
    if value.kind == .real, value.real.isNaN {
      value = .null
      return
    }
    let (insert, select) = try statements()
    let column: Int32 = [.text: 0, .numeric: 1, .integer: 2, .real: 3][affinity] ?? 0
    for place in 0..<Int32(4) { try insert.bind(place + 1, place == column ? value : .null) }
    try insert.run()
    defer { select.reset() }
    guard try select.step() else { return }
    var found = RawValue.null
    select.read(into: &found, from: column, count: 1)
    switch found.kind {
    case .text, .blob:
      let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: found.count, alignment: 1)
      copy.copyMemory(from: found.buffer)
      kept.append(copy)
      value = found
      value.bytes = UnsafeRawPointer(copy.baseAddress)
    case .real where affinity == .real:
      value = found
      convertReal(&value, .real)
    default: value = found
    }
  }

  private func statements() throws -> (insert: Statement, select: Statement) {
    if let asker { return asker }
    let connection = try Connection(path: ":memory:", mode: .create)
    try connection.execute(
      "CREATE TABLE one (k INTEGER PRIMARY KEY, t TEXT, n NUMERIC, i INTEGER, r REAL)")
    let made = (
      try connection.prepare("INSERT OR REPLACE INTO one VALUES (1, ?1, ?2, ?3, ?4)"),
      try connection.prepare("SELECT t, n, i, r FROM one")
    )
    self.connection = connection
    asker = made
    return made
  }
}
