import Foundation
import StoreFixtures
import Testing

@Suite struct `A pipeline that means less than it says` {
  @Test(arguments: ["run", "plan"])
  func `names the patterns and the roots that mean nothing`(command: String) throws {
    let folder = try PipelineFolder("recipes-2.0")
    try RecipesFleet(stores: 1, rows: 20, seed: 5).write(to: folder.path("stores"))
    try FileManager.default.createDirectory(
      atPath: folder.path("more"), withIntermediateDirectories: true)
    let store = try #require(folder.storeFiles().first { $0.hasSuffix(".sqlite") })
    let text = String(decoding: try folder.bytes("pipeline.yaml"), as: UTF8.self)
    let rest = text.split(separator: "\n", omittingEmptySubsequences: false)
      .filter { !$0.hasPrefix("stores:") && !$0.hasPrefix("  ") }
    let stores = #"""
      stores:
        roots: [stores, more]
        include: ["\#(store)", "{a,b}/*.sqlite", "[1]/*.sqlite"]

      """#
    try (stores + rest.joined(separator: "\n")).write(
      toFile: folder.path("pipeline.yaml"), atomically: true, encoding: .utf8)
    let run = try Godwit.run([command, folder.url.path])
    #expect(run.status == 0, "\(run.messages)")
    let said = run.messages + run.output
    #expect(
      said.contains("{a,b}/*.sqlite and 1 more patterns of stores.include mean no file."), "\(said)"
    )
    #expect(said.contains("Brackets and braces stand for themselves in patterns."))
    #expect(said.contains("more is without a store."))
  }

  @Test func `is told by the doctor what lies in the place of its state folder`() throws {
    let folder = try PipelineFolder("recipes-2.0")
    try RecipesFleet(stores: 1, rows: 20, seed: 5).write(to: folder.path("stores"))
    try Data().write(to: URL(fileURLWithPath: folder.path("state")))
    let doctor = try Godwit.run(["doctor", folder.url.path])
    #expect(doctor.status == 78 && doctor.output.contains("state is a regular file, not a folder."))
    let run = try Godwit.run(folder)
    #expect(run.status == 78 && run.messages.contains("state is a regular file, not a folder."))
  }
}
