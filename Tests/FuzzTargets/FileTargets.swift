import Foundation
import GodwitCheckpoints
import GodwitCommit
import GodwitFleet
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

enum FileTargets {
  /// A folder for what is read by path only; in memory where the machine has one.
  private static let folder: String = {
    let parent = FileManager.default.isWritableFile(atPath: "/dev/shm") ? "/dev/shm" : "/tmp"
    let path = "\(parent)/godwit-fuzz-\(ProcessInfo.processInfo.processIdentifier)"
    certain("a folder can be made") {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }
    atexit { try? FileManager.default.removeItem(atPath: FileTargets.folder) }
    return path
  }()

  static func write(_ bytes: [UInt8], to name: String) -> FilePath {
    let path = folder + "/" + name
    hold(
      "a file can be written", FileManager.default.createFile(atPath: path, contents: Data(bytes)))
    return FilePath(path)
  }

  static func pipeline(_ bytes: [UInt8]) throws {
    _ = try Pipeline(bytes: bytes, file: "/nowhere/pipeline.yaml")
  }

  static func journal(_ bytes: [UInt8]) throws {
    let run = RunDirectory(FilePath(folder))
    _ = write(bytes, to: run.journal.lastComponent?.string ?? "")
    _ = try CommitJournal.read(in: run)
  }

  static func rollbackJournal(_ bytes: [UInt8]) throws {
    _ = try RollbackJournal.damage(of: write(bytes, to: "a.sqlite-journal"))
  }

  static func wal(_ bytes: [UInt8]) throws {
    let path = write(bytes, to: "a.sqlite-wal")
    let log = try CommittedLog(path)
    hold("what is committed is in the file", (0...Int64(bytes.count)).contains(log.size))
    hold("what is committed has a seal", (log.size > 0) == !log.seal.isEmpty)
    let unread = try CommittedLog.unreadTransactions(in: path, behind: log.size)
    hold("what is not read is behind it", unread == 0 || log.size < bytes.count)
  }

  /// Scans the table at page 2, and looks at every byte of its rows.
  static func pages(_ bytes: [UInt8]) throws {
    let file = try FileDescriptor.open(write(bytes, to: "a.sqlite"), .readOnly)
    defer { try? file.close() }
    guard let scan = TreeScan(descriptor: file.rawValue, root: 2, keys: -1000...(1 << 40)) else {
      return
    }
    var last: Int64?
    while try scan.nextLeaf() {
      for cell in scan.rows {
        hold("keys ascend", last.map { $0 < cell.key } ?? true)
        last = cell.key
        decode(cell.record)
      }
    }
  }

  /// Reads every page as the root of a tree, then what is left as leaves, as tables and as indexes;
  /// once with a gap where nobody could read the file.
  static func damagedPages(_ bytes: [UInt8]) throws {
    let middle = Int64(bytes.count / 2)
    let ways: [(TreeScan.Kind, missing: [Range<Int64>])] = [
      (.table, []), (.index, []), (.table, [middle..<middle + 700]),
    ]
    for (kind, missing) in ways {
      let path = write(bytes, to: "damaged.sqlite").string
      guard let file = DamagedFile(privateCopy: path, missing: missing) else { return }
      var reader = DamagedTreeReader(file, kind, tree: 1)
      for page in 1...file.pageCount {
        _ = (file.entry(of: page)?.parent, file.isFree(page), reader.isLeaf(page))
        reader.sample(below: page) { decode($0.record.bytes) }
      }
      for page in stride(from: 1, through: file.pageCount, by: 2) {
        try reader.read(root: page) { decode($0.record.bytes) }
      }
      for page in 1...file.pageCount { try reader.read(orphan: page) { decode($0.record.bytes) } }
    }
  }

  static func record(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { decode($0) }
  }

  /// Reads a record and looks at every byte that its values point to.
  static func decode(_ record: UnsafeRawBufferPointer) {
    withUnsafeTemporaryAllocation(of: RawValue.self, capacity: 64) { values in
      guard let start = values.baseAddress else { return }
      start.initialize(repeating: .null, count: 64)
      guard RecordFormat.decode(record: record, into: start, count: 64) else { return }
      var buffer = RawBuffer()
      RecordFormat.encode(start, count: 64, into: &buffer)
    }
  }
}
