import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPlanning
import GodwitWorker
import SystemPackage

/// What the tasks of one array have to do: `manifest.jsonl` in the array's folder.
///
///     line 1     the header, JSON: everything that the tasks have in common, and where each bundle is
///     line 2 …   one store or unit each, JSON; those of a bundle one after the other
///
/// The header's `bundles` has for each its place, in bytes after the header's line feed, its length in
/// bytes and its number of lines. A task reads the header and its own lines, and nothing else. Version 2.
struct BundleManifest: Sendable {
  struct Header: Codable, Sendable, Equatable {
    var manifest = Self.version
    /// The array's own name, a part of the name of its job.
    var name: String
    /// The pipeline's file.
    var pipeline: String
    /// The state folder.
    var state: String
    /// ``Pipeline/digest`` of the pipeline's file: a task does nothing by another.
    var pipelineDigest: String
    /// The run that the results belong to.
    var run: String
    /// ``PipelineRun/settingsDigest()`` of the coordinator.
    var settings: String
    var losses: LossPolicy
    /// `MigrationRequest.guardsUnknownVersions`; nil, too, in manifests of earlier versions, for false.
    var guardsUnknownVersions: Bool?
    var isStoreOffline: Bool
    /// From 0.
    var wave: Int
    /// Worker processes that a task may have.
    var workers: Int
    /// How many bundles are expected to be under way at a time: they share what the run may read and
    /// write.
    var slots: Int
    var isFresh: Bool
    /// Whether somebody wants to know what happens to single stores.
    var tellsEvents: Bool
    /// Nil for bundles of stores.
    var units: UnitWork?
    /// True where the stages of the store are handed out in bundles of units.
    var handsOut: Bool
    var bundles: [Range]
    /// ``PipelineRun/requestDigest(_:)`` of the coordinator.
    var request: String?
    /// `MigrationRequest.ownCodeDigest` of the coordinator.
    var code: String?
    /// When it was written, by the coordinator's clock, in seconds since 1970-01-01 UTC: no task has ended
    /// before. Nil in manifests of earlier versions.
    var made: Double?

    /// 2: 1 did not say which content of the pipeline's file it is of.
    static let version = 2

    /// What is out of its range, where the lines have so many bytes.
    fileprivate func damage(lineBytes: Int64) -> String? {
      guard (1...256).contains(workers), (1...Int(Int32.max)).contains(slots),
        (0...Int(Int32.max)).contains(wave)
      else { return "its numbers of workers, slots and wave are not those of a run" }
      for (index, range) in bundles.enumerated() {
        let end = Int64(range.offset).addingReportingOverflow(Int64(range.bytes))
        guard range.offset >= 0, (0...BundleManifest.largestBundle).contains(range.bytes),
          (0...range.bytes).contains(range.lines), !end.overflow, end.partialValue <= lineBytes
        else { return "bundle \(index) is not in it" }
      }
      return nil
    }
  }

  /// The stage of one store that an array performs.
  struct UnitWork: Codable, Sendable, Equatable {
    /// The pipeline's, whatever copy of it is read.
    var store: String
    var stage: Stage
    var runDirectory: String

    /// By bytes: names that Swift takes for one are those of two stores.
    static func == (a: UnitWork, b: UnitWork) -> Bool {
      a.stage == b.stage && a.path == b.path && FilePath(a.runDirectory) == FilePath(b.runDirectory)
    }

    var path: FilePath { FilePath(store) }
  }

  /// Where a bundle is.
  struct Range: Codable, Sendable, Equatable {
    var offset: Int
    var bytes: Int
    var lines: Int
  }

  struct Store: Codable, Sendable, Equatable {
    var store: String
    var root: String
    var bytes: Int64
    /// ``FoundStore/snapshotIdentity``.
    var snapshot: String?

    init(_ found: FoundStore) {
      (store, root, bytes) = (found.path.string, found.root.string, found.bytes)
      snapshot = found.snapshotIdentity
    }

    var found: FoundStore {
      var found = FoundStore(path: FilePath(store), root: FilePath(root), bytes: bytes)
      found.snapshotIdentity = snapshot
      return found
    }
  }

  private struct Unit: Codable {
    var unit: Int
  }

  /// The lines of one bundle.
  enum Bundle: Sendable, Equatable {
    case stores([FoundStore])
    case units([Int])

    var count: Int {
      switch self {
      case .stores(let stores): stores.count
      case .units(let units): units.count
      }
    }

