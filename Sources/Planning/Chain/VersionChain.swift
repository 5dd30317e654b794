import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore

/// How a store goes from version to version: the models on its way, and what each step is done by.
///
/// The order of versions is in no file. It is that of the models as they were given; versions of
/// one bundle are in the order of the numbers in their names. Source: `core-data-migration.md`
/// §6.1.
package struct VersionChain: Sendable {
  /// From the store's version to the destination's, both included.
  package let versions: [ModelVersion]
  package let path: VersionPath
  package private(set) var notes: [String]
  /// What the whole way drops; nil where a step has a mapping model, whose losses are known once
  /// the step is planned.
  package private(set) var losses: [Loss]?
  /// True where the store's version is not among the models given.
  package private(set) var isOfUnknownVersion = false
  /// See ``MigrationRequest/isOfMergedModel``.
  package private(set) var isOfMergedModel = false
  private let mappings: [MappingFile]
  private let hierarchies: [EntityHierarchy]

  /// Looks at the store and at every pair of versions between its own and the destination's.
  ///
  /// - Returns: Nil where there are no versions to choose between: the store is of the
  ///   destination's version, or foreign, or there is no destination. Planning the store directly says which.
  /// - Throws: As ``Planner/plan(_:)``.
  package init?(_ request: MigrationRequest) throws {
    let store = try SourceStore(path: request.store, snapshotFolder: request.snapshotFolder)
    let request = try MergedModels.resolve(request, for: store)
    guard try ForeignStore(store, request) == nil else { return nil }
    let found = try SourceModelSearch(store: store, models: request.models).find()
    guard let destination = request.destination ?? request.models.last(where: \.isCurrent) else {
      return nil
    }
    _ = try found.members(in: destination)
    let own = found.ownVersion(
      unnamed: found.hierarchy.versionChecksum, path: request.store)
    try self.init(
      source: own, given: found.version, destination: destination,
      models: request.line ?? request.models, named: request.models,
      mappings: request.mappings, infersMapping: request.infersMapping, part: found.part)
    isOfUnknownVersion = found.versionName == nil
    isOfMergedModel = request.isOfMergedModel
    if isOfMergedModel {
      notes.append(
        "The store is of several models that the application merges: no version between is looked at."
      )
    }
    if path.steps.count > 1, path.steps.allSatisfy({ $0.mappings.isEmpty }) {
      let passed = [0] + path.steps.map(\.destination)
      losses = try LossCounter.losses(of: store, over: passed.map { hierarchies[$0] })
    }
  }

  /// The same for two models, without a store.
  ///
  /// - Parameters:
  ///   - given: The version among the models that stands for the source, and whose place is the store's;
  ///     nil for the first one of its hashes.
  ///   - named: Further versions that mapping models may name.
  ///   - part: As much of a version as the store would hold.
  /// - Throws: `ModelError`.
  init?(
    source: ModelVersion, given: ModelVersion? = nil, destination: ModelVersion,
    models: [ModelVersion], named others: [ModelVersion] = [], mappings: [MappingFile] = [],
    infersMapping: Bool = true,
    part: (ModelVersion) throws -> EntityHierarchy = { try $0.hierarchy() }
  ) throws {
    let ends = (try part(source), try part(destination))
    let hashes = (ends.0.versionHashes, ends.1.versionHashes)
    guard hashes.0 != hashes.1 else { return nil }
    // A version that takes back what others changed has the hashes of an earlier one. So the store is at its own
    // place, and what comes after that counts, wherever else its hashes are.
    let known = try models.map { version in
      let hierarchy = try part(version)
      return (version: version, hierarchy: hierarchy, hashes: hierarchy.versionHashes)
    }
    func place(of version: ModelVersion?) -> Int? {
      known.firstIndex {
        $0.version.isAtPath(of: version) && version.map(\.name).isSameName(as: $0.version.name)
      }
    }
    let ownPlace = place(of: given)
    let start =
      ownPlace.map { known[$0].hashes == hashes.0 ? $0 : nil }
      ?? known.firstIndex { $0.hashes == hashes.0 }
    var notes: [String] = []
    var between: [(version: ModelVersion, hierarchy: EntityHierarchy)] = []
    if let start {
      let rest = (start + 1)..<known.count
      let isBefore =
        place(of: destination).map { $0 < start }
        ?? known[..<start].contains { $0.hashes == hashes.1 }
      let end = rest.first { known[$0].hashes == hashes.1 } ?? (isBefore ? start : known.count)
      // Any that was given twice is at its first place.
      var seen: Set<[EntityName: VersionHash]> = [hashes.0]
      between = (isBefore ? [] : known[..<end].dropFirst(start + 1))
        .filter { seen.insert($0.hashes).inserted }.map { ($0.version, $0.hierarchy) }
    } else {
      notes.append(
        "The store's own version is not among the models given, so its place in their order is "
          + "not known: no version between is looked at.")
    }
    let first = start.map { given ?? known[$0].version } ?? source
    let chain = [(version: first, hierarchy: ends.0)] + between + [(destination, ends.1)]
    let named = try NamedVersions(
      mappings.isEmpty ? [] : models + others + chain.map(\.version))
    var edges = ChainEdges(
      names: chain.map(\.version.name), hierarchies: chain.map(\.hierarchy), named: named,
      ends: try chain.map { named.end(try $0.version.hierarchy(), part: $0.hierarchy) },
      mappings: mappings, infersMapping: infersMapping)
    versions = chain.map(\.version)
    let path = VersionPath(count: chain.count, mayBeMapped: !mappings.isEmpty) {
      edges.edge($0, $1)
    }
    self.path = path
    self.mappings = mappings
    hierarchies = chain.map(\.hierarchy)
    for step in path.steps where step.replacesImpossible {
      let skipped = versions[(step.source + 1)..<step.destination].map(\.name)
      notes.append(
        "There is no way through \(skipped.joined(separator: ", ")), so the mapping from "
          + "\(versions[step.source].name) to \(versions[step.destination].name) is inferred in "
          + "one step.")
    }
    let unused = mappings.indices.filter { place in
      !path.steps.contains { $0.mappings.contains(place) }
    }
    for place in unused { notes.append(try edges.noteUnused(place)) }
    self.notes = notes
    try requireOneStep()
  }

  /// A mapping model is written for one step. Done at two, it would change values twice.
  private func requireOneStep() throws {
    for place in mappings.indices {
      let steps = path.steps.filter { $0.mappings.contains(place) }
      guard steps.count > 1 else { continue }
      throw PlanError.ambiguousMapping(
        file: mappings[place].file,
        steps: steps.map { "\(versions[$0.source].name) → \(versions[$0.destination].name)" })
    }
  }
}

