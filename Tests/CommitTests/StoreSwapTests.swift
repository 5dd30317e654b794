import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitSQLite
import StoreFixtures
import Synchronization
import SystemPackage
import Testing

@testable import GodwitCommit
@testable import GodwitPlanning

@Suite struct `A commit` {
  @Test(arguments: SwapFixture.Way.allCases)
  func `puts the new store in place and leaves nothing else`(way: SwapFixture.Way) throws {
    let fixture = try SwapFixture(way)
    let journal = try fixture.swap.commit(try fixture.assemble())
    #expect(journal.state == .finished)
    #expect(try fixture.content() == .new)
    #expect(files(below: fixture.folder) == fixture.expectedFiles)
    #expect(try !DurableFile.exists(try fixture.swap.assemblyPath()))
    // Done is done, however often it is asked.
    #expect(try fixture.recover() == .committed(journal))
    #expect(files(below: fixture.folder) == fixture.expectedFiles)
  }

  @Test(arguments: [SwapFixture.Way.settled, .walled])
  func `keeps the source's bytes, WAL included, as a backup`(way: SwapFixture.Way) throws {
    let fixture = try SwapFixture(way)
    let main = try Data(contentsOf: URL(fileURLWithPath: fixture.source.string))
    let wal = try? Data(contentsOf: URL(fileURLWithPath: fixture.source.string + "-wal"))
    let journal = try fixture.swap.commit(try fixture.assemble())
    let backup = journal.backup
    #expect(try Data(contentsOf: URL(fileURLWithPath: backup.store.string)) == main)
    #expect((try? Data(contentsOf: URL(fileURLWithPath: backup.wal.string))) == wal)
    #expect(try fixture.content(of: backup.store) == .old)
    #expect(try FileMark(backup.externalDataFolder.appending(SwapFixture.obsolete)) != nil)
  }

  // Recipes.db has the same support folder: it may refer to what the source no longer does.
  @Test func `leaves the external data that another store may share`() throws {
    let fixture = try SwapFixture(.settled)
    let other = fixture.source.removingLastComponent().appending("Recipes.db")
    try FileManager.default.copyItem(atPath: fixture.source.string, toPath: other.string)
    let journal = try fixture.swap.commit(try fixture.assemble())
    #expect(journal.removed == [])
    #expect(journal.notes.count == 1 && journal.notes[0].contains(other.string))
    let files = StoreFiles(other)
    #expect(try FileMark(files.externalDataFolder.appending(SwapFixture.obsolete)) != nil)
  }

  @Test(arguments: SwapFixture.Way.allCases)
  func `keeps the mode`(way: SwapFixture.Way) throws {
    let fixture = try SwapFixture(way)
    try fixture.swap.commit(try fixture.assemble())
    let mode = try FileManager.default.attributesOfItem(atPath: fixture.destination.string)[
      .posixPermissions]
    #expect(mode as? Int == 0o640)
  }

  @Test func `leaves the source alone when the destination goes elsewhere`() throws {
    let fixture = try SwapFixture(.beside)
    let before = try StoreFiles(fixture.source).identity()
    try fixture.swap.commit(try fixture.assemble())
    #expect(try StoreFiles(fixture.source).identity() == before)
    #expect(try fixture.content(of: fixture.source) == .old)
  }

  /// - Parameter isRenumbered: The volume has another device number when it is mounted again.
  @Test(arguments: SwapFixture.Way.allCases, [false, true])
  func `leaves one whole store after a crash at any step`(
    way: SwapFixture.Way, isRenumbered: Bool
  ) throws {
    let steps = try SwapFixture.durableSteps(way)
    #expect(steps > 10)

    for step in 1...steps {
      let fixture = try SwapFixture.crashed(way, after: step)
      let between = try fixture.content()
      #expect(between == .new || between == (way == .beside ? .absent : .old), "step \(step)")
      if isRenumbered { try fixture.renumberVolume() }
      try finish(fixture)
      #expect(try fixture.content() == .new, "step \(step)")
      #expect(files(below: fixture.folder) == fixture.expectedFiles, "step \(step)")
    }
  }

