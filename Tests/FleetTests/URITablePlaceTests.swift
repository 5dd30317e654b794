import Foundation
import GodwitBarriers
import GodwitCheckpoints
import GodwitPlanning
import GodwitSQLite
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

  @Test(arguments: [("S1", true), ("S1/", true), ("S2", false), ("", true)])
  func `is not the table of another store, which cannot be made again`(
    owner: String, isFree: Bool
  ) throws {
    let scratch = try Scratch()
    let path = scratch.path.appending("store.sqlite")
    let store = try Connection(path: path.string, mode: .create)
    try store.execute("CREATE TABLE Z_METADATA (Z_UUID TEXT); INSERT INTO Z_METADATA VALUES ('S1')")
    try store.close()
    let line = owner.isEmpty ? "" : "M\tx-coredata://\(owner.prefix(2))/A/p1\tx-coredata://T/A/p1\n"
    let table = scratch.file("old.tsv", URITable.header + "\n" + line)
    let request = MigrationRequest(
      store: path, models: [], destination: nil, output: nil, snapshotFolder: "")
    if isFree {
      try URITablePlace.checkReplacement(table, by: request)
    } else {
      #expect(throws: FleetError.self) {
        try URITablePlace.checkReplacement(table, by: request)
      }
    }
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
