import Foundation
import SystemPackage
import Testing

@testable import GodwitWorker

@Suite struct `A reader of lines` {
  private static func reading<Result>(
    _ text: String, mostBytes: Int = 1 << 20, passesOver: Bool = false,
    _ body: (inout LineReader) throws -> Result
  ) throws -> Result {
    let path = FilePath(FileManager.default.temporaryDirectory.path)
      .appending("godwit-lines-\(UUID().uuidString)")
    try Data(text.utf8).write(to: URL(filePath: path.string))
    defer { try? FileManager.default.removeItem(atPath: path.string) }
    let file = try FileDescriptor.open(path, .readOnly)
    defer { try? file.close() }
    var reader = LineReader(file, mostBytes: mostBytes, passesOver: passesOver)
    return try body(&reader)
  }

  private static func lines(_ text: String, mostBytes: Int = 1 << 20) throws -> [String] {
    try reading(text, mostBytes: mostBytes) { reader in
      var lines: [String] = []
      while let line = try reader.next() { lines.append(String(decoding: line, as: UTF8.self)) }
      return lines
    }
  }

  @Test(arguments: [0, 1, 15, 4095, 16_382, 16_383, 16_384, 16_385, 50_000])
  func `gives every line, wherever a piece of the file ends`(length: Int) throws {
    let wanted = (0..<40).map { String(repeating: "x", count: max(0, length - $0 % 3)) + "\($0)" }
    #expect(try Self.lines(wanted.map { $0 + "\n" }.joined()) == wanted)
  }

  @Test func `gives no line that has no end`() throws {
    #expect(try Self.lines("") == [])
    #expect(try Self.lines("a\nb") == ["a"])
    #expect(try Self.lines("\n\nb") == ["", ""])
  }

  @Test func `refuses a line that is too long, and takes many that are not`() throws {
    let line = String(repeating: "y", count: 30_000)
    #expect(throws: StageError.self) {
      try Self.lines(line + line + "\n", mostBytes: 40_000)
    }
    let many = Array(repeating: line, count: 100)
    #expect(try Self.lines(many.map { $0 + "\n" }.joined(), mostBytes: 40_000) == many)
  }

  @Test(arguments: [1, 19_000, 60_000, 200_000])
  func `passes over a line that is too long, where it is told to`(length: Int) throws {
    let long = String(repeating: "\0", count: length)
    let isTooLong = length > 20_000
    for (text, wanted, places) in [
      ("a\n\(long)", ["a"], [2]),
      ("a\n\(long)\nb\n", ["a", isTooLong ? "" : long, "b"], [2, length + 3, length + 5]),
    ] {
      try Self.reading(text, mostBytes: 20_000, passesOver: true) { reader in
        var (lines, offsets): ([String], [Int]) = ([], [])
        while let line = try reader.next() {
          lines.append(String(decoding: line, as: UTF8.self))
          offsets.append(Int(reader.offset))
        }
        #expect(lines == wanted && offsets == places)
      }
    }
  }
}
