import Foundation
import GodwitCheckpoints
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import StoreFixtures
import Testing

@testable import GodwitFleet

/// An error as a team's handler may throw it.
private enum NestError: Error, CustomStringConvertible {
  case storm, tooHigh
  var description: String { "the nest is out of reach" }
}

@Suite struct `An error of a staged migration` {
  private func judgement(_ error: any Error) -> RetryPolicy.Judgement {
    RetryPolicy.judgement(of: StageHandlerError(error, in: .didMigrate, of: "nests"))
  }

  @Test func `keeps what a handler threw`() throws {
    let judgement = judgement(NestError.tooHigh)
    #expect(judgement.ending == .badInput)
    #expect(judgement.verdict == .failed)
    #expect(judgement.code == 134_110)
    let reason = try #require(judgement.reasons.first)
    #expect(
      reason.message
        == "The didMigrate handler of the stage nests failed: the nest is out of reach")
    let error = try #require(reason.error)
    #expect(error.type.hasSuffix("NestError"))
    #expect(error.code == 1)
    #expect(error.description == "the nest is out of reach")
  }

  @Test func `is told in the words that are meant for people`() throws {
    struct Localized: LocalizedError {
      var errorDescription: String? { "The nest is empty." }
      var recoverySuggestion: String? { "Wait." }
    }
    let bridged = NSError(
      domain: "Nests", code: 7, userInfo: [NSLocalizedDescriptionKey: "The nest fell."])
    for (error, words) in [
      (Localized(), "The nest is empty. Wait."), (bridged, "The nest fell."),
    ] as [(any Error, String)] {
      let reason = try #require(judgement(error).reasons.first)
      #expect(reason.message.hasSuffix("failed: \(words)"))
      #expect(reason.error?.description == words)
    }
  }

  @Test func `tells of every object that a handler left invalid`() {
    let findings = [1570, 1610].map {
      StoreFinding(
        kind: .validation, entity: "Nest", property: "height", message: "is wrong", examples: [3],
        code: $0)
    }
    let several = judgement(StagedMigrationError.invalidObjects(findings))
    #expect(several.verdict == .refused)
    #expect(several.code == 1560)
    #expect(several.reasons.count == 2)
    #expect(several.reasons.allSatisfy { $0.message.hasPrefix("The didMigrate handler of") })
    #expect(judgement(StagedMigrationError.invalidObjects([findings[0]])).code == 1570)
  }

  @Test func `names the handler that used what is over`() {
    let judgement = judgement(StagedMigrationError.callIsOver)
    #expect(judgement.ending == .badInput && judgement.code == 134_110)
    #expect(judgement.reasons.map(\.reason) == ["handler"])
    #expect(
      judgement.reasons[0].message.hasPrefix("The didMigrate handler of the stage nests: A context")
    )
  }

  /// A helper with a time limit of its own may throw it; the same command would end so for ever.
  @Test func `is a failure where a handler throws a cancellation and nobody stopped the run`()
    async throws
  {
    let scratch = try Scratch()
    let store = scratch.path.appending("a.sqlite")
    let versions = try [FixtureModels.Recipes.one, .two].map {
      ModelVersion(name: $0.rawValue, model: try $0.model(), isCurrent: $0 == .two, path: $0.path)
    }
    try DrawnStore(versions[0].model).write(to: store.string) { _ in }
    let references = try versions.map {
      ModelReference(
        name: $0.name, versionChecksum: try EntityHierarchy($0.model).versionChecksum)
    }
    var request = MigrationRequest(
      store: store, models: versions, destination: versions[1], output: nil, snapshotFolder: "")
    request.chain = .staged
    request.stages = try StagedMigration([
      .custom(
        CustomMigrationStage(
          from: references[0], to: references[1], label: "nests",
          willMigrate: { _ in throw CancellationError() }))
    ])
    let run = StoreRun(
      request, directory: RunDirectory(scratch.path.appending("run")),
      settings: .init(pool: .init(executable: "/bin/false", workerCount: 1)))
    let result = await run.run()
    #expect(result.verdict == .failed && result.ending == .badInput, "\(result.reasons)")
    #expect(result.reasons.map(\.reason) == ["handler"])
    #expect(result.reasons.first?.error?.type == "Swift.CancellationError")
  }

  @Test func `says what must be inferred and cannot be`() {
    let reasons = [Reason(reason: "attribute-type", entity: "Nest", message: "no.")]
    let judgement = RetryPolicy.judgement(
      of: StagedMigrationError.missingMapping(source: "1", destination: "2", reasons))
    #expect(judgement.verdict == .needsMapping)
    #expect(judgement.code == 134_140)
    #expect(judgement.reasons.map(\.message) == ["From 1 to 2: no."])
    #expect(judgement.reasons.map(\.entity) == ["Nest"])
  }

  @Test(arguments: [
    (StagedMigrationError.frameworkVersionMismatch, 134_505 as Int?),
    (.backwardMigration(store: "2", destination: "1"), 134_506),
    (.modelReferenceNotFound(name: "1", checksum: "x"), 134_504),
    (.unknownVersion(checksum: "x"), nil),
  ])
  func `ends the run with Core Data's code`(error: StagedMigrationError, code: Int?) {
    let judgement = RetryPolicy.judgement(of: error)
    #expect(judgement.ending == .badInput)
    #expect(judgement.code == code)
    #expect(judgement.reasons.map(\.message) == ["\(error)"])
  }
}
