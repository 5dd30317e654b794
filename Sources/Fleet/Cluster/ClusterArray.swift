import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import SystemPackage

/// One array, as its coordinator sees it.
struct ClusterArray: Sendable {
  let folder: BundleFolder
  let header: BundleManifest.Header
  /// By bundle; empty for units.
  let stores: [[FoundStore]]
  let storesByPath: [FilePath: FoundStore]
  var progress: ArrayProgress
  /// Whether an earlier start made it.
  private(set) var isAdopted = false
  /// How far each file of results has been read.
  private var offsets: [String: Int64] = [:]
  /// Stores that have a result, by bundle.
  private var known: [Int: Set<FilePath>] = [:]
  /// Those of them whose result is final.
  private var final: [Int: Set<FilePath>] = [:]
  /// The results of the others: another attempt may take the store up while the bundle is not done.
  private var pending: [Int: [FilePath: BundleLine]] = [:]
  /// The units of which results tell, by bundle.
  private var performed: [Int: Set<Int>] = [:]

  var name: String { folder.name }
  var isOfUnits: Bool { header.units != nil }
  /// Later arrays have higher ones.
  var number: Int { Int(name.prefix { $0 != "-" }) ?? 0 }
  /// Of one store that is cut over machines: its units, or its steps in between.
  var isOfLargeStore: Bool { isOfUnits || header.handsOut }

  /// An array that is on the disk.
  init(at folder: BundleFolder) throws {
    self.folder = folder
    let manifest = try BundleManifest(at: folder.manifest)
    header = manifest.header
    stores =
      header.units != nil
      ? []
      : try header.bundles.indices.map { index in
        guard case .stores(let stores) = try manifest.bundle(index) else { return [] }
        return stores
      }
    storesByPath = Self.byPath(stores)
    progress = ArrayProgress(count: header.bundles.count)
  }

  /// Writes a new array: from here on its bundles may be worked on.
  init(
    _ bundles: [BundleManifest.Bundle], _ header: BundleManifest.Header, in state: FilePath
  ) throws {
    folder = BundleFolder(header.name, in: state)
    try DurableFile.makeFolder(folder.path)
    try BundleManifest.write(bundles, header, to: folder.manifest)
    try DurableFile.write(Array("1".utf8), to: folder.permit)
    self.header = try BundleManifest(at: folder.manifest).header
    stores = bundles.compactMap { bundle in
      guard case .stores(let stores) = bundle else { return nil }
      return stores
    }
    storesByPath = Self.byPath(stores)
    progress = ArrayProgress(count: bundles.count)
  }

  private static func byPath(_ stores: [[FoundStore]]) -> [FilePath: FoundStore] {
    Dictionary(stores.joined().map { ($0.path, $0) }, uniquingKeysWith: { $1 })
  }

  /// Whether a store is one of its own, or its units are.
  func holds(_ store: FilePath) -> Bool {
    storesByPath[store] != nil || header.units?.path == store
  }

  /// Takes it over from an earlier start.
  ///
  /// - Parameter isSameTry: See ``ArrayProgress/adopt(_:isSameTry:)``.
  mutating func adopt(isSameTry: Bool) throws {
    isAdopted = true
    progress.adopt(try standings(), isSameTry: isSameTry)
  }

  /// - Throws: ``ClusterError/badManifest(path:reason:)`` for one with stores that are none of the
  ///   pipeline's.
  func check(_ reach: StoreReach) throws {
    for store in stores.joined() where !reach.means(store) {
      throw ClusterError.badManifest(path: folder.manifest.string, foreign: store.path)
    }
  }

  /// Reads what is new in the folder.
  ///
  /// - Parameter changing: False for whoever only looks.
  /// - Returns: New lines, those of one bundle in their order.
  mutating func read(changing: Bool = true) throws -> [BundleLine] {
    let markers = try folder.markers()
    var lines: [BundleLine] = []
    for index in header.bundles.indices where !progress.bundles[index].sight.isDone {
      for attempt in folder.inOrder(markers.results[index] ?? [], of: index) {
        let name = "\(index) \(attempt)"
        while true {
          let offset = offsets[name] ?? 0
          let (new, end) = try BundleLine.read(folder.results(index, attempt), from: offset)
          offsets[name] = end
          let ahead = new.isEmpty ? 0 : folder.secondsAhead(index, attempt)
          for line in new {
            var line = line
            if let said = line.result {
              let result = header.placed(said.earlier(by: ahead))
              line.result = result
              guard isNews(line, result, of: index) else { continue }
            } else if let unit = line.unit {
              performed[index, default: []].insert(unit.unit)
            }
            lines.append(line)
          }
          if end == offset { break }
        }
      }
      var sight = ArrayProgress.Sight()
      // The marker was seen before the results were read, so they are whole.
      sight.isDone = markers.done.contains(index) && isComplete(index)
      sight.starts = markers.started[index]?.count ?? 0
      sight.results = isOfUnits ? performed[index]?.count ?? 0 : known[index]?.count ?? 0
      progress.see(index, sight)
      if sight.isDone { lines += pending.removeValue(forKey: index)?.values.map { $0 } ?? [] }
      if markers.done.contains(index) {
        try folder.requireAll(of: index, final[index]?.count ?? 0)
      }
      if changing, markers.done.contains(index), !sight.isDone {
        // Nobody would look at its stores again.
        try DurableFile.removeIfPresent(folder.done(index))
      }
    }
    return lines
  }

