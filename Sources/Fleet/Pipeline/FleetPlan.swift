import GodwitDurableFiles
import GodwitPlanning
import SystemPackage

/// What would become of a pipeline's stores, on the whole: the last but one line of
/// `godwit plan PIPELINE --json`.
///
/// Fields may be added to and never change meaning.
package struct FleetPlan: Codable, Sendable, Equatable {
  /// Stores of one version that go the same way.
  package struct Cohort: Codable, Sendable, Equatable {
    /// The version that the stores were found in; nil where it is the destination's.
    package var source: String?
    package var destination: String?
    /// The version checksum of the model found, which tells versions of one name apart; nil where it is
    /// not known before the stores are migrated.
    package var sourceChecksum: String?
    package var verdict: MigrationResult.Verdict
    package var stores: Int
    package var bytes: Int64
    /// The steps of a chain of versions; nil for one step.
    package var path: [String]?
    /// `inferred`, or the files of the mapping models; nil where nothing is to be done.
    package var way: String?
    /// Note → how many stores it is about.
    package var notes: [String: Int]
  }

  /// What the destination has no place for, of all stores together.
  package struct LossTotal: Codable, Sendable, Equatable {
    package var kind: Loss.Kind
    package var entity: String?
    package var property: String?
    /// How many rows, values, references or transactions.
    package var count: Int64
    package var stores: Int
  }

  /// What became of the stores that were migrated privately for the forecast.
  package struct Trial: Codable, Sendable, Equatable {
    package var stores: Int
    /// Why stores were not migrated: the plan itself looks at no row's values.
    package var reasons: [ReasonGroups.Group] = []
    /// What the others lost that their own plans do not count: what only rows, or a later step, show.
    package var losses: [LossTotal] = []

    package init(stores: Int) { self.stores = stores }

    /// Whether one of them failed for a reason that does not pass.
    package var fails: Bool { reasons.contains { $0.verdict != .pending } }
  }

  package private(set) var event = "fleet-plan"
  package var pipeline: String
  package var cohorts: [Cohort] = []
  /// The stores that would not be migrated.
  package var reasons: [ReasonGroups.Group] = []
  package var losses: [LossTotal] = []
  /// What the migration will take; nil where nothing would be migrated, or no forecast was asked for.
  package var forecast: FleetForecast?
  /// What became of the stores that were migrated privately for the forecast; nil where none was.
  package var trial: Trial?
  /// Bytes that are free on the volume of the stores that has the least; nil where that is not known.
  package var freeBytes: Int64?

  package init(pipeline: String) { self.pipeline = pipeline }
}

/// What a person should know of stores of the destination's version, with how many stores.
package struct NoteTotals: Sendable {
  package private(set) var all: [String: Int] = [:]

  /// More than these are of single stores.
  private static let mostNotes = 10

  package init() {}

  /// Adds the notes of a store of the destination's version; nothing for any other.
  package mutating func add(_ result: MigrationResult) {
    guard result.verdict == .sameModel else { return }
    for note in result.notes where all[note] != nil || all.count < Self.mostNotes {
      all[note, default: 0] += 1
    }
  }
}

/// Adds up what migrations lose, or would lose, by entity and property.
package struct LossTotals: Sendable {
  private struct Key: Hashable {
    var kind: Loss.Kind
    var entity: String?
    var property: String?
  }

  private var totals: [Key: FleetPlan.LossTotal] = [:]

  package init() {}

  /// Adds what a store that is migrated loses; nothing for any other.
  package mutating func add(_ result: MigrationResult) {
    guard result.verdict == .migrated else { return }
    // A chain may lose the same in several steps.
    var known: Set<Key> = []
    for loss in result.losses {
      let key = Key(kind: loss.kind, entity: loss.entity, property: loss.property)
      let total = totals[key]
      totals[key] = FleetPlan.LossTotal(
        kind: loss.kind, entity: loss.entity, property: loss.property,
        count: (total?.count ?? 0).added(loss.count),
        stores: (total?.stores ?? 0) + (known.insert(key).inserted ? 1 : 0))
    }
  }

  /// The most frequent first.
  package var all: [FleetPlan.LossTotal] {
    totals.values.sorted {
      ($1.count, $0.entity ?? "", $0.property ?? "") < (
        $0.count, $1.entity ?? "", $1.property ?? ""
      )
    }
  }
}

