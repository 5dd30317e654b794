import Foundation
import GodwitCheckpoints
import GodwitCommit
import GodwitDigests
import GodwitDurableFiles
import GodwitLedger
import GodwitPersistentStore
import GodwitPlanning
import GodwitWorker
import SystemPackage

// What the stores of a run have in common.
extension PipelineRun {
  var paceFile: FilePath { state.appending("pace") }

  /// The roots as the stores below them are named; one that is gone by its own name.
  private var roots: [FilePath] { pipeline.stores.roots.map { $0.resolved ?? $0.absolute } }

  /// The pipeline's stores that the run takes up.
  func search(state: FilePath?) async throws -> StoreSearch.Findings {
    let (selection, roots) = (options.selection, roots)
    let destinations = try template.destinations()
    return try await onOwnThread {
      var findings = try StoreSearch(pipeline, state: state)
        .run(places, destinations: destinations) { observe(.warning($0)) }
      (findings.stores, findings.unknown, findings.unmatched) = try selection.chosen(
        from: findings.all, roots: roots)
      return findings
    }
  }

  /// Roots without a store below which stores are known: more likely a volume that is not mounted, or a
  /// pattern that is wrong, than a fleet that is gone. Where a pipeline has no store at all, its first root,
  /// though nothing was ever known: a pattern that was wrong from the beginning looks like that.
  ///
  /// - Parameter known: How many stores an earlier run knows of below a root.
  func rootsWithoutStores(
    _ findings: StoreSearch.Findings, known: (FilePath) throws -> Int
  ) rethrows -> [StoreSearch.Unreadable] {
    let roots = pipeline.stores.roots.compactMap(\.resolved)
    let emptied: [StoreSearch.Unreadable] = try roots.compactMap { root in
      // One that lies below two roots was found in the first of them.
      guard !findings.all.contains(where: { $0.path.starts(with: root) }),
        !findings.unreadable.contains(where: { $0.path.starts(with: root) })
      else { return nil }
      let known = try known(root)
      guard known > 0 else { return nil }
      return StoreSearch.Unreadable(
        path: root,
        reason: "no store is in it, and an earlier run knows of \(known)",
        advice:
          "Mount its volume, or correct stores.roots and stores.include. Where the stores are "
          + "gone for good, run with --fresh once.", kind: .emptyRoot)
    }
    guard findings.all.isEmpty, findings.unreadable.isEmpty, emptied.isEmpty,
      let first = roots.first
    else { return emptied }
    let note = PathPattern.literalNote(pipeline.stores.include.map(\.text)).map { " \($0)" } ?? ""
    return [
      StoreSearch.Unreadable(
        path: first, reason: roots.map(\.string).joined(separator: ", "),
        advice:
          "Correct stores.roots, stores.include or stores.exclude in \(pipeline.file).\(note)",
        kind: .noStores)
    ]
  }

  /// - Throws: ``PlanDrift``.
  func checkPlan(
    _ findings: StoreSearch.Findings, _ ledger: PipelineLedger, _ settings: String
  ) throws {
    var left: [FilePath: String]?
    let roots = roots
    try options.plan?.check(
      findings.stores, settings: planSettings(settings),
      isMeant: { options.selection.means($0, roots: roots) }
    ) { store, identity in
      // What an earlier start, or run, of the same settings has left needs no other plan.
      if let known = ledger.entry(of: store.path), SettingsDigest.areSame(known.settings, settings),
        known.finalIdentity == identity
      {
        return true
      }
      // Nor does what a commit has made of it that was cut off.
      if (try? StoreSwap.isCutOff(in: directory(of: store), of: store.path)) == true { return true }
      // Nor does what its tasks have, and no start has taken over.
      let own = left ?? (try? LeftResults(of: places))?.finalIdentities(settings: settings) ?? [:]
      left = own
      return own[store.path] == identity
    }
  }

  func start(_ findings: StoreSearch.Findings, _ ledger: PipelineLedger?) -> PipelineStart {
    PipelineStart(
      pipeline: pipeline.name, run: ledger?.run, resumed: ledger?.isResumed,
      stores: findings.stores.count, bytes: findings.stores.map(\.bytes).total,
      links: findings.links, special: findings.special > 0 ? findings.special : nil,
      unknown: findings.unknown.isEmpty ? nil : findings.unknown,
      unmatched: findings.unmatched.isEmpty ? nil : findings.unmatched,
      leftOut: findings.leftOut.isEmpty ? nil : findings.leftOut.map(\.unambiguousText).sorted(),
      idlePatterns: findings.idlePatterns.isEmpty ? nil : findings.idlePatterns,
      emptyRoots: findings.emptyRoots.isEmpty ? nil : findings.emptyRoots.map(\.string),
      all: options.selection.isAll ? nil : findings.all.count)
  }

  /// So many stores are looked at for their versions: of a cohort that is one in a few hundred, some
  /// are among them.
  private static let mostLooks = 2_000