  @Test(arguments: [SwapFixture.Way.walled, .beside])
  func `is brought to its end even when the recovery crashes too`(way: SwapFixture.Way) throws {
    for step in stride(from: 4, through: 60, by: 9) {
      for second in stride(from: 1 + step % 3, through: 40, by: 7) {
        let fixture = try SwapFixture(way)
        let assembled = try fixture.assemble()
        let crash = StepCounter(stoppingAfter: step)
        do {
          try DurableSteps.observing(with: { _, _ in try crash.pass() }) {
            _ = try fixture.swap.commit(assembled)
          }
          break  // fewer steps than that
        } catch is SimulatedCrash {}
        let again = StepCounter(stoppingAfter: second)
        do {
          _ = try DurableSteps.observing(with: { _, _ in try again.pass() }) {
            try fixture.recover()
          }
        } catch is SimulatedCrash {}
        let between = try fixture.content()
        #expect(between == .new || between == (way == .beside ? .absent : .old))
        try finish(fixture)
        #expect(try fixture.content() == .new, "steps \(step), \(second)")
        #expect(files(below: fixture.folder) == fixture.expectedFiles, "steps \(step), \(second)")
      }
    }
  }

  /// What a rerun does.
  private func finish(_ fixture: SwapFixture) throws {
    switch try fixture.recover() {
    case .committed: break
    case .nothing, .takenBack, .takenBackKeeping: try fixture.swap.commit(try fixture.assemble())
    }
  }

  @Test(arguments: [SwapFixture.Way.settled, .walled])
  func `is taken back without its assembled file, and leaves no trace but of a WAL that is gone`(
    way: SwapFixture.Way
  ) throws {
    var kept = 0
    for step in stride(from: way == .settled ? 1 : 2, through: 80, by: 2) {
      let fixture = try SwapFixture(way)
      let before = files(below: fixture.folder)
      let assembled = try fixture.assemble()
      let crash = StepCounter(stoppingAfter: step)
      do {
        try DurableSteps.observing(with: { _, _ in try crash.pass() }) {
          _ = try fixture.swap.commit(assembled)
        }
        break
      } catch is SimulatedCrash {}
      if try fixture.content() == .new { break }
      try? FileManager.default.removeItem(atPath: assembled.string)
      let wal = StoreFiles(fixture.source).wal
      let isCloned = try way == .walled && !DurableFile.exists(wal)
      let recovery = try fixture.recover()
      #expect(try fixture.content() == .old)
      let after = files(below: fixture.folder)
      if case .takenBackKeeping(let backup) = recovery {
        // The clone, which has the WAL's content, is the store, and the source's own bytes are in the backup.
        #expect(way == .walled && after != before, "step \(step)")
        #expect(try fixture.content(of: backup) == .old)
        #expect(try FileMark(StoreFiles(backup).wal) != nil)
        kept += 1
      } else {
        #expect(recovery == .takenBack || recovery == .nothing)
        #expect(after == before && !isCloned, "step \(step)")
      }
    }
    #expect((kept > 0) == (way == .walled))
  }

  // Its journal says no more than that the commit was begun.
  @Test func `keeps the backup of a small store that somebody replaced afterwards`() throws {
    let fixture = try SwapFixture(.small)
    let journal = try fixture.swap.commit(try fixture.assemble())
    let other = fixture.folder.appending("other")
    try copyFile(journal.backup.store, other)
    #expect(rename(other.string, fixture.source.string) == 0)
    #expect(try fixture.recover() == .nothing)
    #expect(try fixture.content(of: journal.backup.store) == .old)
    #expect(try CommitJournal.read(in: fixture.run) == nil)
  }

