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

/// A store that a commit has replaced, and its backup.
final class RestorationFixture {
  let swap: SwapFixture
  /// Of the rollback.
  let run: RunDirectory
  let backup: StoreFiles
  /// Every file of the store before the commit, by its path, and after it.
  let before: [String: Data]
  let after: [String: Data]

  init(_ way: SwapFixture.Way) throws {
    swap = try SwapFixture(way)
    before = try Self.contents(swap.folder)
    backup = try swap.swap.commit(try swap.assemble()).backup
    after = try Self.contents(swap.folder)
    run = RunDirectory(swap.scratch.path.appending("rollback"))
    try DurableFile.makeFolder(run.snapshot)
  }

  static func contents(_ folder: FilePath) throws -> [String: Data] {
    var contents: [String: Data] = [:]
    for name in files(below: folder) {
      contents[name] = try Data(contentsOf: URL(fileURLWithPath: folder.string + "/" + name))
    }
    return contents
  }

  var store: StoreFiles { StoreFiles(swap.source) }

  @discardableResult
  func restore(_ identity: StoreIdentity? = nil) throws -> CommitJournal {
    try StoreSwap.restore(
      backup, to: store, identity: identity ?? store.identity(), run: run, name: "B1")
  }

  func recover() throws -> StoreSwap.Recovery {
    try StoreSwap.recoverRestoration(of: backup, to: store.store, run: run)
  }

  /// The store's own files as they are now: neither its backup nor what a rollback kept.
  func storeContents() throws -> [String: Data] {
    try Self.contents(swap.folder).filter { !$0.key.contains(".godwit-") }
  }

  /// What the rollback kept, under the names that it had as the store.
  func keptContents() throws -> [String: Data] {
    let mark = ".sqlite.godwit-rolled-back-B1"
    var contents: [String: Data] = [:]
    for (name, data) in try Self.contents(swap.folder) where name.contains(mark) {
      contents[name.replacing(mark + ".sqlite", with: ".sqlite").replacing(mark, with: "")] = data
    }
    return contents
  }
}

@Suite struct `A backup that is put back` {
  private static let ways = [SwapFixture.Way.settled, .walled]