extension VersionChain {
  package func source(of step: Int) -> ModelVersion { versions[path.steps[step].source] }
  package func destination(of step: Int) -> ModelVersion { versions[path.steps[step].destination] }
  package func mappings(of step: Int) -> [MappingFile] {
    path.steps[step].mappings.map { mappings[$0] }
  }

  package func leg(_ step: Int) -> MigrationStep {
    MigrationStep(
      source: source(of: step), destination: destination(of: step), mappings: mappings(of: step))
  }

  /// What is wrong with the mapping models of any step, before the first of them is run.
  ///
  /// - Returns: Core Data's code and the reasons, those of the first step that has any; nil where
  ///   nothing is wrong.
  package func obstacles(_ request: MigrationRequest) throws -> (code: Int, reasons: [Reason])? {
    for step in path.steps.indices where !path.steps[step].mappings.isEmpty {
      let leg = leg(step)
      let planner = try MappedPlanner(
        request.leg(leg, store: request.store, output: nil),
        source: try leg.source.hierarchy(),
        destination: try leg.destination.hierarchy())
      guard planner.isUsed, let (code, reasons) = planner.obstacles() else { continue }
      return (code, reasons)
    }
    return nil
  }

  /// A line for each step: `Shop → Shop 2: inferred`.
  package var lines: [String] {
    path.steps.indices.map { step in
      let files = mappings(of: step).map(\.file)
      return "\(source(of: step).name) → \(destination(of: step).name): "
        + (files.isEmpty ? "inferred" : files.joined(separator: ", "))
    }
  }

  /// Why there is no path, step for step.
  package var reasons: [Reason] {
    path.obstacles.flatMap { obstacle in
      obstacle.reasons.map { reason in
        var reason = reason
        reason.message =
          "From \(versions[obstacle.source].name) to \(versions[obstacle.destination].name): "
          + reason.message
        return reason
      }
    }
  }
}

/// What there is between every two versions of a chain.
private struct ChainEdges {
  let names: [String]
  let hierarchies: [EntityHierarchy]
  /// Every version at hand, those that the chain does not come by included.
  let named: NamedVersions
  /// The models that ``hierarchies`` are of: mapping models are made for these.
  let ends: [NamedVersions.End]
  let mappings: [MappingFile]
  let infersMapping: Bool
  /// Inferred steps between neighbours.
  private let neighbours: [InferredMapping]
  /// What those from one version on come to, one after the other, up to the first that is not plain.
  private var stepwise: (source: Int, terms: [InferredTerms]) = (0, [])

