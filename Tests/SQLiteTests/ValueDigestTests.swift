import GodwitDigests
import GodwitSQLite
import Testing

@Suite struct `The digest of a row` {
  private static let reals: [Double] = [
    0, -0.0, 1, -1, 0.5, .nan, -.nan, .infinity, -.infinity, .leastNonzeroMagnitude,
    -.leastNonzeroMagnitude, -1e-60, .greatestFiniteMagnitude, 9_007_199_254_740_992,
    9_007_199_254_740_994, -9_223_372_036_854_775_808, 9_223_372_036_854_775_808,
    140_737_488_355_328,
  ]

  /// Written as it is computed, read as SQLite keeps it.
  @Test(arguments: reals, ["FLOAT", "TIMESTAMP", "DECIMAL", "INTEGER", "BLOB"])
  func `is that of what SQLite gives back`(real: Double, type: String) throws {
    let store = try Connection(path: ":memory:", mode: .create)
    try store.execute("CREATE TABLE t (f \(type))")
    let insert = try store.prepare("INSERT INTO t VALUES (?1)")
    try insert.bind(1, SQLiteValue.real(real))
    try insert.run()
    let found: RawValue =
      switch try store.rows("SELECT f FROM t").first?.first {
      case .real(let kept)?: .real(kept)
      case .integer(let kept)?: .integer(kept)
      default: .null
      }
    #expect(Self.digest(.real(real)) == Self.digest(found))
  }

  @Test func `tells other values apart`() {
    let all = Self.reals.filter { !$0.isNaN && $0.sign == .plus }.map { Self.digest(.real($0)) }
    for (place, digest) in all.enumerated() {
      #expect(all.firstIndex(of: digest) == place)
    }
  }

  private static func digest(_ value: RawValue) -> RowSetDigest {
    var digest = RowSetDigest()
    withUnsafePointer(to: value) { digest.add($0, count: 1) }
    return digest
  }
}