    fileprivate var lines: [String] {
      switch self {
      case .stores(let stores): stores.map { JSONLine.text(of: Store($0)) }
      case .units(let units): units.map { JSONLine.text(of: Unit(unit: $0)) }
      }
    }
  }

  let path: FilePath
  private(set) var header: Header
  private let start: Int

  /// 4 MiB: a thousand bundles have some 50 KiB.
  private static let longestHeader = 4 << 20
  /// 1 GiB for one bundle.
  fileprivate static let largestBundle = 1 << 30

  /// 1 PiB.
  private static let largestStore: Int64 = 1 << 50

  /// Writes a manifest. Its bundles are those given.
  static func write(_ bundles: [Bundle], _ header: Header, to path: FilePath) throws {
    var header = header
    header.bundles = []
    var body: [UInt8] = []
    for bundle in bundles {
      let begin = body.count
      for line in bundle.lines { body += Array((line + "\n").utf8) }
      header.bundles.append(
        Range(offset: begin, bytes: body.count - begin, lines: bundle.count))
    }
    try DurableFile.write(Array((JSONLine.text(of: header) + "\n").utf8) + body, to: path)
  }

  /// Opens a manifest and reads its header.
  ///
  /// - Throws: ``ClusterError/badManifest(path:reason:)``.
  init(at path: FilePath) throws {
    self.path = path
    let file: FileDescriptor
    do {
      file = try RegularFile.open(path, isPrivate: true)
    } catch let error as DurabilityError where error.errno != nil && !error.isNotFound {
      throw error
    } catch let error as DurabilityError where error.isNotFound {
      throw ClusterError.badManifest(path: path.string, reason: "there is none")
    } catch {
      throw ClusterError.badManifest(path: path.string, reason: "\(error)")
    }
    defer { try? file.close() }
    var bytes: [UInt8] = []
    while !bytes.contains(UInt8(ascii: "\n")) {
      let piece = try [UInt8](unsafeUninitializedCapacity: 64 << 10) { buffer, count in
        count = try file.read(
          fromAbsoluteOffset: Int64(bytes.count), into: UnsafeMutableRawBufferPointer(buffer))
      }
      guard !piece.isEmpty, bytes.count < Self.longestHeader else {
        throw ClusterError.badManifest(path: path.string, reason: "it has no header")
      }
      bytes += piece
    }
    let end = bytes.firstIndex(of: UInt8(ascii: "\n")) ?? bytes.count
    start = end + 1
    do {
      header = try JSONDecoder().decode(Header.self, from: Data(bytes[..<end]))
    } catch {
      throw ClusterError.badManifest(path: path.string, reason: "its header cannot be read")
    }
    guard header.manifest == Header.version else {
      throw ClusterError.badManifest(
        path: path.string, reason: "it has version \(header.manifest) of the format")
    }
    let size = try file.seek(offset: 0, from: .end)
    if let damage = header.damage(lineBytes: size - Int64(start)) {
      throw ClusterError.badManifest(path: path.string, reason: damage)
    }
  }

  /// The lines of a bundle, by its index from 0.
  ///
  /// - Throws: ``ClusterError/badManifest(path:reason:)``, also for an index that it does not have.
  func bundle(_ index: Int) throws -> Bundle {
    guard header.bundles.indices.contains(index) else {
      throw ClusterError.badManifest(
        path: path.string,
        reason: "it has no bundle \(index); there are \(header.bundles.count), counted from 0")
    }
    let range = header.bundles[index]
    let file = try RegularFile.open(path, isPrivate: true)
    defer { try? file.close() }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(range.bytes)
    while bytes.count < range.bytes {
      let piece = try [UInt8](unsafeUninitializedCapacity: min(1 << 20, range.bytes - bytes.count))
      {
        buffer, count in
        count = try file.read(
          fromAbsoluteOffset: Int64(start + range.offset + bytes.count),
          into: UnsafeMutableRawBufferPointer(buffer))
      }
      if piece.isEmpty { break }
      bytes += piece
    }
    let decoder = JSONDecoder()
    let lines = bytes.split(separator: UInt8(ascii: "\n")).map { Data($0) }
    do {
      guard bytes.count == range.bytes, lines.count == range.lines else {
        throw ClusterError.badManifest(path: path.string, reason: "")
      }
      if header.units != nil {
        let units = try lines.map { try decoder.decode(Unit.self, from: $0).unit }
        guard units.allSatisfy((0...Int(Int32.max)).contains) else {
          throw ClusterError.badManifest(path: path.string, reason: "")
        }
        return .units(units)
      }
      let stores = try lines.map { try decoder.decode(Store.self, from: $0).found }
      // Sizes are added up.
      guard stores.allSatisfy({ (0...Self.largestStore).contains($0.bytes) }) else {
        throw ClusterError.badManifest(path: path.string, reason: "")
      }
      return .stores(stores)
    } catch {
      throw ClusterError.badManifest(path: path.string, reason: "bundle \(index) is damaged")
    }
  }
}