  /// A result that is final counts once, and more than any other. One that is not is told when no other
  /// attempt can have another: when the bundle is done. So is that there was nothing to do: the attempt that
  /// migrated the store may have said so in a file that was read before that. What is told of an earlier run's
  /// commit is no result of the store's, and always news.
  private mutating func isNews(_ line: BundleLine, _ result: BundleResult, of index: Int) -> Bool {
    if result.isOfEarlierCommit { return true }
    let store = FilePath(result.store)
    known[index, default: []].insert(store)
    if result.isNews {
      pending[index]?[store] = nil
      return final[index, default: []].insert(store).inserted
    }
    guard final[index]?.contains(store) != true else { return false }
    if result.end.handedOut != nil { return true }
    let isHeld = pending[index]?[store]?.result?.isFinal == true
    if result.isFinal || !isHeld { pending[index, default: [:]][store] = line }
    return false
  }

  private func isComplete(_ index: Int) -> Bool {
    isOfUnits || known[index, default: []].isSuperset(of: stores[index].map(\.path))
  }

  /// Whether each of its units was performed. A bundle is done, too, where one cannot be.
  func isPerformed() throws -> Bool {
    guard let work = header.units else { return true }
    // A listing of another machine's files may be old, and lines of results may be lost.
    let finished = try RunDirectory(FilePath(work.runDirectory)).finished(work.stage)
    let manifest = try BundleManifest(at: folder.manifest)
    return try header.bundles.indices.allSatisfy { index in
      guard case .units(let units) = try manifest.bundle(index) else { return true }
      return finished.union(performed[index] ?? []).isSuperset(of: units)
    }
  }

  /// Whether an attempt holds the lease of a bundle, and renews it.
  func isHeld(_ index: Int) -> Bool { folder.isHeld(index) }

  /// Which machine and process began the last attempt at a bundle, for people.
  func holder(of index: Int) -> String {
    let attempts = (try? folder.markers().started[index]) ?? []
    let last = folder.inOrder(attempts, of: index).last.flatMap { folder.readStart(index, $0) }
    return last.map { "process \($0.process) on \($0.host)" } ?? "an unknown process"
  }

  /// Whether an attempt is alive, as far as leases tell.
  func isAlive() -> Bool {
    header.bundles.indices.contains { progress.bundles[$0].sight.starts > 0 && isHeld($0) }
  }

  /// A line of what was submitted.
  private struct Submission: Codable {
    var job: String
    var tasks: String
    var time: Double
    /// Of those that were submitted before; nil where none was.
    var again: [ArrayProgress.Standing]?
  }

  /// 64 MiB.
  private static let jobsLimit = 64 << 20

  /// Writes down what was submitted: for people, and for later starts how often it came to nothing.
  func note(job: String, indices: [Int], at time: Double) {
    let again = progress.standings(of: indices)
    let line = Submission(
      job: job, tasks: SlurmScheduler.text(of: indices), time: time,
      again: again.isEmpty ? nil : again)
    guard var log = try? DurableLog(at: folder.jobs) else { return }
    try? log.append([JSONLine.text(of: line)], surviving: .processCrash)
  }

  /// In the order in which they were written. A line that is not whole is nobody's.
  private func standings() throws -> [ArrayProgress.Standing] {
    let bytes = try RegularFile.bytesIfPresent(
      of: folder.jobs, limit: Self.jobsLimit, isPrivate: true)
    let decoder = JSONDecoder()
    return (bytes ?? []).split(separator: UInt8(ascii: "\n")).flatMap { line in
      (try? decoder.decode(Submission.self, from: Data(line)))?.again ?? []
    }
  }
}

/// How the work of a run that is on a cluster stands.
package struct ClusterProgress: Codable, Sendable, Equatable {
  /// How many job arrays are not over.
  package var arrays = 0
  package var bundles = 0
  package var finished = 0
  package var running = 0
  /// How many bundles are not submitted yet, because of the scheduler's limits.
  package var held = 0
  /// Tasks that were submitted again in this start.
  package var resubmitted = 0
  /// Of those, how many had never begun.
  package var neverStarted = 0
  /// Tasks that were begun again without a further submission, by the scheduler or by hand.
  package var restarted = 0
  /// Why tasks do not begin that need help, each reason once.
  package var stuck: [String] = []
  /// Why the scheduler does not answer; nil where it does. Nothing new is known of tasks meanwhile.
  package var silent: String?

  package init() {}
}

/// A line of `godwit run --json`: tasks were submitted.
package struct ClusterSubmission: Codable, Sendable, Equatable {
  package private(set) var event = "submit"
  package var array: String
  package var job: String
  package var tasks: Int
  /// Whether they were submitted before.
  package var again: Bool
  /// Of those, how many had never begun.
  package var neverStarted: Int?
}
