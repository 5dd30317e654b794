import Foundation
import GodwitDurableFiles
import GodwitPlanning
import GodwitWorker
import SystemPackage

/// The folder of one array, `state/cluster/NAME`: all that passes between the coordinator and tasks on
/// other machines.
///
///     manifest.jsonl       what is to be done, see ``BundleManifest``
///     permit               while it is there, bundles of the array may be worked on and committed
///     jobs.jsonl           what was submitted: for people, and how often it came to nothing
///     tasks.log            what the tasks wrote to standard error, see ``keptLog``
///     K.lock               held, as a lease, by the attempt that works on bundle K
///     K.start-ATTEMPT      an attempt has begun: ``AttemptStart``
///     K.results-ATTEMPT    what happened to each store in it, and what became of it: ``BundleLine``
///     K.done               the bundle is finished; gets its name by a rename, after all results: ``BundleEnd``
///     K.pace               how much the processes of the attempt may read and write
///
/// K counts from 0. ATTEMPT names one start of a task and is used once. The scheduler's word for what has
/// ended counts for nothing: what is not in these files did not happen.
struct BundleFolder: Sendable, Equatable {
  let path: FilePath

  /// The folder of all arrays.
  static func all(in state: FilePath) -> FilePath { state.appending("cluster") }

  init(_ path: FilePath) { self.path = path }

  init(_ name: String, in state: FilePath) { path = Self.all(in: state).appending(name) }

  var name: String { path.lastComponent?.string ?? "" }
  var manifest: FilePath { path.appending("manifest.jsonl") }
  var permit: FilePath { path.appending("permit") }
  var jobs: FilePath { path.appending("jobs.jsonl") }
  var log: FilePath { path.appending("tasks.log") }
  /// The same file, beside the folder, where it tells why a process of a store ended: the folder goes.
  var keptLog: FilePath { path.removingLastComponent().appending(name + Self.logEnding) }
  private static let logEnding = "-tasks.log"

  /// What the jobs print that go on with a detached run.
  static func followerLog(in state: FilePath) -> FilePath {
    all(in: state).appending("follower.log")
  }

  /// Keeps the log when the folder goes.
  ///
  /// - Returns: Nil where there is none: the tasks' scheduler has what they wrote.
  func keepLog() throws -> FilePath? {
    guard try FileKind(at: log) == .regular else { return nil }
    if try FileKind(at: keptLog) == .none {
      do {
        try DurableFile.link(log, to: keptLog)
      } catch DurabilityError.alreadyExists {
        // Another task was faster.
      }
    }
    return keptLog
  }

  /// Removes the logs that were kept, for a new run.
  static func removeLogs(in state: FilePath) throws {
    let all = all(in: state)
    guard try isFolder(all, orNothing: true) else { return }
    for name in try DurableFile.names(in: all) where name.hasSuffix(logEnding) {
      try DurableFile.removeIfPresent(all.appending(name))
    }
    try DurableFile.removeIfPresent(followerLog(in: state))
  }

  func lock(_ index: Int) -> FilePath { path.appending("\(index).lock") }
  func pace(_ index: Int) -> FilePath { path.appending("\(index).pace") }
  func done(_ index: Int) -> FilePath { path.appending("\(index).done") }
  func start(_ index: Int, _ attempt: String) -> FilePath {
    path.appending("\(index).start-\(attempt)")
  }
  func results(_ index: Int, _ attempt: String) -> FilePath {
    path.appending("\(index).results-\(attempt)")
  }

  /// Whether its bundles may be worked on.
  var isPermitted: Bool { get throws { try FileKind(at: permit) == .regular } }

  /// From here on nothing of the array begins or is committed, whoever works on it and wherever.
  func revoke() throws { try DurableFile.removeIfPresent(permit) }

  /// The folders of arrays in a state folder, in the order in which they were made.
  static func folders(in state: FilePath) throws -> [BundleFolder] {
    try everyFolder(in: state).filter { try $0.isOfArray }
  }

  /// The other folders there: somebody's copies, notes or volumes, which nobody but their owner removes.
  static func foreignFolders(in state: FilePath) throws -> [FilePath] {
    try everyFolder(in: state).filter { try !$0.isOfArray }.map(\.path)
  }