/// Why work could not be done beyond this machine. No store was changed because of it.
package enum ClusterError: Error, Sendable, Equatable {
  case badManifest(path: String, reason: String)
  /// A line of results that nobody can read.
  ///
  /// - Parameter offset: Of the line, in bytes.
  case badResults(path: String, offset: Int64)
  /// A bundle is finished, and fewer of its stores have a result than when it was.
  case lostResults(array: String, bundle: Int, expected: Int, found: Int)
  /// Results that are there and cannot be read.
  case unreadableResults(path: String, reason: String)
  /// Results that the runs of the state folder know nothing of.
  case unownedResults(state: String, array: String)
  /// The scheduler refuses.
  case scheduler(message: String)
  /// The scheduler does not answer now.
  case unanswered(message: String)
  /// The scheduler takes no more now, and will again.
  case full(message: String)
  /// Work of an earlier run is still on the cluster.
  case underWay(state: String, arrays: [String])
  /// Another pipeline with the same state folder has bundles on a cluster.
  case underWayElsewhere(state: String, pipeline: String)
  /// Machines could work on one store at the same time.
  case unsafeVolume(folder: String, reason: String)
  /// A bundle ends again and again before it gets anywhere.
  case bundleLost(array: String, index: Int, attempts: Int)
}

extension ClusterError {
  /// A manifest with a store that is none of the pipeline's.
  static func badManifest(path: String, foreign store: FilePath) -> ClusterError {
    .badManifest(
      path: path,
      reason: "\(store) is none of the stores that the pipeline means, and was not opened")
  }
}

extension String {
  /// With a full stop, of which it may have one: for what others say within a message.
  var sentence: String { hasSuffix(".") ? self : self + "." }
}

extension ClusterError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .badManifest(let path, let reason):
      "\(path) is not a manifest that can be used: \(reason.sentence) Let `godwit run` write a new one."
    case .badResults(let path, let offset):
      "\(path) is damaged: the line at byte \(offset) says what became of a store, and cannot be read. "
        + "Nothing was changed, and the other results are kept. See which store of the manifest beside it has "
        + "no line, and whether a backup that no list has lies beside that store. Then remove the line and "
        + "run again."
    case .lostResults(let array, let bundle, let expected, let found):
      "Bundle \(bundle) of \(array) is finished with the results of \(expected) stores, and has those of "
        + "\(found): its files of results were cut off or removed. Nothing was changed. Restore them, or see which "
        + "store of the manifest has no line, and whether a backup that no list has lies beside that store; "
        + "then remove \(bundle).done and run again."
    case .unreadableResults(let path, let reason):
      "The results in \(path) cannot be read: \(reason.sentence) Let this user read them, and run the command again."
    case .unownedResults(let state, let array):
      "The manifest of \(array) in \(state) cannot be read, and its results are not recorded yet. Run "
        + "`godwit run PIPELINE`, which records them, and then this command again."
    case .scheduler(let message), .unanswered(let message), .full(let message): message
    case .underWayElsewhere(let state, let pipeline):
      "Bundles of \(pipeline) are on a cluster, and it shares its state folder (\(state)). Wait for them, or "
        + "stop that pipeline, or give this one a state folder of its own by --state."
    case .underWay(let state, let arrays):
      "Bundles of this pipeline are on a cluster (\(arrays.joined(separator: ", ")) in \(state)). "
        + "Attach with `godwit run PIPELINE` and the same engine, and stop that run with Ctrl-C to "
        + "cancel them. Where the scheduler does not come back, do so with `--engine array`."
    case .unsafeVolume(let folder, let reason):
      "\(folder) cannot be shared by machines: \(reason.sentence) Mount it otherwise, or use --engine local. "
        + "`godwit doctor` looks at it from every machine."
    case .bundleLost(let array, let index, let attempts):
      "Bundle \(index) of \(array) was submitted \(attempts) times and did not get on. See tasks.log "
        + "in its folder and the scheduler's own logs, and run again."
    }
  }
}
