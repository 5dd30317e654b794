import Foundation
import GodwitDigests
import Testing

@Suite struct `A digest of rows` {
  // Computed from the description of the hash by a program in another language.
  static let known: [(row: [UInt8], digest: String)] = [
    ([], "0fee273e3fe991200c8ce6ceab799c02"),
    (Array("a".utf8), "1230c1ff5e99502fd130ed04f4a17b77"),
    (Array("godwit".utf8), "57f6c2527d5d082a08ffbaa2acc14055"),
    (Array(0..<16), "fdbfdcd01c20a43c790227503ef8d56f"),  // one whole block
    (Array(0..<17), "d460ec16f38cdfa07ac4354df95c1798"),  // and a byte
    ((0..<1000).map { UInt8($0 % 251) }, "99853fd5fd4ae4894f86d62705d3c5da"),
  ]

  @Test(arguments: known) func `is as described`(row: [UInt8], digest: String) {
    #expect(self.digest([row]).hexText == digest)
  }

  @Test func `adds up with carry`() {
    let rows = ["a", "b", "b"].map { Array($0.utf8) }
    #expect(digest(rows).hexText == "15e31365bf2d6be1893c8b25d7deb0bb")
  }

  @Test func `does not depend on order or division`() {
    let rows = (0..<300).map { number in (0...(number % 40)).map { UInt8($0 ^ number & 0xFF) } }
    let whole = digest(rows)
    #expect(digest(rows.reversed()) == whole)
    for place in [0, 1, 150, 300] {
      var sum = digest(Array(rows[place...]))
      sum += digest(Array(rows[..<place]))
      #expect(sum == whole)
    }
  }

  @Test func `counts a row as often as it occurs`() {
    #expect(digest([[1]]) != digest([[1], [1]]))
    #expect(digest([[1], [1]]) != digest([[2], [2]]))
    #expect(digest([[1], [2]]) != digest([[1, 2]]))
    #expect(digest([]) != digest([[]]))
    #expect(digest([[1]]).count == 1)
  }

  @Test func `changes with every bit and with the length`() {
    var seen: Set<String> = []
    var rows = 0
    for count in 0...40 {
      let zeros = [UInt8](repeating: 0, count: count)
      seen.insert(digest([zeros]).hexText)
      rows += 1
      for bit in 0..<(count * 8) {
        var row = zeros
        row[bit / 8] = 1 << UInt8(bit % 8)
        seen.insert(digest([row]).hexText)
        rows += 1
      }
    }
    #expect(seen.count == rows)
  }

  @Test func `spreads every bit over the whole hash`() {
    let row = (0..<48).map { UInt8($0 &* 37 & 0xFF) }
    let first = Hexadecimal.bytes(of: digest([row]).hexText) ?? []
    for bit in 0..<(row.count * 8) {
      var other = row
      other[bit / 8] ^= 1 << UInt8(bit % 8)
      let second = Hexadecimal.bytes(of: digest([other]).hexText) ?? []
      let changed = zip(first, second).reduce(0) { $0 + ($1.0 ^ $1.1).nonzeroBitCount }
      // 64 expected; a good hash leaves this range once in 10⁹ times.
      #expect((30...98).contains(changed))
    }
  }

  @Test func `is kept as JSON`() throws {
    let whole = digest([[1], [2]])
    let json = try JSONEncoder().encode(whole)
    #expect(try JSONDecoder().decode(RowSetDigest.self, from: json) == whole)
    for text in [
      #"{"rows": -1, "sum": "00000000000000000000000000000000"}"#,
      #"{"rows": 1, "sum": "0"}"#, #"{"rows": 1, "sum": "0000000000000000000000000000000g"}"#,
    ] {
      #expect(throws: DecodingError.self) {
        try JSONDecoder().decode(RowSetDigest.self, from: Data(text.utf8))
      }
    }
  }

  private func digest(_ rows: [[UInt8]]) -> RowSetDigest {
    var digest = RowSetDigest()
    for row in rows { digest.add(row) }
    return digest
  }
}
