import GodwitSQLite

/// Gives rows the form in which they lie in the destination's file.
package final class RowFinisher {
  private let table: String
  private let converter = AffinityConverter()
  @exclusivity(unchecked) private var record = RawBuffer(capacity: 1 << 16)
  private let fields: UnsafeMutablePointer<RawValue>
  /// As ``CoveredTable/recordPlaces``, with −1 for the row's key. Arrays cost a reference count and
  /// a check each time, and this is done for each value.
  private let places: UnsafeMutablePointer<Int>
  private let affinities: UnsafeMutablePointer<ColumnAffinity>
  private let columnCount: Int
  private let rowCount: Int

  /// SQLite's own bound on a record.
  ///
  /// Source: https://sqlite.org/limits.html §1.
  private static let largestRecord = 1_000_000_000

  package init(_ table: CoveredTable) {
    self.table = table.name
    columnCount = table.recordPlaces.count
    fields = .allocate(capacity: columnCount)
    fields.initialize(repeating: .null, count: columnCount)
    places = .allocate(capacity: columnCount)
    for (number, place) in table.recordPlaces.enumerated() { places[number] = place ?? -1 }
    rowCount = table.affinities.count
    affinities = .allocate(capacity: rowCount)
    for (place, affinity) in table.affinities.enumerated() {
      (affinities + place).initialize(to: affinity)
    }
  }

  deinit {
    fields.deallocate()
    places.deallocate()
    affinities.deallocate()
  }
}

extension RowFinisher {
  /// The record of a row, valid until the next call.
  ///
  /// - Parameter row: The row's key, and the other columns as the table has them. Values get the
  ///   form that SQLite would give them.
  package func record(of row: UnsafeMutablePointer<RawValue>) throws -> UnsafeRawBufferPointer {
    converter.beginRow()
    for place in 1..<rowCount { try converter.convert(&row[place], affinities[place]) }
    for number in 0..<columnCount {
      let place = places[number]
      fields[number] = place < 0 ? .null : row[place]
    }
    record.removeAll()
    let size = RecordFormat.encode(fields, count: columnCount, into: &record)
    guard size <= Self.largestRecord else {
      throw SQLiteError.failed(
        code: 18, message: "string or blob too big", statement: "a row of \(table)",
        database: "")
    }
    return record.bytes
  }
}
