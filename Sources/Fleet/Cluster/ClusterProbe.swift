import Foundation
import Glibc
import GodwitDurableFiles
import GodwitWorker
import SystemPackage

/// What one machine of a cluster finds out about the shared file system, while the doctor that started
/// it holds `lock` in the same folder.
///
///     lock          held by the doctor: another machine must not get it
///     once          made by exactly one machine
///     NODE.flip     replaced over and over: whoever reads it sees one whole content
///     signs.json    the files of the doctor's that lie in the roots of the stores meanwhile: ``Signs``
///     NODE.json     the ``Answer``, last
package struct ClusterProbe: Sendable {
  /// What a machine says.
  struct Answer: Codable, Sendable, Equatable {
    var node: String
    /// Whether the lock that another machine holds was given to this one, too.
    var gotLock: Bool
    var madeOnce: Bool
    /// Of the folder, as this machine numbers volumes.
    var device: UInt64
    /// The server's time of a new file less this machine's clock, in seconds.
    var clockSkew: Double
    var durableMilliseconds: Double
    /// Roots that it cannot see or write to, with why.
    var roots: [String: String]
    /// Roots where file leases are missing.
    var withoutLeases: [String]
    /// Roots that lead elsewhere than those of the doctor's machine.
    var otherRoots: [String]?
    var danger: String?
    /// What went wrong with the rest.
    var failure: String?
  }

  private let folder: FilePath
  private let roots: [FilePath]

  /// - Parameters:
  ///   - folder: On the shared file system; holds nothing else.
  ///   - roots: Of the pipeline's stores.
  package init(folder: FilePath, roots: [FilePath]) { (self.folder, self.roots) = (folder, roots) }

  static let flips = 100
  static let flipBytes = 8_192
  /// By what roots are known to be the same everywhere: `signs.json`. The doctor puts a file of this name,
  /// which is used once, into each that it may write to.
  struct Signs: Codable, Sendable {
    var name: String
    var roots: [String]

    init() {
      name = ".godwit-doctor-\(getpid())-\(String(UInt64.random(in: .min ... .max), radix: 16))"
      roots = []
    }

    func file(in root: FilePath) -> FilePath { root.appending(name) }

    static func path(_ folder: FilePath) -> FilePath { folder.appending("signs.json") }

    static func read(_ folder: FilePath) -> Signs? {
      let bytes = try? RegularFile.bytes(of: path(folder), limit: 4 << 20)
      return bytes.flatMap { try? JSONDecoder().decode(Signs.self, from: Data($0)) }
    }

    /// Puts them into the roots, and says in the folder where they are.
    mutating func put(into all: [FilePath], _ folder: FilePath) throws {
      for root in all where (try? DurableFile.write([1], to: file(in: root))) != nil {
        roots.append(root.string)
      }
      try DurableFile.write(Array(JSONLine.text(of: self).utf8), to: Self.path(folder))
    }

    func remove() {
      for root in roots { _ = try? DurableFile.removeIfPresent(file(in: FilePath(root))) }
    }
  }

  static func lock(_ folder: FilePath) -> FilePath { folder.appending("lock") }
  static func answer(_ folder: FilePath, _ node: String) -> FilePath {
    folder.appending(node + ".json")
  }

  /// Tries everything and writes the answer.
  package func run() throws {
    let node = TaskName.start.host
    var answer = Answer(
      node: node, gotLock: false, madeOnce: false, device: 0, clockSkew: 0, durableMilliseconds: 0,
      roots: [:], withoutLeases: [])
    do {
      try probe(&answer)
    } catch {
      answer.failure = "\(error)"
    }
    for root in roots { probe(root, &answer) }
    if let mounts = MountTable.current {
      let volumes =
        [folder].compactMap(mounts.volume)
        + roots.flatMap { root in
          [mounts.volume(of: root)].compactMap { $0 } + mounts.volumes(below: root)
        }
      answer.danger = volumes.compactMap(\.danger).first
    }
    try DurableFile.write(
      Array(JSONLine.text(of: answer).utf8), to: Self.answer(folder, node))
  }

  private func probe(_ answer: inout Answer) throws {
    answer.gotLock = try !FileLock.isHeld(at: Self.lock(folder))
    do {
      try DurableFile.create(Array(answer.node.utf8), at: folder.appending("once"))
      answer.madeOnce = true
    } catch DurabilityError.alreadyExists {
      answer.madeOnce = false
    }
    let flip = folder.appending(answer.node + ".flip")
    for number in 0..<Self.flips {
      let letter = UInt8(ascii: "a") + UInt8(number % 26)
      try DurableFile.write(
        Array(repeating: letter, count: Self.flipBytes), to: flip, surviving: .processCrash)
    }
    let start = ContinuousClock.now
    try DurableFile.write([1], to: folder.appending(answer.node + ".time"))
    answer.durableMilliseconds = (ContinuousClock.now - start).inSeconds * 1_000
    let now = Date().timeIntervalSince1970
    if let mark = try FileMark(folder.appending(answer.node + ".time")) {
      answer.device = mark.device
      answer.clockSkew =
        Double(mark.modificationSeconds) + Double(mark.modificationNanoseconds) / 1e9 - now
    }
  }

  private func probe(_ root: FilePath, _ answer: inout Answer) {
    let path = root.appending(".godwit-doctor-\(answer.node)-\(getpid())")
    do {
      if try !Doctor.canLease(path) { answer.withoutLeases.append(root.string) }
    } catch {
      answer.roots[root.string] = "\(error)"
      return
    }
    guard let signs = Signs.read(folder), signs.roots.contains(root.string),
      case .absent = FilePresence(of: signs.file(in: root))
    else { return }
    answer.otherRoots = (answer.otherRoots ?? []) + [root.string]
  }
}
