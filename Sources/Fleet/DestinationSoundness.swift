import Foundation
import GodwitCommit
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// The destination breaks rules of `godwit verify` that the source does not break.
///
/// It was not published, and the source is unchanged.
package struct UnsoundDestination: Error, Sendable {
  /// What the source does not have; counts are of the rows that are new.
  package var findings: [StoreFinding]
  /// True where rows, or code of the team's own, are the cause. Else it is a fault of Godwit.
  package var isCausedByRows: Bool

  /// - Parameter isOwnMapping: True where a mapping model, a policy or a handler decided values.
  init(_ findings: [StoreFinding], isOwnMapping: Bool) {
    self.findings = findings
    isCausedByRows = findings.allSatisfy { finding in
      switch finding.kind {
      case .unique: true
      case .required, .type, .external, .dangling, .targetEntity, .inverse, .order: isOwnMapping
      default: false
      }
    }
  }
}

/// Judges an assembled destination before its commit: structure and external files here, what the
/// workers found in its rows, and all of it against what the source has already.
struct DestinationSoundness {
  let plan: MigrationPlan
  let request: MigrationRequest
  let snapshot: FilePath

  /// Numbers of the jobs that the workers are to do after the verify stage.
  func jobs(of assembled: AssembledFile, after verification: StoreVerification) throws -> [Int] {
    try verification.remaining(assembled.open().jobs)
  }

  /// What every job finds in the rows of a file that the workers did not see.
  private func allJobs(of binding: StoreBinding) throws -> [StoreFinding] {
    try StoreSoundness.jobs(binding, aspects: Set(StoreFinding.Kind.allCases)).flatMap {
      try StoreSoundness.run($0, on: binding.store.connection)
    }
  }

  /// - Parameters:
  ///   - found: What the workers found in the rows; nil to look at all of it again.
  ///   - newFiles: External data files that the destination gets beside the source's.
  /// - Returns: Findings that the source had, for the report; that its files of external data are all
  ///   missing is one of them.
  /// - Throws: ``UnsoundDestination``.
  func judge(
    _ assembled: AssembledFile, found: [StoreFinding]?, newFiles: FilePath
  ) throws -> [StoreFinding] {
    let binding = try assembled.open().binding
    var findings = try found ?? allJobs(of: binding)
    findings += try StoreSoundness.structure(of: binding)
    let missing = try StoreSoundness.externalFiles(
      of: binding, in: [newFiles, FilePath(plan.externalDataPath)])
    let notes = missing.filter { !$0.kind.isFailure }
    let failures = (findings + missing).filter(\.kind.isFailure)
    if failures.isEmpty { return notes }
    // Only now is the source asked the same, which takes as long as `godwit verify`.
    let source = try SourceStore(path: FilePath(plan.readPath), snapshotFolder: snapshot)
    let origins = try FindingOrigins(plan, request, store: source)
    let before = try origins.findings(of: source)
    let new = failures.compactMap { finding -> StoreFinding? in
      let count = origins.newRows(finding, beside: before)
      guard count > 0 else { return nil }
      var rest = finding
      rest.count = count
      return rest
    }
    if new.isEmpty { return failures + notes }
    // The copy stage has written each file before the row that refers to it.
    if new.allSatisfy({ $0.message == StoreSoundness.missingFile }) {
      throw CommitError.damagedExternalData(path: newFiles)
    }
    throw UnsoundDestination(new, isOwnMapping: plan.mapped != nil)
  }

  /// The same for a store that a stage's handler has changed in place: its rows have kept their keys.
  ///
  /// - Parameters:
  ///   - written: The store after the handler, with its external data beside it.
  ///   - earlier: The store that the handler was given a copy of.
  ///   - told: What the steps before have found.
  /// - Returns: Of that, what the handler has not mended.
  /// - Throws: ``UnsoundDestination``.
  static func judge(
    handled written: StoreBinding, earlier: () throws -> StoreBinding, told: [StoreFinding]
  ) throws -> [StoreFinding] {
    let failures = try StoreSoundness.check(written).filter(\.kind.isFailure)
    if failures.isEmpty, !told.contains(where: \.kind.isFailure) { return told }
    let earlier = try earlier()
    let before = try StoreSoundness.check(earlier).filter(\.kind.isFailure)
    let new = try failures.compactMap { finding -> StoreFinding? in
      if let rows = try StoreSoundness.newRows(of: finding, in: written, since: earlier) {
        return rows.count > 0 ? rows : nil
      }
      let known = before.reduce(Int64(0)) { sum, other in
        let isSame =
          other.kind == finding.kind && other.entity == finding.entity
          && other.property == finding.property
        return isSame ? sum + other.count : sum
      }
      return finding.count > known ? finding : nil
    }
    guard new.isEmpty else { throw UnsoundDestination(new, isOwnMapping: true) }
    return told.compactMap { finding in
      guard before.contains(where: finding.isSame) else { return finding }
      return failures.first(where: finding.isSame)
    }
  }
}

extension RetryPolicy {
  static func judgement(of error: UnsoundDestination) -> Judgement {
    let isUnique = error.findings.contains { $0.kind == .unique }
    var judgement =
      error.isCausedByRows
      ? Judgement(.badInput, "destination", "", code: isUnique ? 134_111 : 134_110)
      : Judgement(.fatal, "internal", "")
    judgement.verdict = error.isCausedByRows ? .refused : .failed
    judgement.reasons = error.findings.map { finding in
      var reason = Reason(finding: finding)
      reason.message =
        "The new store would break a rule that the source keeps: \(finding). "
        + (error.isCausedByRows
          ? "Nothing was replaced. Change the rows, or the mapping model or code that makes them."
          : "This is a fault of Godwit, and the source is unchanged. Report it with this message.")
      return reason
    }
    judgement.findings = error.findings
    return judgement
  }
}
