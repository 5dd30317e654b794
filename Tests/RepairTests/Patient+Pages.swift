import Testing

/// Pages of a patient, and what stands in their place.
extension Patient {
  func root(of table: String) throws -> Int {
    let rows = try read("SELECT rootpage FROM sqlite_master WHERE name = '\(table)'")
    return Int(try #require(rows.first?[0].integer))
  }

  /// The children of a table's root page, without the last one.
  func leaves(of table: String) throws -> [Int] {
    let (bytes, root) = (bytes, try root(of: table))
    let start = (root - 1) * 4096
    guard bytes[start] == 0x05 else { return [] }
    func number(_ offset: Int, _ count: Int) -> Int {
      bytes[offset..<offset + count].reduce(0) { $0 << 8 | Int($1) }
    }
    return (0..<number(start + 3, 2)).map { cell in
      number(start + number(start + 12 + 2 * cell, 2), 4)
    }
  }

  /// The last child of a table's root page; nil where the root has none.
  func lastLeaf(of table: String) throws -> Int? {
    let (bytes, root) = (bytes, try root(of: table))
    let start = (root - 1) * 4096
    guard bytes[start] == 0x05 else { return nil }
    return bytes[start + 8..<start + 12].reduce(0) { $0 << 8 | Int($1) }
  }

  static func page(_ number: Int, of bytes: [UInt8]) -> [UInt8] {
    Array(bytes[(number - 1) * 4096..<number * 4096])
  }

  func put(_ page: [UInt8], at number: Int) {
    bytes.replaceSubrange((number - 1) * 4096..<number * 4096, with: page)
  }

  func exchange(_ a: Int, _ b: Int) {
    let whole = bytes
    put(Self.page(a, of: whole), at: b)
    put(Self.page(b, of: whole), at: a)
  }
}