  private static func everyFolder(in state: FilePath) throws -> [BundleFolder] {
    let all = all(in: state)
    guard try isFolder(all, orNothing: true) else { return [] }
    return try DurableFile.names(in: all)
      .filter { try !$0.hasPrefix(removedPrefix) && isFolder(all.appending($0)) }
      .map { BundleFolder(all.appending($0)) }
  }

  /// Whether it is named as arrays are, and holds what they hold; or as yet nothing, where its coordinator
  /// died.
  private var isOfArray: Bool {
    get throws {
      let parts = name.split(separator: "-", omittingEmptySubsequences: false)
      guard parts.count == 2, Self.digitCounts.contains(parts[0].count),
        parts[0].utf8.allSatisfy(Self.isDigit),
        !parts[1].isEmpty, parts[1].utf8.allSatisfy({ Self.isDigit($0) || (97...102).contains($0) })
      else { return false }
      for file in [manifest, permit] where try FileKind(at: file) != .none { return true }
      let names = try DurableFile.names(in: path)
      let markers = BundleMarkers(names: names)
      return !markers.started.isEmpty || !markers.results.isEmpty
        || names.allSatisfy { $0.hasPrefix(".manifest.jsonl.") }
    }
  }

  /// More than arrays can be counted by, and few enough to count on from.
  private static let digitCounts = 6...12

