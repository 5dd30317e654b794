import Foundation
import GodwitDurableFiles
import GodwitPersistentStore
import StoreFixtures
import SystemPackage
import Testing

@testable import GodwitCommit

/// Size and times are as they were, and SQLite finds nothing.
@Suite struct `A value that a disk changed while a commit was cut off` {
  @Test(arguments: SwapFixture.Way.allCases)
  func `is published by nobody`(way: SwapFixture.Way) throws {
    let fixture = try SwapFixture.interrupted(way)
    let assembled = try fixture.swap.assemblyPath()
    #expect(try DiskDamage.silentValue.strike(assembled))
    #expect(try fixture.recover() == .takenBack)
    #expect(try fixture.content() == (way == .beside ? .absent : .old))
    #expect(try !DurableFile.exists(assembled))
    try fixture.swap.commit(try fixture.assemble())
    #expect(files(below: fixture.folder) == fixture.expectedFiles)
    #expect(try fixture.content() == .new)
  }

  @Test func `takes a commit back where it is in the clone that was read`() throws {
    let fixture = try SwapFixture.interrupted(.walled)
    #expect(try DiskDamage.silentValue.strike(FilePath(fixture.plan.readPath)))
    #expect(try fixture.recover() == .takenBack)
    #expect(try fixture.content() == .old)
  }

  @Test func `is in no clone that gets the name of a store`() throws {
    let fixture = try SwapFixture(.walled)
    let assembled = try fixture.assemble()
    #expect(throws: SimulatedCrash.self) {
      try DurableSteps.observing(with: { _, _ in
        if try CommitJournal.read(in: fixture.run)?.state == .backedUp { throw SimulatedCrash() }
      }) { _ = try fixture.swap.commit(assembled) }
    }
    let journal = try #require(try CommitJournal.read(in: fixture.run))
    #expect(try DiskDamage.silentValue.strike(journal.clonePath))
    #expect(throws: SimulatedCrash.self) {
      try DurableSteps.observing(with: { step, _ in
        if step == .exchanged { throw SimulatedCrash() }
      }) { _ = try fixture.recover() }
    }
    #expect(try fixture.content() == .old, "the clone has the name now")
    guard case .committed = try fixture.recover() else {
      Issue.record("not finished")
      return
    }
    #expect(try fixture.content() == .new)
  }
}

@Suite struct `A log that is a hole of many bytes` {
  /// As long as that volume's free space twice over, none of which it takes.
  @Test(arguments: ["-wal", "-journal"])
  func `is refused before a store is replaced`(suffix: String) throws {
    let fixture = try SwapFixture(.settled)
    let free = Int64(try #require(try DurableFile.freeBytes(at: fixture.folder)))
    let log = FilePath(fixture.source.string + suffix)
    try write("", to: log)
    guard truncate(log.string, off_t(min(free * 2, 1 << 43))) == 0, free < 1 << 42 else {
      return print("skipped: no such file here")
    }
    #expect {
      try fixture.swap.checkSpace(assembledBytes: 1)
    } throws: { error in
      if case CommitError.notEnoughSpace(_, let needed, _)? = error as? CommitError {
        needed > free
      } else {
        false
      }
    }
  }

  @Test(.timeLimit(.minutes(1)))
  func `is compared without reading it`() throws {
    let scratch = try Scratch()
    let paths = ["a", "b"].map { scratch.path.appending($0) }
    let size: Int64 = 1 << 42
    for path in paths {
      try write("log", to: path)
      guard truncate(path.string, off_t(size)) == 0 else {
        return print("skipped: no such file here")
      }
    }
    #expect(try ExternalDataFolder.areEqual(paths[0], paths[1]))
    // Zeros that are written are no others than those of a hole.
    for (bytes, isEqual) in [([0, 0], true), ([0, 1], false)] as [([UInt8], Bool)] {
      let file = try FileDescriptor.open(paths[1], .writeOnly)
      try file.writeAll(toAbsoluteOffset: size - 77_777, bytes)
      try file.close()
      #expect(try ExternalDataFolder.areEqual(paths[0], paths[1]) == isEqual)
      #expect(try ExternalDataFolder.areEqual(paths[1], paths[0]) == isEqual)
    }
  }
}
