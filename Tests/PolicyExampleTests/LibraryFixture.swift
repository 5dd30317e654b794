import Foundation
import GodwitObjectModel
import GodwitSQLite
import StoreFixtures

/// A library's store of the first version, and what the example's executable makes of it.
final class LibraryFixture {
  static let folder = FixtureModels.packageRoot.appendingPathComponent("Pipelines/Policies")
  static let models = folder.appendingPathComponent("Library.xcdatamodeld").path
  static let mapping = folder.appendingPathComponent("Library.mapping.yaml").path

  /// Built beside the tests themselves.
  static let executable: URL = {
    let tests = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
    return URL(fileURLWithPath: tests).deletingLastPathComponent()
      .appendingPathComponent("example-policies")
  }()

  let scratch: URL
  private var runs = 0

  /// - Parameter rows: SQL that fills the empty store.
  init(_ rows: String) throws {
    scratch = FileManager.default.temporaryDirectory
      .appendingPathComponent("library-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: scratch, withIntermediateDirectories: true)
    let model = try FixtureModels.model(at: Self.models + "/Library.xcdatamodel")
    try StoreGenerator(model, options: StoreOptions(rows: 0)).write(to: store)
    let connection = try Connection(path: store, mode: .readWrite)
    try connection.execute(rows)
    try connection.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = 1000 WHERE Z_SUPER = 0")
    try connection.close()
  }

  deinit { try? FileManager.default.removeItem(at: scratch) }

  var store: String { scratch.appendingPathComponent("Library.sqlite").path }

  /// What a command said and left.
  struct Outcome {
    struct Result: Decodable {
      struct Reason: Decodable {
        struct Own: Decodable {
          var type: String
          var domain: String
          var code: Int
          var description: String
        }
        var reason: String
        var entity: String?
        var property: String?
        var message: String
        var error: Own?
      }
      var verdict: String?
      var code: Int?
      var reasons: [Reason]?
      var notes: [String]?
      var isSound: Bool?
      var missingPolicies: [String]?
    }

    var status: Int32
    var result: Result
    /// Lines before the result.
    var lines: [String]
    var errors: String
    var output = ""
    /// The folder goes with its fixture.
    var fixture: LibraryFixture?

    /// A query's rows, drawn: a header, then each row, in columns as wide as they need to be.
    func table(_ header: String..., of sql: String) throws -> String {
      let connection = try Connection(path: output, mode: .immutable)
      let lines = try [header] + connection.rows(sql).map { $0.map(\.drawn) }
      let widths = header.indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
      return lines.map { line in
        zip(line, widths).map { $0.padding(toLength: $1, withPad: " ", startingAt: 0) }
          .joined(separator: "  ").trimmingSuffix { $0 == " " }
      }.joined(separator: "\n")
    }
  }

  func migrate(
    _ arguments: [String] = [], mapping: String = mapping, with executable: URL = executable,
    environment: [String: String] = [:]
  ) throws -> Outcome {
    runs += 1
    let output = scratch.appendingPathComponent("Library 2, \(runs).sqlite").path
    var outcome = try Self.run(
      ["migrate", store, "--models", Self.models, "--mapping", mapping, "--output", output]
        + arguments, of: executable, environment: environment)
    outcome.output = output
    outcome.fixture = self
    return outcome
  }

  /// Runs a command with `--json`.
  static func run(
    _ arguments: [String], of executable: URL = executable, environment: [String: String] = [:]
  ) throws -> Outcome {
    let process = Process()
    process.executableURL = executable
    process.arguments = arguments + ["--json"]
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    let (output, errors) = (Pipe(), Pipe())
    process.standardOutput = output
    process.standardError = errors
    try process.run()
    // What goes to standard error fits a pipe's buffer many times.
    let said = output.fileHandleForReading.readDataToEndOfFile()
    let complaints = errors.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    var lines = String(decoding: said, as: UTF8.self).split(separator: "\n").map(String.init)
    let last = lines.popLast() ?? "{}"
    return Outcome(
      status: process.terminationStatus,
      result: try JSONDecoder().decode(Outcome.Result.self, from: Data(last.utf8)), lines: lines,
      errors: String(decoding: complaints, as: UTF8.self))
  }
}

extension SQLiteValue {
  fileprivate var drawn: String {
    switch self {
    case .null: "-"
    case .integer(let number): "\(number)"
    case .real(let number): "\(number)"
    case .text(let text): text
    case .blob(let bytes): bytes.map { String(format: "%02X", $0) }.joined()
    }
  }
}

extension String {
  fileprivate func trimmingSuffix(while isTrimmed: (Character) -> Bool) -> String {
    var rest = self[...]
    while let last = rest.last, isTrimmed(last) { rest.removeLast() }
    return String(rest)
  }
}
