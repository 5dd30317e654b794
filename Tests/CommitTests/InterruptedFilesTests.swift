import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import StoreFixtures
import SystemPackage
import Testing

@testable import GodwitCommit

/// Files of the run directory that are not what they were when the commit was cut off.
@Suite struct `An interrupted commit` {
  private func change(
    _ fixture: SwapFixture, _ body: (inout CommitJournal) -> Void
  ) throws {
    var journal = try #require(try CommitJournal.read(in: fixture.run))
    body(&journal)
    try journal.write(in: fixture.run, [])
  }

  private func external(_ fixture: SwapFixture, _ name: String) -> FilePath {
    StoreFiles(fixture.source).externalDataFolder.appending(name)
  }

  @Test func `removes no external data that rows of the new store refer to`() throws {
    let fixture = try SwapFixture.interrupted(.settled)
    try change(fixture) { $0.removed = [SwapFixture.kept, SwapFixture.obsolete] }
    guard case .committed = try fixture.recover() else {
      Issue.record("not finished")
      return
    }
    #expect(files(below: fixture.folder) == fixture.expectedFiles)
  }

  @Test func `takes back no external data that rows of the source refer to`() throws {
    let fixture = try SwapFixture.interrupted(.walled)
    try change(fixture) { $0.added.append(SwapFixture.kept) }
    try DurableFile.remove(try fixture.swap.assemblyPath())
    #expect(try fixture.recover() == .takenBack)
    #expect(try DurableFile.exists(external(fixture, SwapFixture.kept)))
    #expect(try fixture.content() == (fixture.way == .beside ? .absent : .old))
  }

  enum Change: CaseIterable { case cut, exchanged, removed }

  @Test(arguments: SwapFixture.Way.allCases, Change.allCases)
  func `publishes no external data but what was written`(
    way: SwapFixture.Way, change: Change
  ) throws {
    let fixture = try SwapFixture.interrupted(way)
    let (file, other) = (SwapFixture.added, SwapFixture.dropped)
    let path = fixture.run.external.appending(file)
    switch change {
    case .cut: try write("add", to: path)
    case .exchanged: try copyFile(fixture.run.external.appending(other), path)
    case .removed: try DurableFile.remove(path)
    }
    #expect(try fixture.recover() == .takenBack)
    #expect(try fixture.content() == (way == .beside ? .absent : .old))
    // Nor does the next commit, to which the file is as good as any.
    guard change != .removed else { return }
    #expect(throws: CommitError.damagedExternalData(path: path)) {
      try fixture.swap.commit(try fixture.assemble())
    }
    try write("added", to: path)
    try fixture.swap.commit(try fixture.assemble())
    #expect(files(below: fixture.folder) == fixture.expectedFiles)
  }

  @Test func `uses no other clone of the source than the one that was read`() throws {
    let fixture = try SwapFixture.interrupted(.walled)
    let clone = FilePath(fixture.plan.readPath)
    try copyFile(fixture.source, clone)
    #expect(try fixture.recover() == .takenBack)
    #expect(try fixture.content() == .old)
  }
}
