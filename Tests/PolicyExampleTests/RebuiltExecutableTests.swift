import Foundation
import Testing

/// Checkpoints are of one plan; a plan with policies is of one build of them.
@Suite(.serialized) struct `A rebuilt executable` {
  private struct Line: Decodable {
    struct Plan: Decodable { var fingerprint: String }
    var plan: Plan
  }

  private func fingerprint(_ executable: URL, _ mapping: String, _ store: String) throws -> String {
    let process = Process()
    process.executableURL = executable
    process.arguments = [
      "plan", store, "--models", LibraryFixture.models, "--mapping", mapping, "--json",
    ]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    let said = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    let last = String(decoding: said, as: UTF8.self).split(separator: "\n").last ?? ""
    return try JSONDecoder().decode(Line.self, from: Data(last.utf8)).plan.fingerprint
  }

  @Test func `does not go on with what the older one has made, where policies are called`() throws {
    let library = try LibraryFixture(
      "INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 11, 1, 'a')")
    let plain = library.scratch.appendingPathComponent("plain.yaml").path
    try """
    mapping-model: 1
    entity-mappings: [{ source: Tag, destination: Tag }]
    """.write(toFile: plain, atomically: true, encoding: .utf8)
    let old = LibraryFixture.executable
    let new = library.scratch.appendingPathComponent("rebuilt")
    try FileManager.default.copyItem(at: old, to: new)
    // Bytes after the end of an ELF file change nothing but its digest.
    let file = try FileHandle(forWritingTo: new)
    try file.seekToEnd()
    try file.write(contentsOf: Data([0]))
    try file.close()

    let mapping = LibraryFixture.mapping
    let first = try fingerprint(old, mapping, library.store)
    #expect(try fingerprint(old, mapping, library.store) == first)
    #expect(try fingerprint(new, mapping, library.store) != first)
    // Without policies any build does the same.
    #expect(
      try fingerprint(new, plain, library.store) == fingerprint(old, plain, library.store))
  }
}