  @Test(arguments: ways)
  func `is the store again, byte for byte`(way: SwapFixture.Way) throws {
    let fixture = try RestorationFixture(way)
    let journal = try fixture.restore()
    #expect(try fixture.storeContents() == fixture.before)
    #expect(
      try fixture.keptContents() == fixture.after.filter { !$0.key.contains(".godwit-") },
      "and what it replaced is kept")
    #expect(try fixture.swap.content(of: journal.backup.store) == .new)
    #expect(try fixture.recover() == .committed(journal), "done is done")
    #expect(try fixture.storeContents() == fixture.before)
  }

  @Test(arguments: ways)
  func `leaves one whole store after a crash at any step`(way: SwapFixture.Way) throws {
    let counter = StepCounter()
    let undisturbed = try RestorationFixture(way)
    try DurableSteps.observing(with: { _, _ in try counter.pass() }) {
      _ = try undisturbed.restore()
    }
    #expect(counter.steps > 20)
    for step in 1...counter.steps {
      let fixture = try RestorationFixture(way)
      let crash = StepCounter(stoppingAfter: step)
      #expect(throws: SimulatedCrash.self) {
        try DurableSteps.observing(with: { _, _ in try crash.pass() }) {
          _ = try fixture.restore()
        }
      }
      let between = try fixture.swap.content()
      #expect(between == .new || between == .old, "step \(step)")
      switch try fixture.recover() {
      case .committed: break
      case .nothing, .takenBack, .takenBackKeeping:
        #expect(try fixture.swap.content() == .new, "step \(step)")
        try fixture.restore()
      }
      #expect(try fixture.storeContents() == fixture.before, "step \(step)")
      #expect(
        try fixture.keptContents() == fixture.after.filter { !$0.key.contains(".godwit-") },
        "step \(step)")
      let names = files(below: fixture.swap.folder)
      #expect(!names.contains { $0.contains("partial") || $0.contains("clone") }, "step \(step)")
      #expect(!names.contains { $0.contains("-restored-") }, "step \(step)")
    }
  }

  @Test(arguments: ways)
  func `makes no folder where the store's was moved away, at whichever step`(
    way: SwapFixture.Way
  ) throws {
    let counter = StepCounter()
    let undisturbed = try RestorationFixture(way)
    try DurableSteps.observing(with: { _, _ in try counter.pass() }) {
      _ = try undisturbed.restore()
    }
    for step in 1...counter.steps {
      let fixture = try RestorationFixture(way)
      let (folder, away) = (fixture.swap.folder, fixture.swap.scratch.path.appending("away").string)
      let crash = StepCounter(stoppingAfter: step)
      try? DurableSteps.observing(with: { _, _ in
        do {
          try crash.pass()
        } catch {
          try FileManager.default.moveItem(atPath: folder.string, toPath: away)
        }
      }) { _ = try fixture.restore() }
      #expect(FileManager.default.fileExists(atPath: away), "step \(step)")
      #expect(try !DurableFile.exists(folder), "step \(step)")
    }
  }

  @Test(arguments: ways)
  func `is not put back over another state than the one that is named`(
    way: SwapFixture.Way
  ) throws {
    let fixture = try RestorationFixture(way)
    let identity = try fixture.store.identity()
    let application = try Connection(path: fixture.store.store.string, mode: .readWrite)
    try application.execute(
      "PRAGMA journal_mode = DELETE; UPDATE ZWORD SET WORD = 'new' WHERE Z_PK = 1")
    try application.close()
    let files = try RestorationFixture.contents(fixture.swap.folder)
    #expect(throws: CommitError.sourceChanged(store: fixture.store.store)) {
      try fixture.restore(identity)
    }
    #expect(try RestorationFixture.contents(fixture.swap.folder) == files)
    #expect(try fixture.recover() == .nothing)
  }

  @Test(arguments: ways)
  func `is not put back while somebody has the store open`(way: SwapFixture.Way) throws {
    let fixture = try RestorationFixture(way)
    let files = try RestorationFixture.contents(fixture.swap.folder)
    let application = try FileDescriptor.open(
      fixture.store.store, .readOnly, options: .closeOnExec)
    #expect(throws: CommitError.storeInUse(store: fixture.store.store)) { try fixture.restore() }
    try application.close()
    #expect(try RestorationFixture.contents(fixture.swap.folder) == files)
    try fixture.restore()
    #expect(try fixture.storeContents() == fixture.before)
  }

  @Test(arguments: ways, [nil, 2])
  func `leaves a store that an application puts in place, at whatever step, without a log`(
    way: SwapFixture.Way, kill: Int?
  ) throws {
    let first = try RestorationFixture(way)
    let steps = try stepCount { try first.restore() }
    for step in 1...steps {
      let fixture = try RestorationFixture(way)
      let application = try Application(
        fixture.store.store, fixture.swap.scratch.path, withLog: false)
      let result = Result {
        try application.acting(atStep: step, killedAfter: kill) { try fixture.restore() }
      }
      if case .failure(let error) = result, !(error is SimulatedCrash) {
        #expect(
          error as? CommitError == .sourceChanged(store: fixture.store.store),
          "step \(step): \(error)")
        #expect(try FileMark(fixture.store.wal) == nil, "step \(step) of \(steps)")
      }
      _ = try fixture.recover()
      #expect(try application.isThere(), "step \(step) of \(steps)")
    }
  }

  // At the moment when the copy with the WAL's content has the store's name.
  @Test func `leaves alone what an application writes after a crash between`() throws {
    let fixture = try RestorationFixture(.walled)
    let exchanges = Mutex(0)
    #expect(throws: SimulatedCrash.self) {
      try DurableSteps.observing(with: { step, _ in
        guard step == .exchanged else { return }
        exchanges.withLock { $0 += 1 }
        throw SimulatedCrash()
      }) { _ = try fixture.restore() }
    }
    #expect(try fixture.swap.content() == .old)
    let application = try Connection(path: fixture.store.store.string, mode: .readWrite)
    try application.execute("UPDATE ZWORD SET WORD = 'mine'; PRAGMA wal_checkpoint(TRUNCATE)")
    try application.close()
    // Whoever is killed before it has written that down finds it again.
    for _ in 1...2 {
      #expect(
        try StoreSwap.isCutOff(
          in: fixture.run, of: fixture.store.store, restoring: fixture.backup))
      guard case .committed = try fixture.recover() else {
        Issue.record("the rollback ends there")
        return
      }
    }
    let names = files(below: fixture.swap.folder)
    #expect(!names.contains { $0.contains("clone") || $0.contains("-restored-") }, "\(names)")
    let store = try Connection(path: fixture.store.store.string, mode: .readWrite)
    #expect(
      try store.rows("SELECT DISTINCT WORD FROM ZWORD") == [[.text("mine")]],
      "no write of an application is lost")
    try store.close()
    #expect(
      try fixture.keptContents()["Recipes.sqlite"] == fixture.after["Recipes.sqlite"],
      "and the store that was replaced is kept")
  }

  @Test func `has not been put back where a disk damages the copy after a crash between`() throws {
    let fixture = try RestorationFixture(.walled)
    #expect(throws: SimulatedCrash.self) {
      try DurableSteps.observing(with: { step, _ in
        if step == .exchanged { throw SimulatedCrash() }
      }) { _ = try fixture.restore() }
    }
    let store = try FileHandle(forUpdating: URL(fileURLWithPath: fixture.store.store.string))
    try store.truncate(atOffset: 4096)
    try store.close()
    let kept = try #require(try CommitJournal.read(in: fixture.run)).backup.store
    #expect(try fixture.recover() == .takenBackKeeping(backup: kept))
    #expect(try fixture.swap.content(of: kept) == .new)
  }

  @Test(arguments: ways, [false, true])
  func `is copied again where a disk changed a value in what waits for its name`(
    way: SwapFixture.Way, isLog: Bool
  ) throws {
    let fixture = try RestorationFixture(way)
    #expect(throws: SimulatedCrash.self) {
      try DurableSteps.observing(with: { step, path in
        if step == .renamed, path.lastComponent?.string == "journal.json" { throw SimulatedCrash() }
      }) { try fixture.restore() }
    }
    let journal = try #require(try CommitJournal.read(in: fixture.run))
    guard !isLog || journal.restoredWAL != nil else { return }
    let path = FilePath(isLog ? journal.restoredWAL?.path ?? "" : journal.assembled)
    #expect(try DiskDamage.silentValue.strike(path))
    #expect(try fixture.recover() == .takenBack)
    #expect(try RestorationFixture.contents(fixture.swap.folder) == fixture.after)
    try fixture.restore()
    #expect(try fixture.storeContents() == fixture.before)
  }

  @Test(arguments: ways)
  func `has all of its files where the rollback was about to be taken back`(
    way: SwapFixture.Way
  ) throws {
    var committed = 0
    for step in 1... {
      let fixture = try RestorationFixture(way)
      let store = fixture.store
      let result = Result {
        try opening(
          store.store, whileAdding: store.externalDataFolder.appending(SwapFixture.obsolete),
          killedAfter: step
        ) { try fixture.restore() }
      }
      guard case .failure(let error) = result, error is SimulatedCrash else {
        #expect(throws: CommitError.storeInUse(store: store.store)) { _ = try result.get() }
        break
      }
      if case .committed = try fixture.recover() {
        committed += 1
        #expect(try fixture.storeContents() == fixture.before, "step \(step)")
      } else {
        #expect(
          try RestorationFixture.contents(fixture.swap.folder) == fixture.after, "step \(step)")
      }
    }
    #expect(committed > 3)
  }

  /// A rollback that was cut off before the file was there, or after.
  @Test(arguments: ways, [false, true])
  func `is not put back without a file that it has lost since, and no copy of that goes`(
    way: SwapFixture.Way, isAdded: Bool
  ) throws {
    let fixture = try RestorationFixture(way)
    let added = fixture.store.externalDataFolder.appending(SwapFixture.obsolete)
    #expect(throws: SimulatedCrash.self) {
      try DurableSteps.observing(with: { step, path in
        if step == .renamed, isAdded ? path == added : path.lastComponent?.string == "journal.json"
        {
          throw SimulatedCrash()
        }
      }) { try fixture.restore() }
    }
    try DurableFile.remove(fixture.backup.externalDataFolder.appending(SwapFixture.obsolete))
    let recovery = try fixture.recover()
    if isAdded {
      guard case .committed = recovery else {
        Issue.record("not finished")
        return
      }
      #expect(try fixture.storeContents() == fixture.before)
    } else {
      #expect(recovery == .takenBack)
      #expect(try fixture.swap.content() == .new)
    }
  }

  @Test func `leaves the only copy of a file where it is taken back`() throws {
    let fixture = try RestorationFixture(.settled)
    let added = fixture.store.externalDataFolder.appending(SwapFixture.obsolete)
    #expect(throws: SimulatedCrash.self) {
      try DurableSteps.observing(with: { step, path in
        if step == .renamed, path == added { throw SimulatedCrash() }
      }) { try fixture.restore() }
    }
    try DurableFile.remove(fixture.backup.externalDataFolder.appending(SwapFixture.obsolete))
    let journal = try #require(try CommitJournal.read(in: fixture.run))
    try DurableFile.remove(FilePath(journal.assembled))
    #expect(try fixture.recover() == .takenBack)
    #expect(try FileMark(added) != nil)
  }

  @Test func `is not forgotten while the volume of its store is away`() throws {
    let fixture = try RestorationFixture(.settled)
    let journal = try fixture.restore()
    let (folder, away) = (fixture.swap.folder.string, fixture.swap.folder.string + "-away")
    try FileManager.default.moveItem(atPath: folder, toPath: away)
    #expect(throws: DurabilityError.self) { try fixture.recover() }
    try FileManager.default.moveItem(atPath: away, toPath: folder)
    #expect(try fixture.recover() == .committed(journal))
  }

  @Test func `is not taken from a journal of a migration, nor the other way round`() throws {
    let fixture = try RestorationFixture(.settled)
    try fixture.restore()
    let journal = fixture.run.journal
    #expect(throws: CommitError.self) {
      try StoreSwap.recover(
        run: fixture.run, source: fixture.store.store, destination: fixture.store.store)
    }
    try copyFile(fixture.swap.run.journal, journal)
    #expect(throws: CommitError.self) { try fixture.recover() }
  }
}
