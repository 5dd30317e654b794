import GodwitSQLite
import Testing

/// Rows of a patient that go on in overflow pages.
extension Patient {
  var pageSize: Int {
    let stated = Int(bytes[16]) << 8 | Int(bytes[17])
    return stated == 1 ? 65_536 : stated
  }

  /// Writes the store anew, with or without pointer maps.
  func vacuum(mapped: Bool, pageSize: Int = 4096, _ change: String = "") throws {
    try sql(
      """
      PRAGMA journal_mode = DELETE;
      \(change);
      PRAGMA page_size = \(pageSize);
      PRAGMA auto_vacuum = \(mapped ? 2 : 0);
      VACUUM
      """)
  }

  /// Where the number of a row's first overflow page stands, by the row's key.
  func chains(of table: String) throws -> [Int64: Int] {
    let (bytes, size) = (bytes, pageSize)
    func number(_ offset: Int, _ count: Int) -> Int {
      bytes[offset..<offset + count].reduce(0) { $0 << 8 | Int($1) }
    }
    func varint(_ offset: inout Int) -> Int {
      var value = 0
      repeat {
        value = value << 7 | Int(bytes[offset] & 0x7F)
        offset += 1
      } while bytes[offset - 1] & 0x80 != 0
      return value
    }
    var found: [Int64: Int] = [:]
    var waiting = [try root(of: table)]
    while let page = waiting.popLast() {
      let start = (page - 1) * size
      if bytes[start] == 0x05 {
        waiting.append(number(start + 8, 4))
        waiting += (0..<number(start + 3, 2)).map {
          number(start + number(start + 12 + 2 * $0, 2), 4)
        }
        continue
      }
      for cell in 0..<number(start + 3, 2) {
        var place = start + number(start + 8 + 2 * cell, 2)
        let count = varint(&place)
        let key = varint(&place)
        guard count > size - 35 else { continue }
        let least = (size - 12) * 32 / 255 - 23
        let local = least + (count - least) % (size - 4)
        found[Int64(key)] = place + (local <= size - 35 ? local : least)
      }
    }
    return found
  }

  func number(at place: Int) -> Int {
    bytes[place..<place + 4].reduce(0) { $0 << 8 | Int($1) }
  }

  func put(number: Int, at place: Int) {
    bytes.replaceSubrange(
      place..<place + 4, with: [24, 16, 8, 0].map { UInt8(number >> $0 & 0xFF) })
  }
}
