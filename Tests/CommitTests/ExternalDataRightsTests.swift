import Foundation
import Glibc
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import StoreFixtures
import SystemPackage
import Testing

@testable import GodwitCommit

private func mode(_ folder: FilePath) throws -> Int {
  let attributes = try FileManager.default.attributesOfItem(atPath: folder.string)
  return try #require(attributes[.posixPermissions] as? Int)
}

private func setMode(_ mode: Int, _ paths: FilePath...) throws {
  for path in paths {
    try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path.string)
  }
}

/// Who migrates may be root, and the folders that a commit makes hold an application's data.
@Suite struct `Folders of external data that a commit makes` {
  @Test func `have the rights of the source's own`() throws {
    let fixture = try SwapFixture(.walled)
    let files = StoreFiles(fixture.source)
    try setMode(0o750, files.supportFolder)
    try setMode(0o755, files.externalDataFolder)
    try fixture.swap.commit(try fixture.assemble())
    let backup = StoreFiles(
      fixture.folder.appending("Recipes.sqlite.godwit-backup-R1.sqlite"))
    #expect(try mode(backup.supportFolder) == 0o750)
    #expect(try mode(backup.externalDataFolder) == 0o755)
  }

  @Test(arguments: SwapFixture.Way.allCases)
  func `have their rights, too, after a crash at any step`(way: SwapFixture.Way) throws {
    for step in 1...(try SwapFixture.durableSteps(way)) {
      let fixture = try SwapFixture(way)
      let files = StoreFiles(fixture.source)
      try setMode(0o750, files.supportFolder)
      try setMode(0o755, files.externalDataFolder)
      let assembled = try fixture.assemble()
      let crash = StepCounter(stoppingAfter: step)
      #expect(throws: SimulatedCrash.self) {
        try DurableSteps.observing(with: { _, _ in try crash.pass() }) {
          _ = try fixture.swap.commit(assembled)
        }
      }
      if case .committed = try fixture.recover() {
      } else {
        try fixture.swap.commit(try fixture.assemble())
      }
      let made = StoreFiles(
        way == .beside
          ? fixture.destination
          : fixture.folder.appending("Recipes.sqlite.godwit-backup-R1.sqlite"))
      #expect(try mode(made.supportFolder) == 0o750, "step \(step)")
      // Beside the source they follow from the store, which everybody in its group may read.
      #expect(
        try mode(made.externalDataFolder) == (way == .beside ? 0o750 : 0o755), "step \(step)")
      #expect(try !hasUnfinished(below: fixture.folder), "step \(step)")
    }
  }

  @Test func `can be searched by whoever may read the store where there is no other`() throws {
    let scratch = try Scratch()
    let store = scratch.path.appending("a.sqlite")
    try Data().write(to: URL(filePath: store.string))
    try setMode(0o640, store)
    let made = StoreFiles(store).externalDataFolder
    try ExternalDataFolder.make(made, like: nil, of: store)
    #expect(try mode(made) == 0o750 && mode(made.removingLastComponent()) == 0o750)
    // One that is there is not ours to change.
    try setMode(0o700, made)
    try ExternalDataFolder.make(made, like: nil, of: store)
    #expect(try mode(made) == 0o700)
  }
}

/// Its volume may be away, and what is left of it an empty mount point.
@Suite struct `A store's folder that is moved away` {
  @Test(arguments: [
    (false, true),  // since somebody looked
    (false, false), (true, false),  // a mount point
  ])
  func `gets no folders of external data`(hasFolder: Bool, hasStore: Bool) throws {
    let scratch = try Scratch()
    let root = scratch.path.appending("root")
    let store = (hasStore ? scratch.path : root).appending("a.sqlite")
    if hasFolder { try DurableFile.makeFolder(root) }
    if hasStore { try DurableFile.write([], to: store) }
    let folder = StoreFiles(root.appending("a.sqlite")).externalDataFolder
    let error = #expect(throws: DurabilityError.self) {
      try ExternalDataFolder.make(folder, like: nil, of: store)
    }
    #expect(error?.isUnreachable == true)
    #expect(try DurableFile.exists(root) == hasFolder)
    if hasFolder { #expect(try DurableFile.names(in: root).isEmpty) }
  }

