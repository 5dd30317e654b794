import Foundation
import GodwitDurableFiles
import GodwitPlanning
import GodwitSQLite
import Testing

@testable import GodwitWorker

@Suite struct `An error of a policy` {
  private enum Refusal: Error, CustomStringConvertible {
    case first
    case tooMany(Int)

    var description: String { "said in its own words" }
  }

  private struct AppError: CustomNSError {
    static let errorDomain = "LibraryErrorDomain"
    var errorCode: Int { 7 }
  }

  private func failure(_ error: any Error, isCancellation: Bool = false) -> WorkerFailure {
    WorkerFailure(
      PolicyFailure(
        policy: "TagPolicy", mapping: "TagToTag", hook: "createDestinationInstances",
        entity: "Tag", primaryKey: 12, isCancellation: isCancellation, error: error) as any Error)
  }

  @Test func `keeps its identity across processes`() throws {
    let line = try WorkerMessage.failed(
      FailedTask(task: WorkerTask(stage: .copy, unit: 3), error: failure(AppError()))
    ).line()
    guard case .failed(let task)? = WorkerMessage(line: line) else {
      Issue.record("no failure came back")
      return
    }
    let error = try #require(task.error.reasons?.first?.error)
    #expect(error.domain == "LibraryErrorDomain")
    #expect(error.code == 7)
    #expect(error.type.hasSuffix("AppError"))
    #expect(task.error.reasons?.first?.entity == "Tag")
  }

  @Test func `is told with policy, hook, mapping, entity and key, in its own words`() {
    let told = failure(Refusal.tooMany(3))
    #expect(
      told.message
        == "the policy TagPolicy of TagToTag failed in createDestinationInstances, "
        + "Tag with Z_PK 12: said in its own words")
    #expect(told.reasons?.first?.error?.description == "said in its own words")
    #expect(told.reasons?.first?.reason == "policy")
    #expect(failure(Refusal.first, isCancellation: true).reasons?.first?.reason == "cancelled")
  }

  private struct Told: CustomNSError {
    var errorUserInfo: [String: Any] {
      [
        NSLocalizedDescriptionKey: "own words", NSLocalizedFailureReasonErrorKey: "why",
        "row": "ROW",
      ]
    }
  }

  @Test(
    arguments: [
      (NSError(domain: "Own", code: 3, userInfo: ["row": "ROW"]), "Own 3"),
      (
        CocoaError(
          .init(rawValue: 1570),
          userInfo: [NSLocalizedDescriptionKey: "name is required", "row": "ROW"]),
        "name is required"
      ),
      (CocoaError(.init(rawValue: 1570), userInfo: ["row": "ROW"]), "NSCocoaErrorDomain 1570"),
      (URLError(.badURL, userInfo: ["row": "ROW"]), "NSURLErrorDomain -1000"),
      (
        POSIXError(.ENOSPC),
        "Error Domain=NSPOSIXErrorDomain Code=28 \"No space left on device\""
      ), (Told(), "own words why"),
      (AppError(), "AppError()"), (Refusal.first, "said in its own words"),
    ] as [(any Error, String)])
  func `shows the texts that are meant for people, and nothing else of its user info`(
    error: any Error, text: String
  ) {
    #expect(error.ownDescription == text)
    #expect(!failure(error).message.contains("ROW"))
    let handler = StageHandlerError(error, in: .willMigrate, of: "stage")
    #expect(handler.description.hasSuffix(": \(text)"))
  }

  @Test(arguments: [
    (error: Refusal.first as any Error, isCancellation: false, code: 134_170),
    (Refusal.first, true, 134_120),
    // Core Data's own domain: the migration fails with exactly that code.
    (NSError(domain: NSCocoaErrorDomain, code: 1570), false, 1570),
    (NSError(domain: NSCocoaErrorDomain, code: 1570), true, 1570),
    (NSError(domain: "Other", code: 1570), false, 134_170),
  ])
  func `gives the failure its code where it is one of Core Data's`(
    error: any Error, isCancellation: Bool, code: Int
  ) {
    let failure = failure(error, isCancellation: isCancellation)
    #expect(failure.code == code)
    #expect(failure.kind == .refused)
  }

  @Test func `is none where the machine is to blame`() {
    let full = SQLiteError.failed(
      code: 13, message: "disk is full", statement: "INSERT", database: "")
    #expect(failure(full).kind == .outOfSpace)
    #expect(failure(full) == WorkerFailure(full))
  }
}
