import Foundation
import GodwitObjectModel
import GodwitSQLite
import StoreFixtures
import Testing

/// A copy of one folder of `Pipelines`, with stores of its own, gone when the test is over.
///
/// The models of `Fixtures` lie where the pipelines look for them.
final class PipelineFolder {
  static let pipelines = FixtureModels.packageRoot.appendingPathComponent("Pipelines")

  /// Every folder that is a pipeline and needs no program of its own.
  static let names: [String] = {
    let files = FileManager.default
    let found = (try? files.contentsOfDirectory(atPath: pipelines.path)) ?? []
    return found.sorted().filter { name in
      let folder = pipelines.appendingPathComponent(name).path
      return files.fileExists(atPath: folder + "/pipeline.yaml")
        && !files.fileExists(atPath: folder + "/Package.swift")
    }
  }()

  /// The temporary folder with everything.
  let root: URL
  /// The copy of the pipeline's folder.
  let url: URL

  init(_ name: String) throws {
    let files = FileManager.default
    root = files.temporaryDirectory.appendingPathComponent("godwit-pipeline-\(UUID().uuidString)")
    url = root.appendingPathComponent("Pipelines").appendingPathComponent(name)
    try files.createDirectory(at: url, withIntermediateDirectories: true)
    let original = Self.pipelines.appendingPathComponent(name)
    // A state of somebody's own run stays where it is.
    for entry in try files.contentsOfDirectory(atPath: original.path)
    where entry != "state" && entry != "stores" {
      try files.copyItem(
        at: original.appendingPathComponent(entry), to: url.appendingPathComponent(entry))
    }
    try files.copyItem(at: FixtureModels.folder, to: root.appendingPathComponent("Fixtures"))
    try files.createDirectory(
      at: url.appendingPathComponent("stores"), withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(at: root) }

  /// A path below the pipeline's folder.
  func path(_ name: String) -> String { url.appendingPathComponent(name).path }

  /// Writes a store of one of the pipeline's own models, its rows given as SQL.
  ///
  /// - Parameter model: Such as `Orders.xcdatamodeld/Orders`.
  func write(_ store: String, _ model: String, _ rows: String) throws {
    let version = try FixtureModels.model(at: path("\(model).xcdatamodel"))
    try DrawnStore(version).write(to: path(store), rows: rows)
  }

  /// A query's rows as a small text table.
  func table(_ store: String, _ sql: String) throws -> [String] {
    let connection = try Connection(path: path(store), mode: .immutable)
    return try connection.drawn(sql)
  }

  /// The names in a folder, but for hidden ones.
  func names(in folder: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path(folder))
      .filter { !$0.hasPrefix(".") }.sorted()
  }

  func bytes(_ name: String) throws -> Data {
    try Data(contentsOf: URL(fileURLWithPath: path(name)))
  }

  /// Every file below `stores`, as paths relative to it, in order.
  func storeFiles() -> [String] {
    let walk = FileManager.default.enumerator(atPath: path("stores"))
    return (walk?.compactMap { $0 as? String } ?? []).filter { name in
      var isFolder: ObjCBool = false
      return FileManager.default.fileExists(atPath: path("stores/" + name), isDirectory: &isFolder)
        && !isFolder.boolValue
    }.sorted()
  }

  /// Everything in a store but the bytes of its pages: each table with its rows in order. Only the
  /// UUID is left out, which a mapping model's destination gets again for every source file.
  func content(_ store: String) throws -> [String] {
    let connection = try Connection(path: path(store), mode: .immutable)
    let tables = try connection.drawn(
      "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return try tables.flatMap { table in
      let columns = try connection.drawn(
        "SELECT name FROM pragma_table_info('\(table)') WHERE name <> 'Z_UUID'")
      let list = columns.map { "quote(\"\($0)\")" }.joined(separator: ", ")
      return [table] + (try connection.drawn("SELECT \(list) FROM \"\(table)\"")).sorted()
    }
  }
}

/// The tool under test: `GODWIT`, or what was built together with these tests.
enum Godwit {
  struct Run {
    /// Negative: the signal that ended it.
    var status: Int32
    var output: String
    var messages: String

    /// The lines of `--json`.
    var lines: [[String: Any]] {
      output.split(separator: "\n").compactMap {
        (try? JSONSerialization.jsonObject(with: Data($0.utf8))) as? [String: Any]
      }
    }

    /// What became of each store, by its path.
    var results: [String: [String: Any]] {
      var results: [String: [String: Any]] = [:]
      for line in lines where line["event"] as? String == "result" {
        results[line["store"] as? String ?? ""] = line
      }
      return results
    }

    var summary: [String: Any] { lines.last ?? [:] }

    /// The counts of the summary that are not 0, by name.
    var counts: String {
      [
        "found", "migrated", "same-model", "refused", "needs-mapping", "quarantined", "failed",
        "pending",
      ]
      .compactMap { name in
        let count = summary[name] as? Int ?? -1
        return count == 0 ? nil : "\(count) \(name)"
      }.joined(separator: ", ")
    }
  }

  static let path: String = {
    if let given = ProcessInfo.processInfo.environment["GODWIT"] { return given }
    let beside = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath()
      .deletingLastPathComponent().appendingPathComponent("godwit").path
    return beside
  }()

  /// 300, after which the tool is killed.
  private static let longestSeconds = 300.0

