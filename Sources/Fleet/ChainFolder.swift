import Foundation
import GodwitCheckpoints
import GodwitCommit
import GodwitDigests
import GodwitDurableFiles
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

/// The part of a run directory that a run of several steps has: everything but the commit.
///
///     chain.json       which run it is: the fingerprint of its source, steps and options, and what it tells of them
///     steps/1/run/     the run directory of the first step, kept to the end for its snapshot
///     steps/1/store.sqlite, steps/1/.store_SUPPORT/    what it wrote
///     steps/1/done.json    that it is finished, what of, and what became of it
///     steps/1/step-uris.tsv, steps/1/uris.tsv    object URIs from its source, and from the first's
///     steps/2/ …       the steps before the last finished one are removed, but for the first's run
struct ChainFolder {
  let directory: RunDirectory

  private var identityFile: FilePath { directory.path.appending("chain.json") }
  var steps: FilePath { directory.path.appending("steps") }

  private func folder(of step: Int) -> FilePath { steps.appending("\(step + 1)") }
  private func doneFile(of step: Int) -> FilePath { folder(of: step).appending("done.json") }
  func run(of step: Int) -> RunDirectory { RunDirectory(folder(of: step).appending("run")) }
  /// The table of object URIs from the step's source to what it wrote.
  func stepURIs(of step: Int) -> FilePath { folder(of: step).appending("step-uris.tsv") }
  /// Likewise from the chain's source.
  func uris(of step: Int) -> FilePath { folder(of: step).appending("uris.tsv") }
  func store(of step: Int) -> StoreFiles {
    StoreFiles(folder(of: step).appending("store.sqlite"))
  }

  var exists: Bool { get throws { try DurableFile.exists(identityFile) } }

  /// What is known of a finished step.
  struct Done: Codable {
    var fingerprint: String
    /// Of the store that the step wrote.
    var identity: StoreIdentity
    /// `FileDigest` of its main file. A disk changes bytes without a trace in the identity.
    var storeDigest: String
    /// `FileDigest` of the table of object URIs, where there is one.
    var uriDigest: String?
    /// The chain's source, as the first step read it.
    var ends: CommitEnds
    /// External data of the chain's source that no row refers to any more, of all steps so far.
    var obsolete: [String]
    var result: MigrationResult
  }

  /// What a file of this run holds; nil where it is missing or not as it was written.
  private static func decoded<Content: Decodable>(
    _: Content.Type, _ path: FilePath
  ) throws -> Content? {
    let bytes = try RegularFile.bytesIfPresent(
      of: path, limit: RunDirectory.largestFileBytes, isPrivate: true)
    return bytes.flatMap { try? SealedJSON.value(of: $0) }
  }

  private static func write(_ content: some Encodable, to path: FilePath) throws {
    try DurableFile.write(SealedJSON.bytes(of: content), to: path)
  }

  private struct Identity: Codable {
    var fingerprint: String
    /// Nil, like the next, in files of earlier versions.
    var path: [String]?
    var notes: [String]?
  }

  /// What a result says of the whole way, as ``take(_:path:notes:)`` was told.
  func told() throws -> (path: [String]?, notes: [String]) {
    let identity = try Self.decoded(Identity.self, identityFile)
    return (identity?.path, identity?.notes ?? [])
  }

  /// Whether it is a chain's, by what its file says, also that of a version which did not seal it.
  var isNamed: Bool {
    get throws {
      let bytes = try RegularFile.bytesIfPresent(
        of: identityFile, limit: RunDirectory.largestFileBytes, isPrivate: true)
      return bytes.flatMap { try? JSONDecoder().decode(Identity.self, from: Data($0)) } != nil
    }
  }

  /// Makes the folder the given chain's: another's steps are removed.
  ///
  /// - Parameters:
  ///   - path: Of the result, like the notes, for whoever finds the commit and nothing else.
  /// - Returns: True when there were any.
  func take(_ fingerprint: String, path: [String]? = nil, notes: [String]? = nil) throws -> Bool {
    if try exists {
      let known = try Self.decoded(Identity.self, identityFile)
      if known?.fingerprint == fingerprint { return false }
    }
    let hadSteps = try DurableFile.exists(steps)
    try discard()
    try Self.write(
      Identity(fingerprint: fingerprint, path: path, notes: notes), to: identityFile)
    return hadSteps
  }

