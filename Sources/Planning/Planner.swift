import FoundationEssentials
import GodwitDigests
import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

/// Turns a request and a store into a plan, or into the reason why there is none.
///
/// Planning reads and decides; it writes nothing but, for a store with a WAL, a private clone in
/// the run directory. The same input gives the same plan, so that a rerun finds its checkpoints.
package struct Planner: Sendable {
  package init() {}

  /// - Parameters:
  ///   - identity: The state of the store that the caller has just looked at; nil to look now.
  ///   - opened: Gets the store as it was opened, before it is planned for.
  /// - Throws: ``PlanError``, `StoreError`, `ModelError`, `SQLiteError`.
  package func plan(
    _ request: MigrationRequest, identity: StoreIdentity? = nil,
    opened: (SourceStore) -> Void = { _ in }
  ) throws -> PlanOutcome {
    let store = try SourceStore(
      path: request.store, snapshotFolder: request.snapshotFolder, identity: identity)
    opened(store)
    do {
      return try plan(request, for: store)
    } catch let error as SQLiteError {
      throw DamageProbe.explained(error, path: store.readPath.string)
    }
  }

  private func plan(_ request: MigrationRequest, for store: SourceStore) throws -> PlanOutcome {
    let request = try MergedModels.resolve(request, for: store)
    guard let foreign = try ForeignStore(store, request) else {
      return try plan(request, store, nil)
    }
    guard !request.mappings.isEmpty else { return foreign.outcome() }
    do {
      return try plan(request, store, foreign)
    } catch MappingError.noneMatches(let mismatches) {
      return foreign.outcome(mismatches)
    } catch PlanError.missingSourceModel {
      return foreign.outcome()
    }
  }

  /// - Parameter foreign: What is to be said of a store that only a mapping model can make the models' own.
  private func plan(
    _ request: MigrationRequest, _ store: SourceStore, _ foreign: ForeignStore?
  ) throws -> PlanOutcome {
    var found = try SourceModelSearch(store: store, models: request.models).find()
    let (destination, whole, notes) = try destinationHierarchy(request, found)
    found.notes += notes + [try store.logNote()].compactMap(\.self)
    if destination.versionHashes == store.metadata.versionHashes {
      return .sameModel(notes: found.notes + misreading(of: found, by: destination))
    }
    guard request.migrates else {
      return .refused(
        code: 134_100,
        [
          Reason(
            reason: "incompatible",
            message:
              "The model is incompatible with the one that created the store, and migration is not permitted. Run without --no-migrate."
          )
        ])
    }
    let inference = InferredMapping(source: found.hierarchy, destination: destination)
    let mapped = try MappedPlanner(
      request, source: found.hierarchy, destination: destination,
      whole: (source: found.whole, destination: whole))
    if mapped.isUsed { return try plan(request, store, found, whole, inference, mapped) }
    if let foreign { return foreign.outcome(mapped.mismatches) }
    let mismatches = mapped.mismatches.map(Reason.init(mismatch:))
    guard request.infersMapping else {
      return .needsMapping(
        code: 134_140,
        [
          Reason(
            reason: "missing-mapping",
            message:
              "There is no mapping model for the migration, and inferring one is not permitted. Give one, or run without --no-infer."
          )
        ] + mismatches)
    }
    let binding = StoreBinding(store, found.hierarchy)
    // First: what the control tables contradict is no reason to change a model.
    let damage = try requireSoundness(binding, request)
    guard inference.isPossible else {
      return .needsMapping(
        code: 134_190, inference.refusals.map(Reason.init(refusal:)) + mismatches)
    }
    let destinationLayout = StoreLayout(destination)
    try destinationLayout.requireUsable()
    var context = PlanContext(
      store: store, source: binding.layout, destination: destinationLayout,
      inference: inference,
      census: try StoreCensus(binding, shardBytes: request.undividedBytes))
    try requireOwners(of: context.census, request)
    var conditions = RowConditions(context: context)
    let answer = try conditions.answer(request.losses)
    guard answer.refusals.isEmpty else { return refusal(answer, inference) }
    context.crowded = answer.crowded
    var known = found
    if !mapped.mismatches.isEmpty {
      known.notes.append(
        "The mapping was inferred, since every mapping model given names other models than these. "
          + "--no-infer forbids that.")
      known.notes += mapped.notes
    }
    return try accepted(
      try PlanMaker(
        request: request, found: known, whole: whole, context: context, binding: binding,
        acceptedDamage: damage, losses: answer.losses
      ).plan(), request, context)
  }

  /// What a person should know of a store that opens under a model and is not read as it was written.
  private func misreading(
    of found: SourceModelSearch.Found, by destination: EntityHierarchy
  ) -> [String] {
    guard let own = found.own else { return [] }
    let difference = UnhashedDifference.between(given: destination, own: own)
    var notes: [String] = []
    let misread = difference.storage.filter { !$0.isCarried }
    if !misread.isEmpty {
      notes.append(
        "The store opens under the destination without a migration, since version hashes do not cover all, "
          + "and is not as the destination reads it: "
          + "\(misread.map(\.description).joined(separator: "; ")). "
          + "A hash modifier in the destination has it migrated.")
    }
    guard !difference.identifiers.isEmpty else { return notes }
    let renames = InferredMapping(source: own, destination: destination).renames
    guard !renames.isEmpty else { return notes }
    return notes + [
      "The store opens under the destination without a migration, since version hashes do not cover renaming "
        + "identifiers, and nothing of what these say is done: \(renames.joined(separator: "; ")). "
        + "A hash modifier in the destination has it done."
    ]
  }

  /// What rows forbid. A to-many that becomes a to-one is inferred only where no row is in the way:
  /// where others forbid the migration, it takes a mapping model in any case.
  private func refusal(
    _ answer: RowConditions.Answer, _ inference: InferredMapping
  ) -> PlanOutcome {
    let narrowed = inference.rowConditions.map(\.refusal).filter { $0.reason == .toManyToOne }
    let name = Refusal.Reason.toManyToOne.rawValue
    if narrowed.isEmpty || answer.refusals.contains(where: { $0.reason == name }) {
      return .refused(code: answer.code, answer.refusals)
    }
    let reasons = narrowed.map {
      Reason(
        reason: name, entity: $0.entity.rawValue, property: $0.property,
        message:
          "\($0.place) becomes a to-one. Correct the rows that the other reasons name, or write a mapping model."
      )
    }
    return .needsMapping(code: 134_190, answer.refusals + reasons)
  }

  /// Damage of the control tables and the schema that does not stop a request.
  private func damage(
    _ binding: StoreBinding, _ request: MigrationRequest
  ) throws -> [StoreFinding] {
    // The bundles of a merged model are all that the store needs: its cache may be missing.
    let lacksCache = try request.isOfMergedModel && binding.store.cachedModel() == nil
    return try StoreSoundness.structure(of: binding).filter {
      Damage.isDamage($0) && !(lacksCache && $0.kind == .modelcache)
    }
  }

  /// A plan whose losses the request allows.
  ///
  /// - Throws: `ModelError`.
  private func accepted(
    _ plan: MigrationPlan, _ request: MigrationRequest, _ context: PlanContext
  ) throws -> PlanOutcome {
    try DefaultCheck(plan: plan, request: request, rows: context.rows(ofSource:)).check()
    let refusals = request.refusals(of: plan.losses, from: plan.source.versionName)
    return refusals.isEmpty ? .migrate(plan) : .refused(code: LossPolicy.refusalCode, refusals)
  }

  /// By mapping models.
  private func plan(
    _ request: MigrationRequest, _ store: SourceStore, _ found: SourceModelSearch.Found,
    _ whole: EntityHierarchy, _ inference: InferredMapping, _ mapped: MappedPlanner
  ) throws -> PlanOutcome {
    if let (code, reasons) = mapped.obstacles() {
      return .needsMapping(code: code, reasons)
    }
    let binding = StoreBinding(store, found.hierarchy)
    let damage = try requireSoundness(binding, request)
    let destinationLayout = StoreLayout(mapped.destination)
    try destinationLayout.requireUsable()
    let context = PlanContext(
      store: store, source: binding.layout, destination: destinationLayout,
      inference: inference,
      census: try StoreCensus(binding, shardBytes: request.undividedBytes))
    try requireOwners(of: context.census, request)
    // Core Data counts from 1. The lowest number of all stands for no object where pairs are gathered.
    for table in context.census.tables.values where table.keys?.lowerBound == .min {
      throw PlanError.unsupported(
        store: request.store.string,
        what: "\(table.name) has a row with Z_PK \(Int64.min), which no mapping model can take. "
          + "Give the row a number above 0, everywhere it is referred to, or remove it.")
    }
    return try accepted(
      try MappedPlanMaker(
        maker: PlanMaker(
          request: request, found: found, whole: whole, context: context, binding: binding,
          acceptedDamage: damage),
        mapped: mapped
      ).plan(), request, context)
  }

  /// What the store becomes, the model that it is of, and what a person should know of both versions.
  private func destinationHierarchy(
    _ request: MigrationRequest, _ found: SourceModelSearch.Found
  ) throws -> (EntityHierarchy, whole: EntityHierarchy, notes: [String]) {
    let version = request.destination ?? request.models.last { $0.isCurrent }
    guard let version else {
      throw try PlanError.noDestination(among: request.models)
    }
    // A store of one configuration goes on holding that configuration's entities.
    let (whole, members) = (try version.hierarchy(), try found.members(in: version))
    let part = try members?.entities.map { try whole.restricted(to: $0) }
    let source = version.isAtPath(of: found.version) ? nil : found.version
    let notes = try [
      members?.note, source?.noteOfRecordedHashes(), version.noteOfRecordedHashes(),
    ]
    return (part ?? whole, whole, notes.compactMap(\.self))
  }

  /// What planning itself relies on: control tables, metadata, schema.
  ///
  /// - Returns: What is wrong with it, and accepted.
  private func requireSoundness(
    _ binding: StoreBinding, _ request: MigrationRequest
  ) throws -> [StoreFinding] {
    let damage = try damage(binding, request)
    let findings = damage.filter { finding in
      !(request.acceptsDamage && Damage.isAcceptable(finding))
    }
    guard findings.isEmpty else {
      throw PlanError.damaged(store: request.store.string, findings)
    }
    return damage
  }

  /// What no entity has cannot go over, and nothing may be left behind in silence.
  private func requireOwners(of census: StoreCensus, _ request: MigrationRequest) throws {
    guard census.ownerlessRows.isEmpty else {
      throw PlanError.damaged(store: request.store.string, census.ownerlessRows)
    }
  }
}

/// Which findings stop a migration.
///
/// Core Data tolerates references to missing objects and one-sided one-to-one relationships, and
/// a lightweight migration of its own does not validate; everything else that
/// is wrong with a store was made by something other than Core Data, and what it meant is not known.
package enum Damage {
  package static func isDamage(_ finding: StoreFinding) -> Bool {
    switch finding.kind {
    case .note, .validation, .dangling, .inverse: false
    default: true
    }
  }

  /// True for damage that the destination mends (a missing index) or carries as it was found.
  package static func isAcceptable(_ finding: StoreFinding) -> Bool { isAcceptable(finding.kind) }

  package static func isAcceptable(_ kind: StoreFinding.Kind) -> Bool {
    switch kind {
    case .file, .rows, .schema, .unique: false
    default: true
    }
  }
}

extension Reason {
  /// Why a mapping model that was given is not used.
  package init(mismatch: MappingMismatch) {
    self.init(
      reason: "mapping-mismatch", entity: mismatch.entity.rawValue, property: mismatch.property,
      message: mismatch.description)
  }

  init(refusal: Refusal) {
    self.init(
      reason: refusal.reason.rawValue, entity: refusal.entity.rawValue,
      property: refusal.property, message: refusal.text)
  }
}
