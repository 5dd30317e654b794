import Foundation
import FuzzTargets
import Testing

/// Each folder of `Inputs` carries the name of a target; its files are inputs that the fuzzer once
/// found to crash a parser, to keep it busy or to fill the memory.
@Suite struct `Inputs that the fuzzer found` {
  private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("Inputs")

  private static func inputs(of target: FuzzTarget) throws -> [URL] {
    let folder = folder.appendingPathComponent(target.rawValue)
    guard FileManager.default.fileExists(atPath: folder.path) else { return [] }
    return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)
      .sorted { $0.path < $1.path }
  }

  @Test func `have a target each`() throws {
    let folders = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
    #expect(!folders.isEmpty)
    for name in folders { #expect(FuzzTarget(rawValue: name) != nil, "\(name)") }
  }

  @Test(arguments: FuzzTarget.allCases)
  func `end in a value or an error`(_ target: FuzzTarget) throws {
    for file in try Self.inputs(of: target) { target.run([UInt8](try Data(contentsOf: file))) }
    // Nothing, and bytes of no format, are inputs of every target.
    for bytes in [[], [0], [UInt8](0...255), [UInt8](repeating: 0xFF, count: 4096)] {
      target.run(bytes)
    }
  }
}