extension [Loss] {
  /// What is lost beyond what is known: of each entity and property the rest of the count.
  func beyond(_ known: [Loss]) -> [Loss] {
    func key(_ loss: Loss) -> [String?] { [loss.kind.rawValue, loss.entity, loss.property] }
    var left: [[String?]: Int64] = [:]
    for loss in known { left[key(loss)] = (left[key(loss)] ?? 0).added(loss.count) }
    return compactMap { loss in
      let told = Swift.min(left[key(loss)] ?? 0, loss.count)
      left[key(loss), default: 0] -= told
      var rest = loss
      rest.count -= told
      return rest.count > 0 ? rest : nil
    }
  }
}

/// Adds up a ``FleetPlan``, store by store.
struct FleetPlanMaker {
  private struct Key: Hashable {
    var source: String?
    var destination: String?
    /// Of the models of the first step: versions of several models may have one name.
    var checksums: [String]
    var verdict: MigrationResult.Verdict
    var path: [String]?
    var way: String?
  }

  /// More notes than these about a cohort are of single stores.
  private static let mostNotes = 10

  private var cohorts: [Key: FleetPlan.Cohort] = [:]
  private var reasons = ReasonGroups()
  private var losses = LossTotals()
  /// The stores that are still to be migrated.
  private(set) var migrated: [FoundStore] = []
  /// Of those of them that lose anything. There may be very many: without messages and rows.
  private(set) var counted: [FilePath: [Loss]] = [:]

  /// - Parameter isEarlier: Whether an earlier run has migrated it, so that no time and space is needed.
  mutating func add(_ store: FoundStore?, _ result: MigrationResult, isEarlier: Bool = false) {
    reasons.add(result)
    losses.add(result)
    guard let store, result.verdict == .migrated || result.verdict == .sameModel else { return }
    if result.verdict == .migrated, !isEarlier {
      migrated.append(store)
      if !result.losses.isEmpty {
        counted[store.path] = result.losses.map {
          Loss($0.kind, entity: $0.entity, property: $0.property, count: $0.count, message: "")
        }
      }
    }
    let path = (result.path?.count ?? 0) > 1 ? result.path : nil
    let key = Key(
      source: result.source, destination: result.destination,
      checksums: result.plan.map { [$0.sourceChecksum, $0.destinationChecksum] } ?? [],
      verdict: result.verdict, path: path,
      way: result.verdict == .migrated ? Self.way(result) : nil)
    var cohort =
      cohorts[key]
      ?? FleetPlan.Cohort(
        source: key.source, destination: key.destination, sourceChecksum: key.checksums.first,
        verdict: key.verdict, stores: 0, bytes: 0, path: path, way: key.way, notes: [:])
    cohort.stores += 1
    cohort.bytes = cohort.bytes.added(store.bytes)
    for note in result.notes
    where cohort.notes[note] != nil || cohort.notes.count < Self.mostNotes {
      cohort.notes[note, default: 0] += 1
    }
    cohorts[key] = cohort
  }

  private static func way(_ result: MigrationResult) -> String? {
    if (result.path?.count ?? 0) > 1 { return nil }
    guard let models = result.plan?.mappingModels else { return nil }
    return models.isEmpty ? "inferred" : models.joined(separator: ", then ")
  }

  func plan(_ pipeline: String) -> FleetPlan {
    var plan = FleetPlan(pipeline: pipeline)
    func names(_ cohort: FleetPlan.Cohort) -> (String, String, String) {
      (cohort.source ?? "", cohort.way ?? "", cohort.sourceChecksum ?? "")
    }
    plan.cohorts = cohorts.values.sorted {
      $0.stores == $1.stores ? names($0) < names($1) : $0.stores > $1.stores
    }
    plan.reasons = reasons.all
    plan.losses = losses.all
    return plan
  }
}
