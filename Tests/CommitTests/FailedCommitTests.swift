import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPersistentStore
import StoreFixtures
import Synchronization
import SystemPackage
import Testing

@testable import GodwitCommit

@Suite struct `A commit that fails` {
  /// As a system call fails.
  private let refusal = DurabilityError.failed(
    call: "renameat2", path: "/nowhere", .notPermitted)

  @Test(arguments: SwapFixture.Way.allCases)
  func `leaves nothing beside its store while that is the old one`(way: SwapFixture.Way) throws {
    let steps = try SwapFixture.durableSteps(way)
    #expect(steps > 10)
    var (takenBack, noted, unfinished) = (0, 0, 0)
    for step in 1...steps {
      let fixture = try SwapFixture(way)
      let names = files(below: fixture.folder)
      let source = try FileMark(fixture.source)
      let assembled = try fixture.assemble()
      let failing = StepCounter(stoppingAfter: step, by: refusal)
      do {
        let journal = try DurableSteps.observing(with: { _, _ in try failing.pass() }) {
          try fixture.swap.commit(assembled)
        }
        // External data that is not removed stops nothing: the store is the new one.
        #expect(journal.state == .finished && journal.notes.count == 1, "step \(step)")
        noted += 1
      } catch is DurabilityError {
        #expect(try fixture.content() != .new, "step \(step)")
      } catch let error as UnfinishedCommit {
        // Whoever hears of the failure alone would take the store for the old one.
        #expect(try fixture.content() == .new, "step \(step)")
        let kept = try error.backup.map { try fixture.content(of: $0) }
        #expect(kept == (way == .beside ? nil : .old), "step \(step)")
        unfinished += 1
      }
      // A clone with the content of the log is the store, too, and is dealt with by the next run.
      let isSource =
        try way == .beside
        ? FileMark(fixture.destination) == nil
        : FileMark(fixture.source)?.isSameFile(as: source) == true
      if isSource {
        #expect(files(below: fixture.folder) == names, "step \(step)")
        #expect(try !hasUnfinished(below: fixture.folder), "step \(step)")
        takenBack += 1
      } else {
        #expect(try DurableFile.exists(fixture.run.journal), "step \(step)")
      }
      if case .committed = try fixture.recover() {
      } else {
        try fixture.swap.commit(try fixture.assemble())
      }
      #expect(try fixture.content() == .new, "step \(step)")
      #expect(files(below: fixture.folder) == fixture.expectedFiles, "step \(step)")
    }
    #expect(takenBack > 3 && unfinished > 0)
    #expect(noted == (way == .beside ? 0 : 2))
  }

  @Test(arguments: [SwapFixture.Way.settled, .walled, .small])
  func `is none where obsolete external data cannot be removed after the exchange`(
    way: SwapFixture.Way
  ) throws {
    let fixture = try SwapFixture(way)
    let assembled = try fixture.assemble()
    let file = StoreFiles(fixture.source).externalDataFolder.appending(SwapFixture.obsolete)
    let refusal = DurabilityError.failed(call: "unlink", path: file, .permissionDenied)
    let journal = try DurableSteps.observing(with: { step, path in
      if step == .removed, path == file { throw refusal }
    }) { try fixture.swap.commit(assembled) }
    #expect(journal.state == .finished)
    #expect(journal.notes.count == 1)
    let note = journal.notes.first ?? ""
    #expect(note.contains("1 file of external data") && note.contains("\(refusal)"))
    #expect(note.contains(journal.backup.store.string))
    guard case .committed(let found) = try fixture.recover() else {
      Issue.record("the commit is finished")
      return
    }
    #expect(way == .small || found.notes == journal.notes)
    #expect(try fixture.content() == .new)
  }

  /// The state folder may lie on another volume than the store.
  @Test(arguments: ["journal.json", "Recipes.sqlite.godwit-backup-R1.sqlite"])
  func `for want of space names what could not be written`(name: String) throws {
    let fixture = try SwapFixture(.settled)
    let assembled = try fixture.assemble()
    let path = name == "journal.json" ? fixture.run.journal : fixture.folder.appending(name)
    #expect(throws: CommitError.outOfSpace(path: path)) {
      try DurableSteps.observing(with: { _, there in
        if there == path { throw DurabilityError.failed(call: "write", path: path, .noSpace) }
      }) { _ = try fixture.swap.commit(assembled) }
    }
  }

  @Test(arguments: [SwapFixture.Way.settled, .walled, .small])
  func `leaves nothing either when it was cut off before`(way: SwapFixture.Way) throws {
    let fixture = try SwapFixture(way)
    let names = files(below: fixture.folder)
    let assembled = try fixture.assemble()
    // Killed where the backup is made and nothing is exchanged.
    #expect(throws: SimulatedCrash.self) {
      try DurableSteps.observing(with: { _, _ in
        if try DurableFile.exists(fixture.backup) { throw SimulatedCrash() }
      }) { _ = try fixture.swap.commit(assembled) }
    }
    #expect(files(below: fixture.folder) != names)
    // The recovery fails at its exchange, which is the first step that gives the store another file.
    let failing = StepCounter(stoppingAfter: 1, by: refusal)
    #expect(throws: DurabilityError.self) {
      try DurableSteps.observing(with: { _, _ in try failing.pass() }) { _ = try fixture.recover() }
    }
    #expect(files(below: fixture.folder) == names)
    try fixture.swap.commit(try fixture.assemble())
    #expect(files(below: fixture.folder) == fixture.expectedFiles)
  }
}

extension SwapFixture {
  fileprivate var backup: FilePath { FilePath(source.string + ".godwit-backup-R1.sqlite") }
}
