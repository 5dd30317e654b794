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
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/python3")
    process.arguments =
      ["-B", program.path, "check", store.string, "--model", "cache:" + store.string]
      + (validating ? ["--validation"] : [])
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = pipe
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return process.terminationStatus == 0 ? "" : String(decoding: output, as: UTF8.self)
  }
}
