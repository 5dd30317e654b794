import Foundation
import SystemPackage
import Testing

@testable import GodwitWorker

@Suite struct `An association file` {
  // Around the size of a block, 256 pairs.
  @Test(arguments: [0, 1, 255, 256, 257, 70_000])
  func `finds every pair both ways and nothing else`(count: Int) throws {
    let path = FilePath(
      FileManager.default.temporaryDirectory.path + "/godwit-pairs-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(atPath: path.string) }
    var writer = try AssociationWriter(path)
    for number in 0..<Int64(count) {
      try writer.append(source: number * 3 - 5, destination: number * 2 + 1)
    }
    try writer.finish()
    let file = try AssociationFile(path)
    #expect(file.count == count)
    for number in stride(from: 0, to: Int64(count), by: max(1, count / 1000)) {
      #expect(try file.destination(of: number * 3 - 5) == number * 2 + 1)
      #expect(try file.source(of: number * 2 + 1) == number * 3 - 5)
      #expect(try file.destination(of: number * 3 - 4) == nil)
      #expect(try file.source(of: number * 2) == nil)
    }
    #expect(try file.destination(of: .min) == nil)
    #expect(try file.destination(of: .max) == nil)
  }

  @Test func `refuses keys that do not ascend, and a file that is cut off`() throws {
    let path = FilePath(
      FileManager.default.temporaryDirectory.path + "/godwit-pairs-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(atPath: path.string) }
    var writer = try AssociationWriter(path)
    try writer.append(source: 1, destination: 1)
    #expect(throws: StageError.self) { try writer.append(source: 1, destination: 2) }
    _ = FileManager.default.createFile(atPath: path.string, contents: Data(count: 17))
    #expect(throws: StageError.self) { try AssociationFile(path) }
  }
}
