import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite
import Testing

@Suite struct `A numeric conversion` {
  @Test(
    arguments: [
      // From an integer: widening is exact, narrowing ends at the type's limits.
      (.integer(32_767), .integer16, .integer(32_767)),
      (.integer(32_768), .integer16, .integer(32_767)),
      (.integer(-32_769), .integer16, .integer(-32_768)),
      (.integer(.max), .integer32, .integer(2_147_483_647)),
      (.integer(.min), .integer32, .integer(-2_147_483_648)),
      (.integer(.min), .integer64, .integer(.min)),
      (.integer(7), .double, .real(7)),
      (.integer(16_777_217), .float, .real(16_777_216)),  // a Float has 24 bits
      (.integer(7), .decimal, .integer(7)),
      (.integer(.min), .decimal, .real(-0x1p63)),  // as from a real
      (.integer(.min + 1), .decimal, .integer(.min + 1)),
      (.integer(-3), .boolean, .integer(1)),
      (.integer(0), .boolean, .integer(0)),
      // From a real: toward zero, then as above.
      (.real(2.9), .integer16, .integer(2)),
      (.real(-2.9), .integer16, .integer(-2)),
      (.real(1e300), .integer64, .integer(.max)),
      (.real(-1e300), .integer32, .integer(-2_147_483_648)),
      (.real(.infinity), .integer16, .integer(32_767)),
      (.real(0.1), .float, .real(Double(Float(0.1)))),
      (.real(2), .decimal, .integer(2)),  // numeric affinity
      (.real(2.5), .decimal, .real(2.5)),
      (.real(-0x1p63), .decimal, .real(-0x1p63)),  // which SQLite leaves a real
      (.real((-0x1p63).nextUp), .decimal, .integer(.min + 1024)),
      (.real(0x1p63), .decimal, .real(0x1p63)),
      (.real(0.5), .boolean, .integer(1)),
    ] as [(SQLiteValue, AttributeType, SQLiteValue)])
  func `gives a value of the new type`(
    value: SQLiteValue, type: AttributeType, expected: SQLiteValue
  ) {
    let raw: RawValue =
      switch value {
      case .integer(let integer): .integer(integer)
      case .real(let real): .real(real)
      default: .null
      }
    #expect(
      SQLiteValue(NumericConversion.convert(raw, to: Int32(type.rawValue))) == expected)
  }
}
