import Foundation
import GodwitDurableFiles
import GodwitLedger
import SystemPackage

/// A folder for one ledger, gone with the value.
final class LedgerFolder {
  let path: FilePath

  init() throws {
    let place = FileManager.default.temporaryDirectory.resolvingSymlinksInPath()
    path = FilePath(place.path).appending("godwit-ledger-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      atPath: path.string, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path.string) }

  var ledger: FilePath { path.appending(Ledger.fileName) }

  func open() throws -> Ledger { try Ledger(writingAt: ledger, now: 1_000) }

  var names: [String] {
    get throws { try FileManager.default.contentsOfDirectory(atPath: path.string).sorted() }
  }
}

/// One run of three stores, in figures that are easy to recognise.
enum LedgerSample {
  static let run = LedgerRun(
    name: "20261121T010203-004", pipeline: "recipes-2.0", file: "/srv/recipes/pipeline.yaml",
    started: 1_000, host: "bar-tailed", workers: 2, options: ["run", "/srv/recipes"])

  static var migrated: LedgerAttempt {
    var attempt = LedgerAttempt(
      run: run.name, store: "/srv/recipes/ada/Recipes.sqlite", started: 1_000.5, ended: 1_001.25,
      verdict: "migrated", sourceBytes: 65_536,
      losses: [
        RunReport.Loss(
          kind: "attribute", entity: "Recipe", property: "isFavorite", count: 3,
          message: "Recipe.isFavorite has no successor: 3 values are dropped.")
      ],
      stages: [
        RunReport.Stage(stage: "copy", seconds: 0.25, rows: 20, bytes: 4_096),
        RunReport.Stage(stage: "commit", seconds: 0.125, rows: 0, bytes: 0),
      ])
    attempt.source = "Recipes"
    attempt.destination = "Recipes 2"
    attempt.rows = 20
    attempt.destinationBytes = 81_920
    attempt.digest = String(repeating: "ab", count: 32)
    attempt.identity = String(repeating: "cd", count: 16)
    attempt.output = attempt.store
    attempt.lane = 1
    attempt.host = "bar-tailed"
    attempt.uuid = "9F1C2B61-0000-4000-8000-000000000001"
    return attempt
  }

  static func failed(_ name: String, at time: Double = 1_002) -> LedgerAttempt {
    LedgerAttempt(
      run: run.name, store: "/srv/recipes/\(name)/Recipes.sqlite", started: time,
      ended: time + 0.5, verdict: "failed", sourceBytes: 4_096, code: 134_150,
      reasons: [
        RunReport.Reason(
          reason: "damaged", entity: "Recipe", count: 2, primaryKeys: [4, 7],
          message: "A page is damaged. Restore the store from a copy.")
      ])
  }

  static var backup: LedgerBackup {
    LedgerBackup(
      path: "\(migrated.store).godwit-backup-1.sqlite", store: migrated.store, run: run.name,
      bytes: 65_536, made: 1_001.25,
      marks: BackupMark(main: .init(inode: 7, size: 65_536, seconds: 1_001, nanoseconds: 5)),
      identity: migrated.identity, digest: migrated.digest)
  }

  static func write(to ledger: Ledger) throws {
    try ledger.writing {
      try ledger.begin(run)
      try ledger.setFound(4, in: run.name)
      try ledger.add(migrated)
      try ledger.add(backup)
      try ledger.add(failed("grace"))
      try ledger.add(failed("joan", at: 1_003))
      try ledger.countFailure(
        of: failed("grace").store, in: run.file, reason: "damaged", mark: "m", settings: "s",
        at: 1_002.5, limit: 3)
      try ledger.end(
        run.name, at: 1_004, exitCode: 3,
        RunReport.Counts(found: 4, migrated: 1, sameModel: 1, failed: 2))
    }
  }
}
