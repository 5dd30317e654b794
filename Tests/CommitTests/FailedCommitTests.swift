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
    var takenBack = 0
    for step in 1...steps {
      let fixture = try SwapFixture(way)
      let names = files(below: fixture.folder)
      let source = try FileMark(fixture.source)
      let assembled = try fixture.assemble()
      let failing = StepCounter(stoppingAfter: step, by: refusal)
      #expect(throws: DurabilityError.self) {
        try DurableSteps.observing(with: { _, _ in try failing.pass() }) {
          _ = try fixture.swap.commit(assembled)
        }
      }
      // A clone with the content of the log is the store, too, and is dealt with by the next run.
      let isSource =
        try way == .beside
        ? FileMark(fixture.destination) == nil
        : FileMark(fixture.source)?.isSameFile(as: source) == true
      if isSource {
        #expect(files(below: fixture.folder) == names, "step \(step)")
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
    #expect(takenBack > 3)
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