  init(
    names: [String], hierarchies: [EntityHierarchy], named: NamedVersions,
    ends: [NamedVersions.End], mappings: [MappingFile], infersMapping: Bool
  ) {
    self.named = named
    self.ends = ends
    self.names = names
    self.hierarchies = hierarchies
    self.mappings = mappings
    self.infersMapping = infersMapping
    neighbours = zip(hierarchies, hierarchies.dropFirst()).map {
      InferredMapping(source: $0, destination: $1)
    }
  }

  mutating func edge(_ source: Int, _ destination: Int) -> VersionPath.Edge {
    let files = chosen(source, destination)
    if !files.isEmpty { return .mapped(files) }
    guard infersMapping else {
      return .refused([
        Reason(
          reason: "missing-mapping",
          message: "there is no mapping model, and inferring one is not permitted.")
      ])
    }
    let isNeighbour = destination == source + 1
    let whole =
      isNeighbour
      ? neighbours[source]
      : InferredMapping(source: hierarchies[source], destination: hierarchies[destination])
    guard whole.isPossible else { return .refused(whole.refusals.map(Reason.init(refusal:))) }
    return .inferred(isFaithful: isNeighbour || isFaithful(whole, source, destination))
  }

  private mutating func isFaithful(
    _ whole: InferredMapping, _ source: Int, _ destination: Int
  ) -> Bool {
    let steps = neighbours[source..<destination]
    if stepwise.source != source { stepwise = (source, []) }
    for step in steps.dropFirst(stepwise.terms.count) {
      guard step.isPossible, stepwise.terms.last?.isPlain != false else { return false }
      stepwise.terms.append(stepwise.terms.last?.followed(by: step) ?? InferredTerms(step))
    }
    let terms = stepwise.terms[steps.count - 1]
    guard terms.isPlain, terms == InferredTerms(whole) else { return false }
    // Rows that a version between forbids are refused there, whatever the last version allows.
    let asked = Set(whole.rowConditions.map(\.question))
    return steps.allSatisfy { step in
      step.rowConditions.allSatisfy { asked.contains($0.question) }
    }
  }

  /// Whether a mapping model says which versions it was made for, by hashes or by names.
  func isBound(_ place: Int) -> Bool {
    let document = mappings[place].document
    if document.hasHashes { return true }
    let recorded = document.modelNames
    return [recorded.source, recorded.destination].allSatisfy {
      $0.map { !named.given.meant(by: $0).isEmpty } ?? false
    }
  }

  /// A file that no step uses, in a sentence.
  ///
  /// - Throws: `MappingError.noneMatches` where the file is for a step by the names of its models,
  ///   or says nothing of them, and names entities or properties that are not there.
  func noteUnused(_ place: Int) throws -> String {
    let file = mappings[place]
    var wrong: [MappingMismatch] = []
    for (source, destination) in pairs(for: file.document) {
      let choice = named.choice(
        among: [file], from: ends[source], to: ends[destination], isInChain: true)
      wrong += choice.mismatches
      guard !choice.mismatches.isEmpty else {
        wrong = []
        break
      }
    }
    // Of several steps, the one that it nearly fits.
    if let nearest = wrong.first(where: { $0.suggestion != nil }) ?? wrong.first,
      !nearest.namesOtherModels
    {
      throw MappingError.noneMatches([nearest])
    }
    return "\(file.file) is not used: it is for other models than those of the steps from "
      + "\(names[0]) to \(names[names.count - 1])."
  }

  /// The steps that a file without hashes may be for.
  private func pairs(for document: MappingDocument) -> [(Int, Int)] {
    let neighbours = zip(hierarchies.indices, hierarchies.indices.dropFirst()).map { ($0, $1) }
    guard !document.hasHashes else { return [] }
    let recorded = document.modelNames
    guard let from = recorded.source, let to = recorded.destination else { return neighbours }
    func place(_ name: VersionName) -> Int? {
      let meant = named.given.meant(by: name)
      return ends.firstIndex { !$0.names.isDisjoint(with: meant) }
        ?? ends.firstIndex { !$0.alternatives.isDisjoint(with: meant) }
    }
    guard let source = place(from), let destination = place(to), source < destination
    else { return [] }
    return [(source, destination)]
  }

  /// The mapping models that are for two versions.
  ///
  /// One that does not say which versions it was made for counts between neighbours only.
  private func chosen(_ source: Int, _ destination: Int) -> [Int] {
    guard !mappings.isEmpty else { return [] }
    let choice = named.choice(
      among: mappings, from: ends[source], to: ends[destination], isInChain: true)
    return choice.matching.filter { isBound($0) || destination == source + 1 }
  }
}
