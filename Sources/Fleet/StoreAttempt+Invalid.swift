import Foundation
import GodwitBarriers
import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitStagedObjects
import GodwitWorker
import SystemPackage

// Rows that the destination's validation refuses, where the request says to do something about them.
extension StoreAttempt {
  /// Where the rows that were set aside are noted, until the commit.
  private var rejects: FilePath { directory.path.appending("rejects.sqlite") }

  /// Whether objects were taken out of what was assembled.
  var setsObjectsAside: Bool { get throws { try FileKind(at: rejects) == .regular } }

  /// A migration by a mapping model saves its objects, and saving validates them.
  mutating func stopAtInvalidRows(_ plan: MigrationPlan) async throws {
    let invalid = ledger.findings.filter { $0.code != nil }
    guard !invalid.isEmpty else { return }
    throw try await invalidRows(invalid, plan)
  }

  /// Sees to invalid rows in the assembled file.
  ///
  /// - Returns: False where there is none, or nothing is to be done about them.
  /// - Throws: ``InvalidRows`` where rows break rules all the same.
  mutating func cleanInvalidRows(_ plan: MigrationPlan, _ path: FilePath) async throws -> Bool {
    let invalid = ledger.findings.filter { $0.code != nil }
    guard plan.mapped != nil, request.invalid != .fail, !invalid.isEmpty else { return false }
    let cleaning = InvalidRowCleaning(request.invalid, rejects: rejects)
    let model = try plan.control.hierarchy()
    let origins = ObjectOrigins(plan: plan, run: directory)
    let outcome: InvalidRowCleaning.Outcome
    do {
      outcome = try await onOwnThread {
        try cleaning.clean(
          path, model: model,
          settings: StageStore.Settings(
            side: .destination, pattern: RegularExpression.matcher,
            runDate: plan.mapped?.runDate ?? Date().timeIntervalSinceReferenceDate)
        ) { body in
          try origins.forEach { try body($0.entity, $0.key, $1.entity, $1.key) }
        }
      }
    } catch StagedMigrationError.invalidObjects(let findings) {
      throw try await invalidRows(findings, plan)
    }
    ledger.forgetInvalidRows()
    take(outcome)
    try refuseLosses(plan)
    return true
  }

  /// The error, whose findings take the place of those that the stages had.
  private mutating func invalidRows(
    _ findings: [StoreFinding], _ plan: MigrationPlan
  ) async throws -> InvalidRows {
    let origins = ObjectOrigins(plan: plan, run: directory)
    let named = try await onOwnThread { try origins.named(findings) }
    ledger.forgetInvalidRows()
    return InvalidRows(findings: named)
  }

  private mutating func take(_ outcome: InvalidRowCleaning.Outcome) {
    for (entity, count) in outcome.setAside.sorted(by: { $0.key < $1.key }) {
      result.losses.append(
        Loss(
          .setAside, entity: entity, count: count, primaryKeys: outcome.examples[entity] ?? [],
          message: "\(entity): \(count) \(count == 1 ? "object breaks" : "objects break") the "
            + "destination's rules, and \(count == 1 ? "is" : "are") set aside."))
      if let all = result.counts?[entity] { result.counts?[entity] = all - count }
      result.rows = result.rows.map { $0 - count }
    }
    func add(_ kind: Loss.Kind, _ counts: [String: Int64], _ message: (String, Int64) -> String) {
      for (name, count) in counts.sorted(by: { $0.key < $1.key }) {
        let parts = name.unicodeScalars.split(separator: ".", maxSplits: 1).map { String($0) }
        result.losses.append(
          Loss(
            kind, entity: parts[0], property: parts.last, count: count,
            primaryKeys: outcome.examples[name] ?? [], message: message(name, count)))
      }
    }
    add(.reference, outcome.cleared) { name, count in
      "\(name) points to objects that are set aside: \(count) "
        + "\(count == 1 ? "reference is" : "references are") dropped."
    }
    add(.defaulted, outcome.defaulted) { name, count in
      "\(name): \(count) \(count == 1 ? "value breaks" : "values break") the "
        + "destination's rules, and \(count == 1 ? "has" : "have") the default value now."
    }
    if !outcome.setAside.isEmpty {
      result.setAside = outcome.setAside.values.reduce(0, +)
    }
  }

  /// Puts the store of rejects beside the output, before the commit: whoever finds the new store finds
  /// what is missing in it.
  ///
  /// The name is kept first: what a run leaves that is killed before its commit, the next one removes.
  ///
  /// - Returns: Nil where nothing was set aside.
  func publishRejects(name: String) throws -> FilePath? {
    guard result.setAside != nil else { return nil }
    try RunFolder(directory: directory).keep(name: name)
    let target = rejectsPath(name, beside: request.destinationPath)
    // Rows of the source: who may read that may read them.
    try DurableFile.copy(rejects, to: target, rightsOf: request.store)
    return target
  }

  private func rejectsPath(_ name: String, beside output: FilePath) -> FilePath {
    output.removingLastComponent().appending("\(rejectsHead(of: output))\(name).sqlite")
  }

  private func rejectsHead(of output: FilePath) -> String {
    "\(output.lastComponent?.stem ?? "store").godwit-rejects-"
  }

  /// Names the rejects of an output that an earlier run wrote: the file beside it that notes what was set aside
  /// now. Where that is gone, it is written again.
  mutating func findRejects(beside output: FilePath) throws {
    guard result.setAside != nil, result.rejects == nil else { return }
    let folder = output.folder
    let head = rejectsHead(of: request.destinationPath)
    for file in try DurableFile.names(in: folder).sorted()
    where file.begins(with: head) && file.ends(with: ".sqlite") {
      let place = folder.appending(file)
      guard try FileKind(at: place) == .regular,
        (try? InvalidRowCleaning.note(sameIn: rejects, place)) == true
      else { continue }
      return result.rejects = place.string
    }
    guard let name, let path = try publishRejects(name: name) else { return }
    result.rejects = path.string
    result.notes.append("Its store of rejects was gone, and is written again.")
  }

  /// Where an earlier run has put its rejects, if it set any aside.
  private func earlierRejects(beside output: FilePath) throws -> FilePath? {
    try RunFolder(directory: directory).earlierName().map { rejectsPath($0, beside: output) }
  }

  /// Names the rejects of a commit that an earlier run began.
  mutating func findRejects(of journal: CommitJournal) throws {
    guard result.rejects == nil,
      let path = try earlierRejects(beside: FilePath(journal.store)),
      try FileKind(at: path) == .regular
    else { return }
    result.rejects = path.string
  }

  /// Counts what the rejects of a commit hold of which nothing else was kept.
  mutating func recountRejects() {
    guard result.setAside == nil, let rejects = result.rejects else { return }
    do {
      take(try InvalidRowCleaning.outcome(notedIn: FilePath(rejects)))
    } catch {
      note("The objects that are set aside in \(rejects) cannot be counted: \(error)")
    }
  }

  /// Removes what an earlier run has put beside the store, whole or in part, for a commit that was
  /// never begun, or was taken back.
  ///
  /// - Parameter output: Where the destination of that commit was to go; nil for where this one is.
  func removeLeftRejects(beside output: FilePath? = nil) throws {
    guard let path = try earlierRejects(beside: output ?? request.destinationPath) else { return }
    if try FileKind(at: path) == .regular { try DurableFile.remove(path) }
    try DurableFile.removeUnfinished([path])
  }
}