  /// Runs the tool to its end.
  ///
  /// - Parameters:
  ///   - step: The durable step after which the coordinator is killed.
  ///   - words: As soon as the output has them, the tool gets SIGTERM.
  ///   - signals: How often.
  ///   - moment: As soon as the output has these words, `action` is called.
  ///   - temporaryFolder: The tool's TMPDIR.
  ///   - programs: A folder in which programs are looked for first.
  ///   - workingFolder: Where relative paths begin.
  ///   - wrapper: A program and its arguments by which the tool is started, in the same process.
  static func run(
    _ arguments: [String], killAfter step: Int? = nil, stopAt words: String? = nil,
    signals: Int = 1, at moment: String? = nil, temporaryFolder: String? = nil,
    programs: String? = nil, workingFolder: String? = nil, wrapper: [String] = [],
    _ action: (pid_t) throws -> Void = { _ in }
  ) throws -> Run {
    try #require(
      FileManager.default.isExecutableFile(atPath: path), "\(path) is not built; `swift build`")
    let process = Process()
    process.executableURL = URL(fileURLWithPath: wrapper.first ?? path)
    process.arguments = wrapper.isEmpty ? arguments : wrapper.dropFirst() + [path] + arguments
    if let workingFolder {
      process.currentDirectoryURL = URL(fileURLWithPath: workingFolder)
    }
    var environment = ProcessInfo.processInfo.environment
    environment["SWIFT_BACKTRACE"] = "enable=no"
    environment["GODWIT_KILL_AFTER_STEP"] = step.map(String.init)
    if let temporaryFolder { environment["TMPDIR"] = temporaryFolder }
    if let programs {
      environment["PATH"] = "\(programs):\(environment["PATH"] ?? "/usr/bin:/bin")"
    }
    process.environment = environment
    let output = Pipe()
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = output
    // A file: of two pipes, the tool could fill the one that is not being read.
    let messages = FileManager.default.temporaryDirectory
      .appendingPathComponent("godwit-messages-\(UUID().uuidString)")
    try Data().write(to: messages)
    defer { try? FileManager.default.removeItem(at: messages) }
    process.standardError = try FileHandle(forWritingTo: messages)
    try process.run()
    // One that waits for a cluster does so for ever.
    let pid = process.processIdentifier
    let end = DispatchWorkItem { kill(pid, SIGKILL) }
    DispatchQueue.global().asyncAfter(deadline: .now() + longestSeconds, execute: end)
    defer { end.cancel() }
    var text = Data()
    while let words = words ?? moment, text.range(of: Data(words.utf8)) == nil {
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { break }
      text += more
    }
    if moment != nil { try action(process.processIdentifier) }
    if words != nil { for _ in 0..<signals { process.terminate() } }
    text += output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    let said = String(decoding: try Data(contentsOf: messages), as: UTF8.self)
    let isKilled = process.terminationReason == .uncaughtSignal
    return Run(
      status: isKilled ? -process.terminationStatus : process.terminationStatus,
      output: String(decoding: text, as: UTF8.self), messages: said)
  }

  /// Runs a pipeline with `--json`.
  static func run(_ folder: PipelineFolder, killAfter step: Int? = nil) throws -> Run {
    try run(["run", folder.url.path, "--json"], killAfter: step)
  }
}

extension PipelineFolder {
  /// Runs a command about this pipeline, with `--json`.
  func godwit(
    _ command: [String], _ options: [String] = [], killAfter step: Int? = nil
  ) throws -> Godwit.Run {
    try Godwit.run(command + [url.path] + options + ["--json"], killAfter: step)
  }

  /// Appends to the pipeline's file.
  func addToPipeline(_ text: String) throws {
    let old = String(decoding: try bytes("pipeline.yaml"), as: UTF8.self)
    try (old + text + "\n").write(
      toFile: path("pipeline.yaml"), atomically: true, encoding: .utf8)
  }

  /// Every file below `stores` with what it holds.
  func storeContents() throws -> [String: Data] {
    try Dictionary(
      uniqueKeysWithValues: storeFiles().map { ($0, try bytes("stores/" + $0)) })
  }

  /// The same without what godwit puts beside stores.
  func contentsOfStoresAlone() throws -> [String: Data] {
    // Children of a run that was killed may hold a lease on a store for a moment longer.
    for _ in 0..<200 {
      do {
        return try storeContents().filter { !$0.key.contains(".godwit-") }
      } catch is CocoaError {
        Thread.sleep(forTimeInterval: 0.05)
      }
    }
    return try storeContents().filter { !$0.key.contains(".godwit-") }
  }

  /// Changes a byte near the end of a file as a failing disk would: every time stays what it was.
  func changeUnseen(_ path: String, at offset: UInt64? = nil) throws {
    var status = stat()
    try #require(stat(path, &status) == 0)
    let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    try file.seek(toOffset: offset ?? UInt64(status.st_size) - 3)
    try file.write(contentsOf: Data([0x5A]))
    try file.close()
    var times = [status.st_atim, status.st_mtim]
    try #require(utimensat(AT_FDCWD, path, &times, 0) == 0)
  }

  /// Two stores of the total-cost pipeline, or those of these names.
  static func orders(_ stores: [String] = ["a", "b"]) throws -> PipelineFolder {
    let folder = try PipelineFolder("total-cost")
    for name in stores {
      try folder.write(
        "stores/\(name).sqlite", "Orders.xcdatamodeld/Orders",
        "INSERT INTO ZORDER (Z_PK, Z_ENT, Z_OPT, ZNUMBER, ZAMOUNT) VALUES (1, 1, 1, 'A', 5)")
    }
    return folder
  }

  /// An application's write to a store that was migrated.
  func writeOrder(to store: String) throws {
    let connection = try Connection(path: path(store), mode: .readWrite)
    try connection.execute("UPDATE ZORDER SET ZTOTALCOST = 7, Z_OPT = Z_OPT + 1")
    try connection.close()
  }
}
