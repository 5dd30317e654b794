import Foundation
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage
import Testing

@testable import GodwitCommit
@testable import GodwitFleet

@Suite struct `A backup that a commit has made` {
  /// A folder with a store and its backup, which can be moved away.
  private struct Stores: ~Copyable {
    let scratch: Scratch
    let journal: CommitJournal

    init() throws {
      let scratch = try Scratch()
      let folder = scratch.path.appending("stores")
      try DurableFile.makeFolder(folder)
      let store = folder.appending("a.sqlite")
      try DurableFile.write([1, 2, 3], to: store)
      let main = try #require(try FileMark(store))
      let journal = CommitJournal(
        kind: .replace, run: "r", fingerprint: "f", store: store.string,
        assembled: scratch.path.appending("assembled.sqlite").string, assembledMark: main,
        main: main)
      try DurableFile.write([1, 2, 3], to: journal.backup.store)
      // What took its place.
      try DurableFile.write([4, 5], to: store)
      self.journal = journal
      self.scratch = scratch
    }

    var request: MigrationRequest {
      MigrationRequest(
        store: FilePath(journal.store), models: [], destination: nil, output: nil,
        snapshotFolder: scratch.path.appending("snapshot"))
    }
    var found: FoundStore {
      FoundStore(path: FilePath(journal.store), root: FilePath(journal.store), bytes: 2)
    }

    func whileAway<Result>(_ body: () throws -> Result) throws -> Result {
      let (folder, away) = (scratch.path.appending("stores"), scratch.path.appending("away"))
      try FileManager.default.moveItem(atPath: folder.string, toPath: away.string)
      defer { try? FileManager.default.moveItem(atPath: away.string, toPath: folder.string) }
      return try body()
    }

    func result() -> MigrationResult {
      MigrationResult(store: journal.store, verdict: .failed, ending: .fatal)
    }

    func backup(_ result: MigrationResult) throws -> LedgerBackup? {
      try LedgerBackup(result, of: found, run: "run", at: 1)
    }
  }

  @Test func `is not called removed while its folder is away`() throws {
    let stores = try Stores()
    var result = stores.result()
    #expect(throws: DurabilityError.self) {
      try stores.whileAway { try result.succeed(stores.request, stores.journal) }
    }
    #expect(result.notes.isEmpty && result.verdict == .failed)
    try result.succeed(stores.request, stores.journal)
    #expect(result.notes.isEmpty && result.backup == stores.journal.backup.store.string)
  }

  @Test func `is not written down unseen`() throws {
    let stores = try Stores()
    var result = stores.result()
    try result.succeed(stores.request, stores.journal)
    #expect(throws: DurabilityError.self) {
      try stores.whileAway { try result.readDigests(of: StoreFiles(stores.found.path)) }
    }
  }

  @Test func `is written down as it was seen beside its store`() throws {
    let stores = try Stores()
    var result = stores.result()
    try result.succeed(stores.request, stores.journal)
    try result.readDigests(of: StoreFiles(stores.found.path))
    let there = try #require(try stores.backup(result))
    #expect(there.state == .kept && there.bytes == 3 && there.marks.content != nil)
    // On its way from the process that coordinated the store.
    let line = try JSONEncoder().encode(StoreEnd(result))
    let sent = try JSONDecoder().decode(StoreEnd.self, from: line).whole
    #expect(try stores.whileAway { try stores.backup(sent) } == there)
  }

  @Test func `is written down as missing where somebody removed it`() throws {
    let stores = try Stores()
    try DurableFile.removeIfPresent(stores.journal.backup.store)
    var result = stores.result()
    try result.succeed(stores.request, stores.journal)
    #expect(result.backup == nil && result.notes.count == 1)
    let backup = try #require(try stores.backup(result))
    #expect(backup.state == .missing && backup.bytes == 3)
    #expect(backup.path == stores.journal.backup.store.string)
  }

  @Test func `is not called whole where somebody removed its log`() throws {
    let stores = try Stores()
    var journal = stores.journal
    (journal.wal, journal.settledSource) = (journal.main, "clone")
    var result = stores.result()
    try result.succeed(stores.request, journal)
    #expect(result.backup == nil && result.notes.count == 1)
    #expect(result.notes[0].contains("-wal"))
    #expect(try stores.backup(result)?.state == .missing)
    try DurableFile.write([1, 2, 3], to: journal.backup.wal)
    try result.succeed(stores.request, journal)
    #expect(result.backup == journal.backup.store.string && result.notes.count == 1)
  }

  @Test func `is nobody's loss where its store is not there either`() throws {
    let stores = try Stores()
    for path in [stores.journal.backup.store, stores.found.path] {
      try DurableFile.removeIfPresent(path)
    }
    var result = stores.result()
    // As in a mount point whose volume is away.
    #expect(throws: DurabilityError.self) {
      try result.succeed(stores.request, stores.journal)
    }
    #expect(result.notes.isEmpty)
  }
}
