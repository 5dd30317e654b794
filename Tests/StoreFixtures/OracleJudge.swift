import Foundation
import SystemPackage

/// The independent judge of migrated stores, a Python program beside the package.
package enum OracleJudge {
  private static let program = FixtureModels.packageRoot.deletingLastPathComponent()
    .appendingPathComponent("shared/oracle/oracle")
  package static let isHere =
    FileManager.default.fileExists(atPath: program.path)
    && FileManager.default.isExecutableFile(atPath: "/usr/bin/python3")

  /// What `check` holds against a store, its own cached model being the rule; empty when nothing.
  package static func findings(_ store: FilePath, validating: Bool = false) throws -> String {
    let verdict = try run(
      ["check", store.string, "--model", "cache:" + store.string]
        + (validating ? ["--validation"] : []))
    return verdict.status == 0 ? "" : verdict.output
  }

  package static func run(_ arguments: String...) throws -> (status: Int32, output: String) {
    try run(arguments)
  }

  package static func run(_ arguments: [String]) throws -> (status: Int32, output: String) {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/python3")
    process.arguments = ["-B", program.path] + arguments
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = pipe
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (process.terminationStatus, String(decoding: output, as: UTF8.self))
  }
}
