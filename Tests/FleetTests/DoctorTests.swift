import Foundation
import GodwitDurableFiles
import SystemPackage
import Testing

@testable import GodwitFleet

@Suite struct `A look at a machine before a run` {
  /// What lies where the state folder is to be, and whether a run could use it.
  @Test(arguments: [
    ("nothing", "a/state", true), ("a folder", "folder", true), ("a place in it", "folder/a", true),
    ("a file", "file", false), ("a place in a file", "file/a", false),
    ("a folder of others", "open", false),
  ])
  func `tells whether the state folder that is given can be one`(
    what: String, name: String, isGood: Bool
  ) throws {
    let scratch = try Scratch()
    _ = scratch.file("file")
    for folder in ["folder", "open"] { try DurableFile.makeFolder(scratch.path.appending(folder)) }
    #expect(chmod(scratch.path.appending("open").string, 0o777) == 0)
    let before = scratch.names
    // Nobody can write to the folder of the stores, and run directories lie elsewhere.
    let findings = Doctor(folder: "/proc", state: scratch.path.pushing(FilePath(name))).findings()
    let state = try #require(findings.first { $0.name == "state" })
    #expect(state.isGood == isGood, "\(what): \(state.value)")
    #expect(findings.first { $0.name == "durable write" }?.isGood == (isGood ? true : nil))
    #expect(scratch.names == before)
  }

  @Test func `names the way out where nothing can be written beside the stores`() throws {
    let findings = Doctor(folder: "/proc").findings()
    let write = try #require(findings.first { $0.name == "durable write" })
    #expect(!write.isGood && write.advice?.contains("with --state") == true)
  }
}
