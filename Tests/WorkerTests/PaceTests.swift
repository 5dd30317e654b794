import Foundation
import SystemPackage
import Testing

@testable import GodwitWorker

@Suite(.serialized) struct `The pace of a run` {
  private func withFile(_ body: (FilePath) throws -> Void) throws {
    let path = FilePath(FileManager.default.temporaryDirectory.path)
      .appending("godwit-pace-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(atPath: path.string) }
    try body(path)
  }

  /// How often a process that waits asks whether it is stopped, a few times at most.
  private func waits(_ pace: Pace, most: Int = 3) -> Int {
    var asked = 0
    pace.keep(until: {
      asked += 1
      return asked >= most
    })
    return asked
  }

  @Test func `lets everybody go on without a limit`() throws {
    try withFile { path in
      try Pace.set(nil, in: path)
      #expect(waits(try Pace(path)) == 0)
    }
  }

  @Test func `lets everybody stand still at 0, and go on when that changes`() throws {
    try withFile { path in
      try Pace.set(0, in: path)
      #expect(waits(try Pace(path)) == 3)
      let pace = try Pace(path)
      var asked = 0
      pace.keep(until: {
        asked += 1
        // The limit is lifted while it waits.
        try? Pace.set(nil, in: path)
        return false
      })
      #expect(asked == 1)
    }
  }

  @Test func `holds back a process that has read more than it may`() throws {
    try withFile { path in
      try Pace.set(1_000, in: path)
      let (first, second) = (try Pace(path), try Pace(path))
      _ = try Data(contentsOf: URL(fileURLWithPath: CommandLine.arguments[0])).prefix(1)
      #expect(waits(first) == 3, "many bytes, a thousand a second")
      #expect(waits(second) == 3, "the processes of a run share the limit")
      try Pace.set(.max, in: path)
      #expect(waits(try Pace(path), most: 100_000) < 100_000)
    }
  }
}
