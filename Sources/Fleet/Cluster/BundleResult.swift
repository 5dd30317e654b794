import GodwitPlanning
import SystemPackage

/// `K.done`.
struct BundleEnd: Codable, Sendable, Equatable {
  var attempt: String
  /// How many of the bundle's stores have a result in the folder that is not found out again, see
  /// ``BundleResult/isNews``; nil for units.
  var results: Int?
}

/// What became of a store.
struct BundleResult: Codable, Sendable {
  var end: StoreEnd
  /// Seconds since 1970-01-01 UTC.
  var started: Double
  var ended: Double
  var lane: Int?
  var host: String
  /// ``StoreFacts/mark``.
  var mark: String
  /// By how many seconds it ended, by its machine's clock, before its array was made; nil for after that, and
  /// never written down.
  var secondsTooEarly: Double?
  /// By how many seconds the clock of its machine was ahead when its attempt began, which is taken off its times;
  /// nil for not at all, and never written down.
  var secondsAhead: Double?

  private enum CodingKeys: CodingKey { case end, started, ended, lane, host, mark }

  init(_ result: MigrationResult, _ facts: StoreFacts, ended: Double) {
    end = StoreEnd(result)
    (started, self.ended, lane) = (facts.started, ended, facts.lane)
    // As the scheduler calls it, where it does.
    (host, mark) = (TaskName.start.host, facts.mark)
  }

  var store: String { end.result.store }
  /// Whether another attempt at the bundle need not look at the store.
  var isFinal: Bool { end.result.verdict != .pending && !isOfEarlierCommit }
  /// Whether it tells of a commit that an earlier run began, and the store's own result is still to come.
  var isOfEarlierCommit: Bool { end.isOfEarlierCommit == true }
  /// Whether it is final and not found out again where it is lost.
  var isNews: Bool { isFinal && end.result.verdict != .sameModel }
  /// Whether the books have it whatever comes after it.
  var isLasting: Bool { isFinal || isOfEarlierCommit }
}

/// The units of a stage that were not performed where the store is coordinated.
struct HandedOut: Codable, Sendable, Equatable {
  var work: BundleManifest.UnitWork
  var units: [Int]
}
