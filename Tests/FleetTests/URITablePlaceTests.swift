import Foundation
import GodwitBarriers
import GodwitCheckpoints
import GodwitPlanning
import GodwitWorker
import SystemPackage
import Testing

@testable import GodwitFleet

@Suite struct `A place for a table of object URIs` {
  private func check(_ path: FilePath, _ scratch: borrowing Scratch) throws {
    let request = MigrationRequest(
      store: scratch.path.appending("store.sqlite"), models: [], destination: nil,
      output: scratch.path.appending("output.sqlite"), snapshotFolder: "")
    try URITablePlace(path).check(
      request, RunDirectory(scratch.path.appending("output.sqlite.godwit")))
  }

  @Test func `is a new file, or an earlier table`() throws {
    let scratch = try Scratch()
    try check(scratch.path.appending("new.tsv"), scratch)
    try check(scratch.file("old.tsv", URITable.header + "\nM\ta\tb\n"), scratch)
  }

  @Test func `is not that of the run directory before there is one`() throws {
    let scratch = try Scratch()
    #expect(throws: FleetError.self) {
      try check(scratch.path.appending("output.sqlite.godwit"), scratch)
    }
  }

  @Test(arguments: [
    "store.sqlite", "store.sqlite-wal", "output.sqlite", "./output.sqlite",
    "output.sqlite.godwit/a.tsv", "nowhere/a.tsv", "folder", "precious.txt", "empty.txt",
  ])
  func `is nothing that must not be overwritten`(name: String) throws {
    let scratch = try Scratch()
    for folder in ["folder", "output.sqlite.godwit"] {
      try FileManager.default.createDirectory(
        atPath: scratch.path.appending(folder).string, withIntermediateDirectories: false)
    }
    _ = (scratch.file("precious.txt", "dear diary"), scratch.file("empty.txt"))
    #expect(throws: FleetError.self) {
      try check(FilePath(scratch.path.string + "/" + name), scratch)
    }
  }
}
