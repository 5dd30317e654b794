import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitWorker
import SystemPackage

/// One store, from the request to its result.
///
/// Planning, assembly and the commit happen here, in the coordinator; rows are the workers'. Every
/// error becomes a result: a store that fails must never stop the next one. What is finished lies
/// in the run directory as checkpoints, so running again resumes, and ends with
/// the same logical store.
package struct StoreRun: Sendable {
  package struct Settings: Sendable {
    package var pool: WorkerPool.Settings
    /// Where the store is too small for processes of its own: the policies for its stages, which this
    /// process performs, on the ``StoreThread``. What they finish need not outlive the process.
    var policiesHere: PolicyRegistry?
    /// Keeps the run directory of a store that came to its end.
    package var keepsState: Bool
    /// Where the table of object URIs goes, if one is wanted.
    package var uriTable: FilePath?
    /// Forgets what earlier runs have finished, once a commit that was cut off is at its end.
    var discardsProgress = false
    /// Leases that a commit needs beside that of the run directory.
    var leases: [LeaseToken] = []
    /// The pipeline's run that this is a part of, if it is of one.
    var owner: CommitJournal.Owner?
    /// Leaves the stages over rows to others, see ``HandingOut``.
    var handsOut = false
    /// How long to wait for the lock of the run directory.
    var lockPatienceSeconds = 0.0
    /// Called once with the result, before the run directory of a store that came to its end is
    /// removed: what it has written down holds if a crash comes between.
    var record: @Sendable (MigrationResult) throws -> Void = { _ in }

    package init(pool: WorkerPool.Settings, keepsState: Bool = false, uriTable: FilePath? = nil) {
      self.pool = pool
      self.keepsState = keepsState
      self.uriTable = uriTable
    }
  }

  package let request: MigrationRequest
  package let directory: RunDirectory
  let settings: Settings
  let observe: @Sendable (RunEvent) -> Void

  /// - Parameters:
  ///   - directory: Where plan and checkpoints lie. The request's snapshot folder is its own.
  ///   - observe: Called with every event, on any thread but one at a time.
  package init(
    _ request: MigrationRequest, directory: RunDirectory, settings: Settings,
    observe: @escaping @Sendable (RunEvent) -> Void = { _ in }
  ) {
    let folder = RunDirectory(directory.path.whole)
    // The steps of a chain are kept: doing one again may mean calling a handler again.
    let isInMemory =
      settings.policiesHere != nil && !settings.keepsState && request.chain == .direct
    let directory = isInMemory ? folder.inMemory : folder
    var request = request.whole
    request.snapshotFolder = directory.snapshot
    request.keepsCheckpoints = !isInMemory
    self.request = request
    self.directory = directory
    var settings = settings
    settings.uriTable = settings.uriTable?.whole
    self.settings = settings
    self.observe = observe
  }

  /// Migrates the store. Cancelling the task stops the run within seconds, resumable.
  package func run() async -> MigrationResult {
    guard settings.policiesHere != nil else { return await attempt() }
    do {
      return await withTaskExecutorPreference(try StoreThread.ofProcess()) { await attempt() }
    } catch {
      return MigrationResult(failing: request.store.string, with: error)
    }
  }

  private func attempt() async -> MigrationResult {
    if request.chain != .direct { return await ChainRun(self).run() }
    let start = ContinuousClock.now
    var attempt = StoreAttempt(self)
    do {
      try checkPaths()
      try await attempt.locked()
    } catch {
      attempt.fail(error)
    }
    var result = attempt.result
    result.seconds = (ContinuousClock.now - start).inSeconds
    result.peakRSS = MigrationResult.Memory(
      coordinator: ProcessMemory.peakResidentBytes, worker: attempt.workerPeakRSS)
    return result
  }

  /// An output is never overwritten. One that an earlier run of the same command wrote shows as
  /// such when it can be compared.
  func checkOutput() throws { _ = try EarlierOutput(request) }

  /// Finishes the commit of an earlier run, or takes it back.
  ///
  /// A commit whose destination somebody has replaced or removed since was made all the same: its backup is
  /// still to be written down.
  ///
  /// - Parameter acceptsDamage: As in ``StoreSwap/recover(run:source:destination:isStoreOffline:leases:acceptsDamage:)``.
  func recoverCommit(
    _ leases: [LeaseToken], acceptsDamage: Bool = false
  ) async throws -> StoreSwap.Recovery {
    try await onOwnThread { [directory, request] in
      let journal = try CommitJournal.read(in: directory)
      let destination = self.destination(of: journal)
      let found = try StoreSwap.recover(
        run: directory, source: request.store, destination: destination,
        isStoreOffline: request.isStoreOffline, leases: leases, acceptsDamage: acceptsDamage)
      guard case .nothing = found, var journal, journal.kind == .replace else { return found }
      journal.store = destination.string
      guard let kept = try FileMark(reachable: journal.backup.store),
        kept.size == journal.main?.size
      else { return found }
      return .committed(journal)
    }
  }

  /// Where the commit of a journal puts its destination. A pipeline's key `commit` may have been another when that
  /// was begun, or be that of another pipeline. A journal is believed in what that key can come to alone: the
  /// request's own store, and the names of outputs beside that.
  private func destination(of journal: CommitJournal?) -> FilePath {
    let own = request.destinationPath
    guard settings.owner != nil, let journal else { return own }
    let path = FilePath(journal.store)
    switch journal.kind {
    case .replace: return request.store
    case .publish where !path.isSamePlace(as: own):
      return Pipeline.isOutput(path, of: request.store) ? path : own
    case .publish, .restore: return own
    }
  }

  /// What can be said before the store is opened.
  func checkPaths() throws {
    try Self.checkPaths(request, directory, uriTable: settings.uriTable)
  }

  /// - Parameter directory: Where the run works; nil where it leaves no traces.
  static func checkPaths(
    _ request: MigrationRequest, _ directory: RunDirectory?, uriTable: FilePath?
  ) throws {
    if let directory { try checkCommit(request, directory) }
    try checkPaths(request)
    guard let directory else { return }
    try NameLimits.checkName(of: directory)
    do {
      try NewFilePlace(directory.path, beside: request.stores).check()
    } catch let error as PlaceError {
      throw FleetError.runDirectory(path: directory.path.string, message: error.reason)
    }
    try checkApart(request, directory)
    if let uriTable { try URITablePlace(uriTable).check(request, directory) }
  }

  /// The directory is removed at the end, with all that is in it.
  private static func checkApart(_ request: MigrationRequest, _ directory: RunDirectory) throws {
    func refusal(_ message: String) -> FleetError {
      .runDirectory(path: directory.path.string, message: message)
    }
    if let output = request.output, directory.holds(output) {
      throw refusal("it is removed at the end, and the output lies in it")
    }
    let versions = request.models + (request.destination.map { [$0] } ?? [])
    let models: [String] = versions.flatMap { version in
      version.parts.isEmpty ? [version.bundlePath] : version.parts.map(\.bundlePath)
    }
    var read: [(name: String, path: FilePath)] = [
      ("the store", request.store), ("external data", StoreFiles(request.store).supportFolder),
    ]
    for model in Set(models).sorted() { read.append(("a model", FilePath(model))) }
    for mapping in request.mappings { read.append(("a mapping model", FilePath(mapping.file))) }
    let own = directory.path.absolute
    for (name, path) in read {
      guard let place = path.resolved else { continue }
      // A link in the directory goes with it, and so does what a link elsewhere leads to.
      if place.starts(with: own) || directory.holds(path) {
        throw refusal("it is removed at the end, and \(name) lies in it (\(path))")
      }
      if own.starts(with: place) { throw refusal("it lies in \(name) (\(path))") }
    }
  }

  /// A store that is gone and was being replaced has a backup, which nothing else tells of.
  private static func checkCommit(
    _ request: MigrationRequest, _ directory: RunDirectory
  ) throws {
    guard FilePresence(of: request.store) == .absent,
      let journal = try CommitJournal.read(in: directory), journal.kind == .replace,
      FilePath(journal.store).lastComponent == request.store.lastComponent,
      try FileMark(journal.backup.store) != nil
    else { return }
    throw CommitError.storeMissing(store: request.store, backup: journal.backup.store)
  }

  /// What can be said without opening anything.
  private static func checkPaths(_ request: MigrationRequest) throws {
    guard try FileKind(at: request.store) != .none else {
      throw FleetError.noStore(path: request.store.string)
    }
    try NameLimits.check(request)
    try StoreFiles(request.store).checkKinds()
    if let output = request.output {
      let folder = output.removingLastComponent()
      let path = folder.isEmpty ? FilePath(".") : folder
      guard try FileKind(following: path) == .folder else {
        throw FleetError.noFolder(path: path.string)
      }
      try NewFilePlace(output, beside: [request.store]).checkForStore()
      if try FileKind(at: output) == .none { try StoreFiles(output).checkKinds() }
    }
  }
}

extension RunDirectory {
  /// Whether a path is that of the directory, or lies in it, which must be there for that.
  func holds(_ other: FilePath) -> Bool {
    let (place, own) = (other.lexicallyNormalized(), path.lexicallyNormalized())
    if place.resolvingFolders.isSamePlace(as: own.resolvingFolders) { return true }
    guard let own = path.resolved, let folder = other.folder.resolved else { return false }
    return folder.starts(with: own)
  }
}

extension MigrationRequest {
  /// Where the destination goes.
  var destinationPath: FilePath { output ?? store }

  /// The store, and the one that the output becomes.
  var stores: [FilePath] { [store] + (output.map { [$0] } ?? []) }

  /// The same request, whose paths have no symbolic link among their folders: from here on nothing
  /// is opened through one. Nor do they depend on where the process stands, which a handler may change.
  var whole: MigrationRequest {
    var request = self
    request.store = store.whole
    request.output = output?.whole
    return request
  }
}

extension Duration {
  /// As a number of seconds.
  package var inSeconds: Double {
    Double(components.seconds) + Double(components.attoseconds) / 1e18
  }
}
