import Foundation
import GodwitSQLite
import Testing

@testable import GodwitFixtures
@testable import StoreFixtures

@Suite struct `A fleet` {
  @Test func `grows from a few objects to the wished number`() {
    let fleet = RecipesFleet(stores: 20, rows: 5_000, seed: 1)
    let sizes = (0..<20).map(fleet.size)
    #expect(sizes.first == 8)
    #expect(sizes.last == 5_000)
    #expect(sizes.allSatisfy { (8...5_000).contains($0) })
    #expect(Set(sizes).count > 10)
  }

  @Test(arguments: [
    (stores: 1, rows: 1), (stores: 2, rows: 3), (stores: 3, rows: 8), (stores: 2, rows: 9),
  ])
  func `of few objects has no empty store`(stores: Int, rows: Int) throws {
    let scratch = try Scratch()
    var totals: [Int] = []
    try RecipesFleet(stores: stores, rows: rows, seed: 1).write(to: scratch.url.path) {
      totals.append($1.totalObjects)
    }
    #expect(totals.count == stores)
    #expect(totals.allSatisfy { $0 > 0 })
  }

  @Test func `mixes versions, logs and external files`() throws {
    let scratch = try Scratch()
    var fleet = RecipesFleet(stores: 6, rows: 300, seed: 9)
    fleet.version = .mixed
    fleet.logs = .some
    fleet.external = true
    var versions: Set<RecipesFleet.Version> = []
    var files = 0
    try fleet.write(to: scratch.url.path) {
      versions.insert($0)
      files += $1.externalFiles
    }
    #expect(versions == [.one, .onePointOne, .two])
    #expect(files > 0)
    let logs = (1...6).filter {
      FileManager.default.fileExists(atPath: scratch.path("user-000\($0)/Recipes.sqlite-wal"))
    }
    #expect(logs == [2, 4, 6])
  }
}

@Suite struct `A hand-written migration` {
  private func migrate(_ scratch: Scratch, _ migration: HandWrittenMigration) throws {
    let script = try migration.script(for: scratch.path("source.sqlite"))
    let result = try Connection(path: scratch.path("result.sqlite"), mode: .create)
    try result.execute(script)
    try result.execute("DETACH source")
    try result.close()
  }

  private func migrateInPlace(_ scratch: Scratch, _ migration: HandWrittenMigration) throws {
    let script = try migration.scriptInPlace(of: scratch.path("source.sqlite"))
    try FileManager.default.copyItem(
      atPath: scratch.path("source.sqlite"), toPath: scratch.path("result.sqlite"))
    let result = try Connection(path: scratch.path("result.sqlite"), mode: .readWrite)
    try result.execute(script)
    try result.close()
  }

  /// Those that a mapping model decides are compared with Godwit's result by the benchmark itself.
  static let inferred = BenchMigration.all.filter { $0.mapping == nil }.map(\.name)

  @Test(
    .enabled(if: OracleJudge.isHere, "needs ../shared"),
    arguments: inferred, [false, true])
  func `makes of the benchmark's store what the oracle expects`(
    name: String, inPlace: Bool
  ) throws {
    let scratch = try Scratch()
    let migration = try #require(BenchMigration.all.first { $0.name == name })
    var store = BenchStore(megabytes: 1, seed: 3)
    store.version = migration.source
    try store.write(to: scratch.path("source.sqlite"))
    try (inPlace ? migrateInPlace : migrate)(scratch, migration.sql())
    let verdict = try OracleJudge.run(
      "lightweight", scratch.path("source.sqlite"), scratch.path("result.sqlite"),
      "--source-model", migration.source.path, "--destination-model", migration.destination.path)
    #expect(verdict.status == 0, "\(verdict.output)")
    // The order of statements is its own: a table that is copied whole has its indexes first.
    // `ALTER TABLE` also writes its own text, and adds columns at the end.
    guard !inPlace else { return }
    let text = try OracleJudge.run(
      "ddl", scratch.path("result.sqlite"), "--model", migration.destination.path)
    #expect(text.status == 0, "\(text.output)")
  }

  @Test(.enabled(if: OracleJudge.isHere, "needs ../shared"))
  func `makes of Recipes 1 what the oracle expects of Recipes 2`() throws {
    let scratch = try Scratch()
    try StoreGenerator(FixtureModels.Recipes.one.model(), options: StoreOptions(seed: 8, rows: 70))
      .write(to: scratch.path("source.sqlite"))
    try migrate(
      scratch,
      HandWrittenMigration(
        from: FixtureModels.Recipes.one.model(), to: FixtureModels.Recipes.two.model()))
    let verdict = try OracleJudge.run(
      "lightweight", scratch.path("source.sqlite"), scratch.path("result.sqlite"),
      "--source-model", FixtureModels.Recipes.one.path, "--destination-model",
      FixtureModels.Recipes.two.path)
    #expect(verdict.status == 0, "\(verdict.output)")
  }
}
