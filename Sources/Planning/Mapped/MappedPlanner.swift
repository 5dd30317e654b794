import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore

/// Chooses the mapping models of a request and says whether they can be run.
///
/// Every file is compared with both models by all its hashes, or by the names of its models, see
/// ``NamedVersions``. Several that match are passes, run in order into one destination. Source: `core-data-migration.md` §3.5, §5.5.
struct MappedPlanner {
  let files: [MappingFile]
  /// One for each pass.
  let models: [MappingModel]
  /// Why a file that was given is not used: it names other models.
  let mismatches: [MappingMismatch]
  let source: EntityHierarchy
  let destination: EntityHierarchy
  /// The models that the two are of.
  private let whole: (source: EntityHierarchy, destination: EntityHierarchy)
  /// Places of files with nothing but entity mappings of what the store does not hold.
  private let foreign: Set<Int>
  /// The policies that the mapping models name and the executable has.
  private let policies: [String: Set<String>]

  /// - Parameter whole: The models that source and destination are of: more than these for a store of
  ///   one configuration. Files are made for them. What a file says of entities that such a store does
  ///   not hold, before or after, has no objects, and is left out: see ``MappingModel/part(_:of:in:)``.
  /// - Throws: `MappingError.noneMatches` for a file that is not for this pair of models, unless
  ///   it names others and may be for another store, step or pair.
  init(
    _ request: MigrationRequest, source: EntityHierarchy, destination: EntityHierarchy,
    whole: (source: EntityHierarchy, destination: EntityHierarchy)? = nil
  ) throws {
    let whole = whole ?? (source, destination)
    let versions = try NamedVersions(
      request.mappings.isEmpty ? [] : request.models + [request.destination].compactMap(\.self))
    let choice = versions.choice(
      among: request.mappings, from: versions.end(whole.source, part: source),
      to: versions.end(whole.destination, part: whole.destination),
      isInChain: false)
    let isShared =
      request.sharesMappings || request.mappings.count > 1 || request.chain != .direct
    let wrong = choice.mismatches.filter { !(isShared && $0.namesOtherModels) }
    guard wrong.isEmpty else { throw MappingError.noneMatches(wrong) }
    let used = choice.matching.map { place in
      var file = request.mappings[place]
      let entries = file.document.entityMappings
      let isHeld = entries.map { entry in
        if let entity = entry.source, source[entity] == nil { return false }
        guard let entity = entry.destination, destination[entity] == nil else { return true }
        return entry.source != nil && whole.destination[entity] == nil
      }
      // What is automatic is what it comes to between the two models.
      let model = MappingModel(
        file.document, source: whole.source, destination: whole.destination
      ).part(isHeld, of: whole.source, in: source)
      file.document.entityMappings = zip(entries, isHeld).filter { $0.1 }.map { $0.0 }
      return (file: file, model: model)
    }
    let files = used.map(\.file)
    models = used.map(\.model)
    self.files = files
    foreign = Set(
      files.indices.filter { place in
        files[place].document.entityMappings.isEmpty
          && !request.mappings[choice.matching[place]].document.entityMappings.isEmpty
      })
    mismatches = choice.mismatches
    self.source = source
    self.destination = destination
    self.whole = whole
    policies = request.policies.known(
      among: models.flatMap { $0.entityMappings.compactMap(\.policy) })
  }

  var isUsed: Bool { !models.isEmpty }

  var notes: [String] {
    mismatches.map(\.description)
      + (files.count > 1
        ? ["\(files.count) mapping models are run one after the other into one destination."] : [])
  }

  private func checks() -> [MappingCheck] {
    models.indices.map { pass in
      MappingCheck(
        models[pass], source: whole.source, destination: whole.destination,
        registeredPolicies: policies, earlierModels: Array(models[..<pass]),
        held: (source, destination))
    }
  }

  /// What forbids running the mapping models; the code is that of the first. Entity migration
  /// policies are code, which no mapping model brings along: one that is not registered stands
  /// against it.
  func obstacles() -> (code: Int, reasons: [Reason])? {
    var found: [(MappingFinding, String)] = []
    for (place, check) in checks().enumerated() {
      // A pass for the stores of another configuration does nothing here, and others do something.
      let isIdle = foreign.contains(place) && foreign.count < files.count
      found += check.findings.filter {
        $0.severity == .error && !(isIdle && $0.kind == .emptyMapping)
      }.map { ($0, files[place].file) }
    }
    let repeated = repetitions.filter(\.isWhole)
    guard !found.isEmpty || !repeated.isEmpty else { return nil }
    let isPolicy =
      repeated.isEmpty
      && found.allSatisfy {
        $0.0.kind == .missingPolicy || $0.0.kind == .missingPolicySelector
      }
    // 134170: the policy is what fails; 134110: the mapping model itself is wrong.
    return (
      isPolicy ? 134_170 : 134_110,
      found.map { finding, file in
        Reason(
          reason: finding.kind.rawValue, entity: finding.mapping, property: finding.property,
          message: "\(file): \(finding)")
      } + repeated.map { $0.refusal(files) }
    )
  }

  /// What a person should know of the mapping models, entities that start empty above all.
  func warnings() -> [String] {
    var notes: [String] = []
    for (file, check) in zip(files, checks()) {
      for finding in check.findings where finding.severity == .warning {
        // With several passes an entity may be another pass's.
        if models.count > 1,
          finding.kind == .uncoveredSource || finding.kind == .uncoveredDestination
        {
          continue
        }
        notes.append("\(file.file): \(finding)")
      }
    }
    return notes
  }
}