  @Test(arguments: SwapFixture.Way.allCases)
  func `is not made again by a commit, at whichever step`(way: SwapFixture.Way) throws {
    for step in 1...(try SwapFixture.durableSteps(way)) {
      let fixture = try SwapFixture(way)
      let assembled = try fixture.assemble()
      let away = fixture.scratch.path.appending("away").string
      let counter = StepCounter(stoppingAfter: step)
      try? DurableSteps.observing(with: { _, _ in
        do {
          try counter.pass()
        } catch {
          try FileManager.default.moveItem(atPath: fixture.folder.string, toPath: away)
        }
      }) { _ = try fixture.swap.commit(assembled) }
      #expect(FileManager.default.fileExists(atPath: away), "step \(step)")
      #expect(try !DurableFile.exists(fixture.folder), "step \(step)")
    }
  }
}

@Suite struct `Files of external data that a commit makes` {
  private static let user: uid_t = 12_345

  /// A commit whose new files are private to the run, as a worker writes them.
  private func prepared(_ way: SwapFixture.Way) throws -> SwapFixture {
    let fixture = try SwapFixture(way)
    try setMode(0o600, fixture.run.external.appending(SwapFixture.added))
    // One of the source's own that not everybody who may read the store may read.
    try setMode(0o600, StoreFiles(fixture.source).externalDataFolder.appending(SwapFixture.kept))
    if geteuid() == 0 { #expect(lchown(fixture.source.string, Self.user, Self.user) == 0) }
    return fixture
  }

  private func expectRights(_ fixture: SwapFixture) throws {
    let folder = StoreFiles(fixture.destination).externalDataFolder
    let added = folder.appending(SwapFixture.added)
    #expect(try mode(added) == 0o640)
    #expect(try DurableFile.haveSameRights(added, fixture.destination))
    #expect(try mode(folder.appending(SwapFixture.kept)) == 0o600)
  }

  @Test(arguments: SwapFixture.Way.allCases)
  func `have the store's rights, and copies of the source's their own`(
    way: SwapFixture.Way
  ) throws {
    let fixture = try prepared(way)
    try fixture.swap.commit(try fixture.assemble())
    try expectRights(fixture)
  }

  @Test(arguments: SwapFixture.Way.allCases)
  func `have them, too, where another process makes them`(way: SwapFixture.Way) throws {
    let fixture = try prepared(way)
    let assembled = try fixture.assemble()
    #expect(throws: SimulatedCrash.self) {
      try DurableSteps.observing(with: { step, path in
        if step == .renamed, path.lastComponent?.string == "journal.json" { throw SimulatedCrash() }
      }) { _ = try fixture.swap.commit(assembled) }
    }
    let recovery = try StoreSwap.recover(
      run: fixture.run, source: fixture.source, destination: fixture.destination)
    guard case .committed = recovery else {
      Issue.record("the commit is finished")
      return
    }
    try expectRights(fixture)
  }
}

/// setfsuid(2), which glibc's module does not have.
@_silgen_name("setfsuid") @discardableResult private func setFileUser(_ user: uid_t) -> CInt

/// Whoever may not give files away keeps what is written.
@Suite(.enabled(if: geteuid() == 0)) struct `A store that another user's run replaces` {
  private static let (owner, other): (uid_t, uid_t) = (12_345, 12_346)

  @Test func `belongs to that user, which is said`() throws {
    let fixture = try SwapFixture(.settled)
    let assembled = try fixture.assemble()
    for name in try FileManager.default.subpathsOfDirectory(atPath: fixture.scratch.path.string) {
      #expect(lchown("\(fixture.scratch.path)/\(name)", Self.other, 0) == 0)
    }
    #expect(
      chown(fixture.source.string, Self.owner, 0) == 0 && chmod(fixture.source.string, 0o644) == 0)
    var plan = fixture.plan
    plan.sourceIdentity = try StoreFiles(fixture.source).identity()
    let swap = StoreSwap(plan: plan, run: fixture.run, name: "R1", isStoreOffline: true)
    // Of this thread alone.
    setFileUser(Self.other)
    defer { setFileUser(0) }
    let notes = try swap.commit(assembled).notes
    #expect(notes.count == 1 && notes[0].contains("belongs to user \(Self.owner)"))
  }

  @Test func `says nothing where the owner is kept`() throws {
    let fixture = try SwapFixture(.settled)
    #expect(chown(fixture.source.string, Self.owner, 0) == 0)
    #expect(try fixture.swap.commit(try fixture.assemble()).notes == [])
  }
}