  /// The stores wave by wave; one wave where the pipeline has none.
  func waves(_ stores: [FoundStore], _ setting: Setting) async throws -> [[FoundStore]] {
    guard !pipeline.canary.isEmpty, !stores.isEmpty else { return [stores] }
    let run = setting.books.run
    let sizes = pipeline.canary
    if let known = try CanaryWaves(of: run, in: state, stores, sizes: sizes) {
      if known.isCutAnew {
        observe(.note("The key canary has changed since the run began: its waves are others now."))
        if options.selection.isAll { try known.write(of: run, sizes: sizes, in: state) }
      }
      return known.waves
    }
    let some = CanaryWaves.byDigest(stores).prefix(Self.mostLooks)
    var cohorts: [FilePath: String] = [:]
    await withTaskGroup(of: MigrationResult.self) { group in
      var left = some[...]
      for place in 0..<some.count {
        if place >= 2 * pool.workerCount, let look = await group.next() {
          cohorts[FilePath(look.store)] = look.source
        }
        guard let store = left.popFirst(), Self.refusal(of: store) == nil else { continue }
        group.addTask {
          await setting.hosts.perform(task(store, workers: 0, setting.books.settings, .look))
        }
      }
      for await look in group { cohorts[FilePath(look.store)] = look.source }
    }
    let found = CanaryWaves(stores, sizes: sizes) { cohorts[$0.path] }
    // Those of some of the stores are not the waves of all.
    if options.selection.isAll { try found.write(of: run, sizes: sizes, in: state) }
    return found.waves
  }

  func hosts(pace: FilePath?) -> StoreHosts {
    var arguments = [
      "store-host", pipeline.file.absolute.string, "--state", state.string,
    ]
    if !template.guardsUnknownVersions { arguments += ["--losses", template.losses.rawValue] }
    if template.isStoreOffline { arguments.append("--store-is-offline") }
    if tellsEvents { arguments.append("--events") }
    if let pace { arguments += ["--pace", pace.string] }
    return StoreHosts(executable: pool.executable, arguments: arguments)
  }

  func task(
    _ store: FoundStore, workers: Int, _ settings: String, _ work: StoreTask.Work = .migrate
  ) -> StoreTask {
    StoreTask(
      store: store.path.string, root: store.root.string, bytes: store.bytes, workers: workers,
      work: work, settings: settings, code: template.ownCodeDigest, pipeline: pipeline.digest,
      isFresh: options.isFresh && work == .migrate,
      handsOut: options.handsOut && work == .migrate)
  }

  func request(for store: FoundStore) -> MigrationRequest {
    var request = template
    request.store = store.path
    request.output = pipeline.output(of: store.path)
    return request
  }

  /// The name of a store's run directory.
  static func name(of store: FilePath) -> String {
    String(Hexadecimal.text(of: SHA256.digest(of: Array(store.string.utf8))).prefix(32))
  }

  /// What a plan says beside the destinations' content: where they go, and what may be lost.
  func planSettings(_ settings: String) -> String {
    "\(SettingsDigest.whole(settings)) \(template.losses) \(template.guardsUnknownVersions) "
      + "\(pipeline.commit) \(pipeline.stores.inUse)"
  }

  /// SHA-256 in hexadecimal over all that decides, beside the store, whether it is refused: with the content
  /// of the destinations what may be lost. A store that is quarantined is tried again where it is another.
  func quarantineSettings(_ settings: String) -> String {
    Self.digest(of: [
      String(SettingsDigest.whole(settings)), template.losses.rawValue,
      "\(template.guardsUnknownVersions)",
    ])
  }

  /// SHA-256 in hexadecimal over what tasks of others do with a store, beside the store: all that the
  /// operator may change between two starts of a run.
  func requestDigest(_ settings: String) -> String {
    Self.digest(of: [
      planSettings(settings), "\(template.isStoreOffline)", "\(pool.workerCount)", pipeline.digest,
    ])
  }

  private static func digest(of texts: [String]) -> String {
    Hexadecimal.text(of: SHA256.digest(of: Array(texts.joined(separator: "\0").utf8)))
  }

  /// Everything but the store that its destination depends on, see ``SettingsDigest``.
  func settingsDigest() throws -> String {
    func bytes(_ text: String) -> [UInt8] { Array(text.utf8) + [0] }
    var models: [UInt8] = []
    for version in template.models + (template.destination.map { [$0] } ?? []) {
      models += bytes(version.name)
      models += try version.hierarchy().identityBytes()
    }
    // Which of several models a store is of decides what it becomes.
    if template.given.bundles.count > 1 {
      for bundle in template.given.bundles {
        models += bytes("\(bundle.count) \(bundle.first?.bundleName ?? "")")
      }
      for versions in [template.named, template.currents] {
        models += bytes("\(versions.count)")
        for version in versions {
          models += bytes("\(template.models.firstIndex { $0.path == version.path } ?? -1)")
        }
      }
    }
    for mapping in template.mappings { models += bytes(try mapping.document.text()) }
    var whole = bytes(
      "pipeline 1 \(template.chain.rawValue) \(template.infersMapping) \(template.migrates)")
    whole += models
    if template.invalid != .fail { whole += bytes(template.invalid.rawValue) }
    if let digest = template.ownCodeDigest { whole += bytes(digest) }
    return SettingsDigest.text(whole: whole, models: models)
  }
}
