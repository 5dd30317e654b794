import Foundation
import GodwitDurableFiles
import GodwitSQLite
import SystemPackage

/// What a machine has to offer, and what would go wrong before a store is touched.
package struct Doctor: Sendable {
  /// One thing looked at.
  package struct Finding: Codable, Sendable {
    package private(set) var event = "check"
    package var name: String
    package var value: String
    package var isGood: Bool
    /// What to do where it is not.
    package var advice: String?

    package init(name: String, value: String, isGood: Bool, advice: String? = nil) {
      (self.name, self.value, self.isGood, self.advice) = (name, value, isGood, advice)
    }
  }

  private let folder: FilePath
  private let state: FilePath?

  /// - Parameters:
  ///   - folder: Where stores lie, or run directories will.
  ///   - state: Where run directories will lie instead.
  package init(folder: FilePath, state: FilePath? = nil) {
    self.folder = folder
    self.state = state.map { $0.resolved ?? $0.whole }
  }

  package func findings() -> [Finding] {
    let findings = [
      sqlite, library("zstd", LibraryVersions.zstd), library("zlib", LibraryVersions.zlib),
      library("openssl", LibraryVersions.openSSL), processors, memory, openFiles, clock,
      space(folder, "free space here"),
      temporarySpace, fileSystem,
    ]
    guard let state else {
      return findings + [
        durability(of: folder, advice: "Place run directories elsewhere with --state.")
      ]
    }
    let found = finding(ofState: state)
    guard found.isGood else { return findings + [found] }
    return findings + [
      found, space(state.nearest, "free space for run directories"),
      durability(of: state.nearest, advice: "Give another folder with --state."),
    ]
  }

  private func finding(ofState state: FilePath) -> Finding {
    do {
      try DurableFile.checkFolderPlace(state)
      if try DurableFile.isFolder(state) { try Folder(state).checkPrivate() }
      return Finding(name: "state", value: "\(state)", isGood: true)
    } catch {
      return Finding(
        name: "state", value: "\(error)", isGood: false, advice: Self.adviceOfState)
    }
  }

  static let adviceOfState =
    "Give --state a folder that belongs to this user and that nobody else can write to."

  private func library(_ name: String, _ version: String) -> Finding {
    Finding(name: name, value: version, isGood: true)
  }

  private var sqlite: Finding {
    guard let version = LibraryVersions.sqlite else {
      return Finding(
        name: "sqlite", value: "unknown", isGood: false,
        advice: "libsqlite3 does not work; install it again.")
    }
    let numbers = version.split(separator: ".").compactMap { Int($0) }
    // 3.31 has generated columns and trusted_schema; older ones read some stores wrongly.
    let isGood = numbers.lexicographicallyPrecedes([3, 31]) == false
    return Finding(
      name: "sqlite", value: version, isGood: isGood,
      advice: isGood ? nil : "Install SQLite 3.31 or later.")
  }

  private var processors: Finding {
    Finding(
      name: "processors", value: "\(ProcessInfo.processInfo.activeProcessorCount)", isGood: true)
  }

  private var memory: Finding {
    let bytes = Int64(clamping: ProcessInfo.processInfo.physicalMemory)
    // The coordinator and two workers at their limits.
    let isGood = bytes >= 512 << 20
    return Finding(
      name: "memory", value: ByteSize.text(bytes), isGood: isGood,
      advice: isGood ? nil : "Run with --workers 1.")
  }

  private var openFiles: Finding {
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    let isGood = limit.rlim_cur >= 256
    return Finding(
      name: "open files", value: "\(limit.rlim_cur)", isGood: isGood,
      advice: isGood ? nil : "Raise it with `ulimit -n 1024`.")
  }

  private var clock: Finding {
    let now = Date()
    // 2025-01-01: a machine without battery wakes in 1970, and backups would carry that date.
    let isGood = now.timeIntervalSince1970 > 1_735_689_600
    return Finding(
      name: "clock", value: RunFolder.timestamp(now.timeIntervalSince1970), isGood: isGood,
      advice: isGood ? nil : "Set the clock; backups are named by it.")
  }

  private func space(_ folder: FilePath, _ name: String) -> Finding {
    let free: Int64?
    do {
      free = try DurableFile.freeBytes(at: folder).map { Int64($0) }
    } catch {
      return Finding(
        name: name, value: "\(folder) cannot be read", isGood: false,
        advice: "Check that it exists and may be read.")
    }
    guard let free else {
      return Finding(name: name, value: "the volume of \(folder) does not say", isGood: true)
    }
    let isGood = free >= 64 << 20
    return Finding(
      name: name, value: "\(ByteSize.text(free)) in \(folder)", isGood: isGood,
      advice: isGood
        ? nil : "A migration needs about 2.2 times the store's size, 3.2 times in place.")
  }

  private var temporarySpace: Finding {
    let name = "free space for clones of `plan`"
    do {
      try TemporaryPlace.check()
    } catch {
      return Finding(name: name, value: "none", isGood: false, advice: "\(error)")
    }
    return space(FilePath(FileManager.default.temporaryDirectory.path), name)
  }

  private var fileSystem: Finding {
    guard let name = MountTable.current?.volume(of: folder)?.type else {
      return Finding(
        name: "file system", value: "unknown", isGood: false, advice: "Check \(folder).")
    }
    let isRemote = ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs"].contains(name)
    return Finding(
      name: "file system", value: name, isGood: !isRemote,
      advice: isRemote
        ? "SQLite's locks are not reliable there. Copy the stores to a local file system first."
        : nil)
  }

  private func durability(of folder: FilePath, advice: String) -> Finding {
    let path = folder.appending(".godwit-doctor-\(getpid())")
    do {
      let start = ContinuousClock.now
      try DurableFile.write([1], to: path)
      let seconds = (ContinuousClock.now - start).inSeconds
      try DurableFile.remove(path)
      return Finding(
        name: "durable write", value: "\((seconds * 10_000).rounded() / 10) ms", isGood: true)
    } catch {
      return Finding(
        name: "durable write", value: "\(error)", isGood: false,
        advice: "This folder is not writable. \(advice)")
    }
  }
}

extension Doctor {
  /// Whether the system says who else has a file open: a file lease can be had there, and tells of everybody.
  ///
  /// - Parameter path: Of a file that is made for the question, and removed.
  static func canLease(_ path: FilePath) throws -> Bool {
    try DurableFile.write([1], to: path)
    defer { try? DurableFile.remove(path) }
    var lock = try StoreLock(excludingOthersFrom: path)
    let openers = try lock.takeLease()
    lock.giveLeaseBack()
    return openers == .none
  }
}