  @Test func `makes the clone again when somebody took it away`() throws {
    let fixture = try SwapFixture(.walled)
    let assembled = try fixture.assemble()
    let clone = fixture.folder.appending(".Recipes.sqlite.godwit-R1-clone")
    let wal = StoreFiles(fixture.source).wal
    let journal = fixture.run.journal
    // The last moment at which clone and WAL are both there under their own names.
    #expect(throws: SimulatedCrash.self) {
      try DurableSteps.observing(with: { step, path in
        guard step == .folderSynced, path == journal.removingLastComponent() else { return }
        if try DurableFile.exists(clone) { throw SimulatedCrash() }
      }) { _ = try fixture.swap.commit(assembled) }
    }
    #expect(try DurableFile.exists(clone) && DurableFile.exists(wal))
    try FileManager.default.removeItem(atPath: clone.string)
    let source = fixture.source
    let original = try FileMark(source)
    let seen = Mutex(0)
    // Nobody can open the store meanwhile, this test included: without its WAL it must be another
    // file than the original.
    let recovery = try DurableSteps.observing(with: { _, _ in
      let isOriginal = try #require(try FileMark(source)).isSameFile(as: original)
      #expect(try DurableFile.exists(wal) || !isOriginal)
      seen.withLock { $0 += 1 }
    }) { try fixture.recover() }
    guard case .committed = recovery else {
      Issue.record("not finished: \(recovery)")
      return
    }
    #expect(seen.withLock { $0 } > 5)
    #expect(files(below: fixture.folder) == fixture.expectedFiles)
  }

  /// Where the commit is cut off, with the clone in the store's place or not, and what is removed or cut then.
  @Test(arguments: [
    (SwapFixture.Way.settled, DurableStep.renamed, ""), (.walled, .renamed, ""),
    (.walled, .renamed, "-wal"), (.walled, .exchanged, ""), (.walled, .exchanged, "-wal"),
  ])
  func `makes the backup again when somebody took it away`(
    way: SwapFixture.Way, moment: DurableStep, suffix: String
  ) throws {
    for isCut in [false, true] where !isCut || moment == .renamed {
      let fixture = try SwapFixture(way)
      let assembled = try fixture.assemble()
      #expect(throws: SimulatedCrash.self) {
        try DurableSteps.observing(with: { step, _ in
          guard step == moment, try CommitJournal.read(in: fixture.run)?.state == .backedUp else {
            return
          }
          throw SimulatedCrash()
        }) { _ = try fixture.swap.commit(assembled) }
      }
      let backup = try #require(try CommitJournal.read(in: fixture.run)).backup
      let part = backup.store.string + suffix
      #expect(try fixture.content(of: backup.store) == .old)
      if isCut {
        #expect(truncate(part, 512) == 0)
      } else {
        try FileManager.default.removeItem(atPath: part)
      }
      guard case .committed = try fixture.recover() else {
        Issue.record("the commit goes on")
        return
      }
      #expect(try fixture.content() == .new && fixture.content(of: backup.store) == .old)
    }
  }

  @Test func `is taken back when somebody wrote to the source meanwhile`() throws {
    let fixture = try SwapFixture(.walled)
    let assembled = try fixture.assemble()
    let crash = StepCounter(stoppingAfter: 8)
    #expect(throws: SimulatedCrash.self) {
      try DurableSteps.observing(with: { _, _ in try crash.pass() }) {
        _ = try fixture.swap.commit(assembled)
      }
    }
    let app = try Connection(path: fixture.source.string, mode: .readWrite)
    try app.execute("DELETE FROM ZWORD; INSERT INTO ZWORD (WORD) VALUES ('theirs')")
    #expect(throws: CommitError.storeInUse(store: fixture.source)) {
      try fixture.recover()
    }
    try app.close()
    #expect(try fixture.recover() == .takenBack)
    let rows = try Connection(path: fixture.source.string, mode: .readOnly)
      .rows("SELECT WORD FROM ZWORD")
    #expect(rows == [[.text("theirs")]])
    #expect(!files(below: fixture.folder).contains { $0.contains("godwit") })
  }

  @Test func `waits for nobody who has the store open`() throws {
    let fixture = try SwapFixture(.walled)
    let assembled = try fixture.assemble()
    let app = try Connection(path: fixture.source.string, mode: .readWrite)
    _ = try app.rows("SELECT count(*) FROM ZWORD")
    #expect(throws: CommitError.storeInUse(store: fixture.source)) {
      try fixture.swap.commit(assembled)
    }
    #expect(try fixture.recover() == .nothing)
  }

  @Test(arguments: SwapFixture.Way.allCases)
  func `refuses a source that is not the planned one any more`(way: SwapFixture.Way) throws {
    let fixture = try SwapFixture(way)
    let assembled = try fixture.assemble()
    let app = try Connection(path: fixture.source.string, mode: .readWrite)
    try app.execute("DELETE FROM ZWORD WHERE Z_PK > 10")
    try app.close()
    #expect(throws: CommitError.sourceChanged(store: fixture.source)) {
      try fixture.swap.commit(assembled)
    }
  }

  @Test(arguments: ["Copy.store", "Copy.store-wal", "Copy.store-journal"])
  func `never overwrites what is at the destination`(name: String) throws {
    let fixture = try SwapFixture(.beside)
    let path = fixture.folder.appending(name)
    try write("somebody's", to: path)
    #expect(throws: CommitError.destinationExists(path: path)) {
      try fixture.swap.commit(try fixture.assemble())
    }
    #expect(try String(contentsOfFile: path.string, encoding: .utf8) == "somebody's")
  }

  @Test func `never mixes external data of two stores`() throws {
    let fixture = try SwapFixture(.beside)
    let folder = StoreFiles(fixture.destination).externalDataFolder
    try FileManager.default.createDirectory(
      atPath: folder.string, withIntermediateDirectories: true)
    let place = folder.appending(SwapFixture.kept)
    try write("other", to: place)
    #expect(throws: CommitError.externalDataConflict(path: place)) {
      try fixture.swap.commit(try fixture.assemble())
    }
    // The same bytes are the same value.
    try write("kept", to: place)
    try fixture.swap.commit(try fixture.assemble())
    #expect(files(below: fixture.folder) == fixture.expectedFiles)
  }

  /// - Parameter isInterrupted: The commit was cut off when it had written down which files it adds.
  @Test(arguments: [false, true])
  func `shares no folder of external data with a store that came meanwhile, and leaves its files`(
    isInterrupted: Bool
  ) throws {
    let fixture = try isInterrupted ? SwapFixture.interrupted(.beside) : SwapFixture(.beside)
    let assembled = try isInterrupted ? nil : fixture.assemble()
    let other = fixture.folder.appending("Copy.sqlite")
    try copyFile(fixture.source, other)
    let folder = StoreFiles(other).externalDataFolder
    try FileManager.default.createDirectory(
      atPath: folder.string, withIntermediateDirectories: true)
    try write("kept", to: folder.appending(SwapFixture.kept))
    try write("added", to: folder.appending(SwapFixture.added))
    let names = files(below: fixture.folder)
    #expect(throws: PlaceError.self) {
      if let assembled { try fixture.swap.commit(assembled) } else { _ = try fixture.recover() }
    }
    #expect(files(below: fixture.folder) == names)
    #expect(try !DurableFile.exists(fixture.run.journal))
  }

  @Test func `follows no symbolic link into external data`() throws {
    let fixture = try SwapFixture(.beside)
    let secret = fixture.scratch.path.appending("secret")
    try write("secret", to: secret)
    let link = StoreFiles(fixture.source).externalDataFolder.appending("LINK")
    try FileManager.default.createSymbolicLink(
      atPath: link.string, withDestinationPath: secret.string)
    try fixture.swap.commit(try fixture.assemble())
    let copied = StoreFiles(fixture.destination).externalDataFolder
    #expect(try !DurableFile.exists(copied.appending("LINK")))
  }

  @Test func `keeps files that no row ever referred to`() throws {
    let fixture = try SwapFixture(.settled)
    let stranger = StoreFiles(fixture.source).externalDataFolder.appending("STRANGER")
    try write("somebody's", to: stranger)
    try fixture.swap.commit(try fixture.assemble())
    #expect(try FileMark(stranger) != nil)
  }

  @Test func `replaces no symbolic link`() throws {
    let fixture = try SwapFixture(.settled)
    let assembled = try fixture.assemble()
    let elsewhere = fixture.scratch.path.appending("elsewhere.sqlite")
    try FileManager.default.moveItem(atPath: fixture.source.string, toPath: elsewhere.string)
    try FileManager.default.createSymbolicLink(
      atPath: fixture.source.string, withDestinationPath: elsewhere.string)
    #expect(throws: CommitError.notAFile(store: fixture.source)) {
      try fixture.swap.commit(assembled)
    }
  }

  @Test(arguments: [false, true])
  func `says of a store that went meanwhile that it was changed`(withItsFolder: Bool) throws {
    let fixture = try SwapFixture(.settled)
    let assembled = try fixture.assemble()
    let path = withItsFolder ? fixture.folder : fixture.source
    try FileManager.default.moveItem(atPath: path.string, toPath: path.string + ".moved")
    #expect(throws: CommitError.sourceChanged(store: fixture.source)) {
      try fixture.swap.commit(assembled)
    }
  }

  /// `/dev/shm` is a volume of its own nearly everywhere.
  @Test(.enabled(if: (try? DurableFile.areOnOneVolume("/dev/shm", "/tmp")) == false))
  func `assembles beside the destination when the run directory is on another volume`() throws {
    let fixture = try SwapFixture(.walled, runParent: "/dev/shm")
    let path = try fixture.swap.assemblyPath()
    #expect(path == fixture.folder.appending(".Recipes.sqlite.godwit-R1"))
    try fixture.swap.commit(try fixture.assemble())
    #expect(try fixture.content() == .new)
    #expect(files(below: fixture.folder) == fixture.expectedFiles)
  }

  @Test func `says that a journal is of another version`() throws {
    let fixture = try SwapFixture(.settled)
    try write(#"{"formatVersion": 1}"#, to: fixture.run.journal)
    #expect(throws: CommitError.unreadableJournal(path: fixture.run.journal)) {
      try fixture.recover()
    }
    try write("not JSON", to: fixture.run.journal)
    #expect(throws: CommitError.unreadableJournal(path: fixture.run.journal)) {
      try fixture.recover()
    }
  }

  @Test func `believes a journal only as it was written, or as one without a digest was`() throws {
    let fixture = try SwapFixture(.walled)
    let journal = try fixture.swap.commit(try fixture.assemble())
    let path = URL(fileURLWithPath: fixture.run.journal.string)
    let bytes = try Data(contentsOf: path)
    let digestBytes = #","digest":"""#.utf8.count + 64
    for place in bytes.indices.dropLast(digestBytes + 1) {
      var damaged = bytes
      damaged[place] ^= 1
      try damaged.write(to: path)
      #expect(throws: CommitError.unreadableJournal(path: fixture.run.journal)) {
        try CommitJournal.read(in: fixture.run)
      }
    }
    try (bytes.dropLast(digestBytes + 1) + Data("}".utf8)).write(to: path)
    #expect(try CommitJournal.read(in: fixture.run) == journal)
  }

  @Test func `deletes no backup of a store that was taken away`() throws {
    let fixture = try SwapFixture(.settled)
    let assembled = try fixture.assemble()
    let backup = FilePath(fixture.source.string + ".godwit-backup-R1.sqlite")
    for step in 1...80 where try !DurableFile.exists(backup) {
      try? FileManager.default.removeItem(atPath: fixture.run.journal.string)
      let crash = StepCounter(stoppingAfter: step)
      try? DurableSteps.observing(with: { _, _ in try crash.pass() }) {
        _ = try fixture.swap.commit(assembled)
      }
    }
    try FileManager.default.removeItem(atPath: fixture.source.string)
    #expect(throws: CommitError.storeMissing(store: fixture.source, backup: backup)) {
      try fixture.recover()
    }
    // Without it, the new store may have been the one that was taken away.
    try FileManager.default.removeItem(atPath: assembled.string)
    #expect(try fixture.recover() == .nothing)
    #expect(try fixture.content(of: backup) == .old)
  }

  @Test func `asks for space before it begins`() throws {
    let fixture = try SwapFixture(.walled)
    try fixture.swap.checkSpace(assembledBytes: 1)
    let free = Int64(try #require(try DurableFile.freeBytes(at: fixture.folder)))
    #expect(throws: CommitError.self) { try fixture.swap.checkSpace(assembledBytes: free * 2) }
  }

  /// On a volume that gives back other bytes than it was given, with size and times as they were.
  @Test(arguments: [SwapFixture.Way.settled, .walled, .beside])
  func `is taken back where what was assembled is damaged after a crash`(
    way: SwapFixture.Way
  ) throws {
    let fixture = try SwapFixture(way)
    let assembled = try fixture.assemble()
    #expect(throws: SimulatedCrash.self) {
      try DurableSteps.observing(with: { step, _ in
        if step == .exchanged { throw SimulatedCrash() }
        if try CommitJournal.read(in: fixture.run) != nil, way == .beside { throw SimulatedCrash() }
        if try CommitJournal.read(in: fixture.run)?.state == .backedUp { throw SimulatedCrash() }
      }) { _ = try fixture.swap.commit(assembled) }
    }
    let mark = try #require(try FileMark(assembled))
    let file = try FileDescriptor.open(assembled, .writeOnly)
    try file.writeAll(toAbsoluteOffset: 4096, [UInt8](repeating: 0xFF, count: 64))
    var times = [
      timespec(),
      timespec(tv_sec: Int(mark.modificationSeconds), tv_nsec: Int(mark.modificationNanoseconds)),
    ]
    #expect(futimens(file.rawValue, &times) == 0)
    try file.close()
    #expect(try FileMark(assembled) == mark)
    #expect(try fixture.recover() == .takenBack)
    #expect(try fixture.content() == (way == .beside ? .absent : .old))
    #expect(try !DurableFile.exists(assembled))
  }
}