  /// Removes every step. The name goes last, so that what a crash leaves is still a chain's.
  func discard() throws {
    try DurableFile.removeTree(steps)
    try DurableFile.removeIfPresent(identityFile)
  }

  /// The last finished step whose store is as an earlier process wrote it, to the last byte.
  ///
  /// - Parameters:
  ///   - needsURIs: A table of object URIs is wanted: a step without one does not count.
  ///   - damaged: Called with a file that is not as it was written, although nobody wrote to it. Its step does not
  ///     count.
  func lastDone(
    of count: Int, _ fingerprint: String, store source: FilePath, needsURIs: Bool = false,
    damaged: (FilePath) -> Void
  ) throws -> (step: Int, done: Done)? {
    for step in (0..<count).reversed() {
      let found = try Self.decoded(Done.self, doneFile(of: step))
      if found == nil, try DurableFile.exists(doneFile(of: step)) { damaged(doneFile(of: step)) }
      guard let done = found,
        done.fingerprint == fingerprint, (try? store(of: step).identity()) == done.identity,
        try !needsURIs || DurableFile.exists(uris(of: step)),
        // The commit needs the clone of a source with a WAL.
        try FileKind(at: FilePath(done.ends.readPath)) == .regular,
        isOf(source, done.ends)
      else { continue }
      if let path = try damage(of: step, done, needsURIs: needsURIs) {
        damaged(path)
        continue
      }
      return (step, done)
    }
    return nil
  }

  private func damage(of step: Int, _ done: Done, needsURIs: Bool) throws -> FilePath? {
    let store = store(of: step).store
    if try FileDigest.text(of: store) != done.storeDigest { return store }
    return try needsURIs && !holdsURIs(of: step, done) ? uris(of: step) : nil
  }

  /// Whether the table of object URIs is as the step wrote it.
  func holdsURIs(of step: Int, _ done: Done) throws -> Bool {
    try FileDigest.text(of: uris(of: step)) == done.uriDigest
  }

  /// Whether the ends that a file names are those of the store: nothing else is to be replaced.
  private func isOf(_ source: FilePath, _ ends: CommitEnds) -> Bool {
    let read = FilePath(ends.readPath)
    let clone = read.lastComponent.map { run(of: 0).snapshot.appending($0) }
    return FilePath(ends.sourcePath).isSamePlace(as: source)
      && FilePath(ends.externalDataPath).isSamePlace(as: StoreFiles(source).externalDataFolder)
      && (read.isSamePlace(as: source) || clone?.isSamePlace(as: read) == true)
  }

  /// The last finished step; nil where none is known.
  func lastDone() throws -> (step: Int, done: Done)? {
    guard try FileKind(at: steps) == .folder else { return nil }
    for number in try DurableFile.names(in: steps).compactMap({ Int($0) }).sorted(by: >) {
      if let done = try Self.decoded(Done.self, doneFile(of: number - 1)) {
        return (number - 1, done)
      }
    }
    return nil
  }

  /// Makes ready for a step: what an earlier run wrote and did not vouch for is removed.
  func prepare(_ step: Int) throws {
    try DurableFile.makeFolder(folder(of: step))
    try DurableFile.removeIfPresent(doneFile(of: step))
    // A commit under way in the step's own run directory knows how to go on.
    if try !DurableFile.exists(run(of: step).journal) { try remove(store(of: step)) }
  }

  func finish(_ step: Int, _ done: Done) throws {
    try Self.write(done, to: doneFile(of: step))
    // Disk space for two stores is enough for a chain of any length.
    if step > 0 { try removeStep(step - 1) }
    if step > 1 { try run(of: step).remove() }
  }

  /// Removes what the last step wrote, once that is published: it is the same file under a second name, and two names
  /// of one database have two logs. Source: https://sqlite.org/howtocorrupt.html §2.5.
  func removePublished() throws {
    guard try FileKind(at: steps) == .folder else { return }
    for number in try DurableFile.names(in: steps).compactMap({ Int($0) }) {
      try remove(store(of: number - 1))
    }
  }

  private func removeStep(_ step: Int) throws {
    try DurableFile.removeIfPresent(doneFile(of: step))
    try remove(store(of: step))
    if step > 0 { try DurableFile.removeTree(folder(of: step)) }
  }

  private func remove(_ files: StoreFiles) throws {
    for path in [files.store, files.wal, files.shm, files.journal] {
      try DurableFile.removeIfPresent(path)
    }
    try DurableFile.removeTree(files.supportFolder)
  }
}
