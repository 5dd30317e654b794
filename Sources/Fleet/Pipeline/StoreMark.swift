import GodwitLedger

/// By what a store that an application wrote to is known again: as the one that godwit left, and no other or
/// older one that somebody put in its place.
struct StoreMark: Sendable {
  /// Nil where it is not known.
  private(set) var uuid: String?
  private var version: String?
  private var olderVersions: Set<String>

  init(_ states: LedgerStates) {
    (uuid, version) = (states.last?.uuid, states.last?.version)
    olderVersions = states.olderVersions
  }

  /// Of what an attempt wrote elsewhere.
  init(ofOutput attempt: LedgerAttempt) {
    (uuid, version) = (attempt.uuid, attempt.destination)
    olderVersions = []
    if let source = attempt.source, source != version { olderVersions.insert(source) }
  }

  /// Why a store that is sound is another; nil where it may be the one.
  func exchange(for found: StoreInspection) -> RunReport.Reason? {
    // First: by a mapping model the destination has a UUID of its own.
    if let older = found.version, olderVersions.contains(older) {
      let left = version.map { "it was left at \($0)" } ?? "it was at a later one"
      return RunReport.Reason(
        reason: "other-version",
        message:
          "\(found.store) is at version \(older) again, although \(left): somebody put an older store in "
          + "its place. Find out who did, or run the pipeline again.")
    }
    if let uuid, found.uuid != uuid {
      return RunReport.Reason(
        reason: "other-store",
        message:
          "\(found.store) is another store than the one that was left there: its UUID is "
          + "\(found.uuid ?? "missing"), and was \(uuid). Find out who put it there.")
    }
    return nil
  }
}
