import Foundation
import GodwitDurableFiles
import SystemPackage
import Testing

@Suite struct `A durable log` {
  private func text(_ path: FilePath) -> String {
    String(decoding: contents(of: path) ?? [], as: UTF8.self)
  }

  @Test func `grows by a line at a time, each on the disk`() throws {
    let folder = try TemporaryFolder()
    var log = try DurableLog(at: folder.file("log"))
    try log.append("one")
    let taken = try steps { try append("two", to: &log) }.taken
    #expect(taken == [.written, .fileSynced])
    #expect(text(folder.file("log")) == "one\ntwo\n")
  }

  private func append(_ line: String, to log: inout DurableLog) throws { try log.append(line) }

  @Test(arguments: [
    (before: "", after: "new\n"), (before: "old\n", after: "old\nnew\n"),
    (before: "old\ncut sho", after: "old\ncut sho\nnew\n"),  // what a crash leaves
  ])
  func `goes on with a line of its own, whatever is there`(before: String, after: String) throws {
    let folder = try TemporaryFolder()
    try Data(before.utf8).write(to: URL(fileURLWithPath: folder.file("log").string))
    var log = try DurableLog(at: folder.file("log"))
    try log.append("new")
    #expect(text(folder.file("log")) == after)
  }

  @Test func `wants its folder to be there`() throws {
    let folder = try TemporaryFolder()
    #expect(throws: DurabilityError.self) {
      try DurableLog(at: folder.file("no").appending("log")).path
    }
  }
}
