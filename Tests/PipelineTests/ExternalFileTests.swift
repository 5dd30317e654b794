import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

/// A migration that makes files of external data, killed, and resumed over files that were cut off since.
@Suite struct `New external data of a run that was killed` {
  private static let bytes = 300_000

  /// A store with three large values, and three versions of its model: the second keeps them in files.
  private func folder() throws -> PipelineFolder {
    let folder = try PipelineFolder("total-cost")
    let versions = [
      ("V1", "", "Integer 32"),
      ("V2", #"allowsExternalBinaryDataStorage="YES""#, "Integer 32"),
      ("V3", #"allowsExternalBinaryDataStorage="YES""#, "Double"),
    ]
    for (name, storage, type) in versions {
      let package = folder.path("\(name).xcdatamodel")
      try FileManager.default.createDirectory(
        atPath: package, withIntermediateDirectories: true)
      try """
      <model><entity name="A">
        <attribute name="d" attributeType="Binary" optional="YES" \(storage)/>
        <attribute name="n" attributeType="\(type)" optional="YES"/>
      </entity></model>
      """.write(toFile: package + "/contents", atomically: true, encoding: .utf8)
    }
    let rows = (1...3).map { "(\($0), 1, 1, zeroblob(\(Self.bytes + $0)))" }
    try folder.write(
      "stores/a.sqlite", "V1",
      "INSERT INTO ZA (Z_PK, Z_ENT, Z_OPT, ZD) VALUES " + rows.joined(separator: ", "))
    return folder
  }

  /// Cuts off the files that wait in the run directory.
  ///
  /// - Returns: How many.
  private func cut(_ folder: PipelineFolder) throws -> Int {
    let root = folder.path("stores/a.sqlite.godwit")
    let names = FileManager.default.enumerator(atPath: root)?.compactMap { $0 as? String } ?? []
    let waiting = names.filter { name in
      let path = URL(fileURLWithPath: name).deletingLastPathComponent().lastPathComponent
      return ["external", "_EXTERNAL_DATA"].contains(path)
        && !name.hasSuffix(".partial")
    }
    for name in waiting { truncate("\(root)/\(name)", 1_000) }
    return waiting.count
  }

  @Test(arguments: ["direct", "progressive"])
  func `is published as it was written, whatever became of it meanwhile`(chain: String) throws {
    var cutRuns = 0
    for step in stride(from: 5, to: 200, by: 5) {
      let folder = try folder()
      let words =
        ["migrate", folder.path("stores/a.sqlite"), "--to", "V3", "--chain", chain]
        + (1...3).flatMap { ["--models", folder.path("V\($0).xcdatamodel")] }
      guard try Godwit.run(words, killAfter: step).status == -SIGKILL else { break }
      guard try cut(folder) > 0 else { continue }
      cutRuns += 1
      let run = try Godwit.run(words)
      #expect(run.status == 0, "step \(step): \(run.output) \(run.messages)")
      let files = folder.path("stores/.a_SUPPORT/_EXTERNAL_DATA")
      let sizes = try FileManager.default.contentsOfDirectory(atPath: files).map {
        try FileManager.default.attributesOfItem(atPath: "\(files)/\($0)")[.size] as? Int
      }
      #expect(Set(sizes) == [300_001, 300_002, 300_003] && sizes.count == 3, "step \(step)")
    }
    #expect(cutRuns > 2)
  }
}