  private static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) }

  /// Those whose bundles may be worked on.
  static func permitted(in state: FilePath) throws -> [BundleFolder] {
    try folders(in: state).filter { try $0.isPermitted }
  }

  private static let removedPrefix = ".removed-"

  /// Removes the folder, whose results are written down. It loses its name first, by which tasks that
  /// begin at this moment find it. What they put into it all the same stays until
  /// ``removeRest(in:)``: it is nothing that anybody reads.
  ///
  /// - Throws: `DurabilityError` where it keeps its name.
  func remove() throws {
    let removed = path.removingLastComponent().appending(Self.removedPrefix + name)
    try DurableFile.rename(path, to: removed)
    Self.removeTree(removed)
  }

  /// Removes what is left of folders that were removed.
  static func removeRest(in state: FilePath) throws {
    let all = all(in: state)
    guard try isFolder(all, orNothing: true) else { return }
    for name in try DurableFile.names(in: all) where name.hasPrefix(removedPrefix) {
      removeTree(all.appending(name))
    }
  }

  /// 3 times: a file may come while others go.
  private static func removeTree(_ path: FilePath) {
    for _ in 0..<3 {
      do { return try DurableFile.removeTree(path) } catch { continue }
    }
  }

  /// - Parameter orNothing: Whether nothing else may be there. Beside the arrays the tasks of followers
  ///   write files.
  /// - Throws: `DurabilityError.symbolicLink`: what it leads to may be at work, and nobody would see it.
  private static func isFolder(_ path: FilePath, orNothing: Bool = false) throws -> Bool {
    switch try FileKind(at: path) {
    case .folder: return true
    case .symbolicLink: throw DurabilityError.symbolicLink(path)
    case .regular, .special:
      guard orNothing else { return false }
      throw DurabilityError.failed(call: "open", path: path, .notDirectory)
    case .none: return false
    }
  }

  /// The other pipeline with this state folder whose array it is; nil where it is that of the given file,
  /// and where nobody can tell. Its own next start takes the results over: they are of its stores, backups
  /// and settings.
  func otherPipeline(than own: FilePath) -> FilePath? {
    guard let manifest = try? BundleManifest(at: manifest) else { return nil }
    let file = FilePath(manifest.header.pipeline)
    // One that was moved is known by its run.
    guard !file.isSamePlace(as: own), case .there = FilePresence(of: file) else { return nil }
    return file
  }

  /// What the folder says of its bundles.
  func markers() throws -> BundleMarkers { BundleMarkers(names: try DurableFile.names(in: path)) }

  /// The results of attempts at a bundle that are final.
  func finalResults(of index: Int, _ attempts: [String]) throws -> [BundleResult] {
    try lastingResults(of: index, attempts).filter(\.isFinal)
  }

  /// The same, and what the attempts tell of earlier commits.
  func lastingResults(of index: Int, _ attempts: [String]) throws -> [BundleResult] {
    var results: [BundleResult] = []
    for attempt in attempts {
      let ahead = secondsAhead(index, attempt)
      var offset: Int64 = 0
      while true {
        let (lines, end) = try BundleLine.read(self.results(index, attempt), from: offset)
        results += lines.compactMap(\.result).filter(\.isLasting).map { $0.earlier(by: ahead) }
        if end == offset { break }
        offset = end
      }
    }
    return results
  }

  /// Whether an attempt holds the lease of a bundle, and renews it. What cannot be looked at is held.
  func isHeld(_ index: Int) -> Bool {
    (try? Lease.isHeld(at: lock(index), seconds: LeaseTime.seconds)) ?? true
  }

  /// Whether an attempt is alive, as far as leases tell, at whichever bundle.
  func isAlive() throws -> Bool { try markers().started.keys.contains(where: isHeld) }

  /// The results of all attempts that are final, whatever the manifest says, and what they tell of earlier
  /// commits.
  ///
  /// - Throws: ``ClusterError/badResults(path:offset:)``, ``ClusterError/lostResults(array:bundle:expected:found:)``,
  ///   ``ClusterError/unreadableResults(path:reason:)``.
  func lastingResults() throws -> [BundleResult] {
    do {
      let markers = try markers()
      var all = try markers.results.flatMap { try lastingResults(of: $0.key, $0.value) }
      for index in markers.done {
        let news = try finalResults(of: index, markers.results[index] ?? []).filter(\.isNews)
        try requireAll(of: index, Set(news.map { FilePath($0.store) }).count)
      }
      // A store's own result comes after what its attempt found of an earlier run, whatever clocks say.
      all.sort {
        ($0.isOfEarlierCommit ? 0 : 1, $0.ended) < ($1.isOfEarlierCommit ? 0 : 1, $1.ended)
      }
      return all
    } catch let error as DurabilityError {
      throw ClusterError.unreadableResults(path: path.string, reason: "\(error)")
    }
  }

  /// The bundle is finished, and its results are as many as whoever finished it had seen.
  func requireAll(of index: Int, _ found: Int) throws {
    guard let end = try readEnd(index), let expected = end.results, found < expected else { return }
    throw ClusterError.lostResults(
      array: path.string, bundle: index, expected: expected, found: found)
  }

  /// Nil where it says no more than that the bundle is finished.
  private func readEnd(_ index: Int) throws -> BundleEnd? {
    let bytes = try RegularFile.bytes(of: done(index), limit: 1 << 16, isPrivate: true)
    return try? JSONDecoder().decode(BundleEnd.self, from: Data(bytes))
  }

  /// Nil where it cannot be read: whoever wrote it died.
  func readStart(_ index: Int, _ attempt: String) -> AttemptStart? {
    let bytes = try? RegularFile.bytes(of: start(index, attempt), limit: 1 << 16, isPrivate: true)
    return bytes.flatMap { try? JSONDecoder().decode(AttemptStart.self, from: Data($0)) }
  }

  /// Attempts at a bundle, by the time of their start: their names say nothing of it. It is that of their
  /// markers, which the file server's one clock gives: those of the machines may be apart.
  func inOrder(_ attempts: [String], of index: Int) -> [String] {
    guard attempts.count > 1 else { return attempts }
    return attempts.map { attempt in
      let mark = try? FileMark(start(index, attempt))
      return (mark?.modificationSeconds ?? 0, mark?.modificationNanoseconds ?? 0, attempt)
    }.sorted { $0 < $1 }.map(\.2)
  }
}

/// What the names in an array's folder say.
struct BundleMarkers: Sendable, Equatable {
  /// Attempts by bundle, in the order of their names.
  var started: [Int: [String]] = [:]
  /// Likewise: attempts that have results.
  var results: [Int: [String]] = [:]
  var done: Set<Int> = []

  init(names: [String]) {
    for name in names {
      guard let dot = name.firstIndex(of: "."), let index = Int(name[..<dot]), index >= 0 else {
        continue
      }
      let rest = name[name.index(after: dot)...]
      if rest == "done" {
        done.insert(index)
      } else if let attempt = rest.after("start-") {
        started[index, default: []].append(attempt)
      } else if let attempt = rest.after("results-") {
        results[index, default: []].append(attempt)
      }
    }
  }
}
