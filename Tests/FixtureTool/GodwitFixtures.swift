import ArgumentParser
import Foundation
import GodwitObjectModel
import StoreFixtures

/// Writes stores for tests, demonstrations and benchmarks.
@main
struct GodwitFixtures: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "godwit-fixtures",
    abstract: "Write Core Data stores full of seeded objects.",
    subcommands: [MakeFleet.self, MakeStore.self, BenchStoreCommand.self, CompareRows.self])
}

extension RecipesFleet.Version: ExpressibleByArgument {}
extension RecipesFleet.Logs: ExpressibleByArgument {}

struct MakeFleet: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "make-fleet",
    abstract: "Write the Recipes stores of many users, from a few objects to many.")

  @Option(help: "Where the folders user-0001, user-0002 … go.") var directory: String
  @Option(help: "How many stores.") var stores: Int
  @Option(help: "Objects of the largest store.") var rows: Int
  @Option(help: "Equal seeds give equal stores.") var seed: UInt64 = 1
  @Option(help: "1.0, 1.1, 2.0 or mixed.") var version = RecipesFleet.Version.one
  @Option(help: "Stores whose last rows are only in the write-ahead log: none, some or all.")
  var wal = RecipesFleet.Logs.none
  @Flag(help: "Some images lie in files of their own.") var external = false

  func validate() throws {
    guard (1...1_000_000).contains(stores) else {
      throw ValidationError("--stores must be 1 to 1000000")
    }
    guard (1...100_000_000).contains(rows) else {
      throw ValidationError("--rows must be 1 to 100000000")
    }
  }

  func run() throws {
    var fleet = RecipesFleet(stores: stores, rows: rows, seed: seed)
    fleet.version = version
    fleet.logs = wal
    fleet.external = external
    try fleet.write(to: directory) { version, store in
      print(
        "\(store.path)  \(version.rawValue)  \(store.totalObjects) objects  \(store.bytes) bytes")
    }
  }
}

struct MakeStore: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "make-store", abstract: "Write one store of any model.")

  @Option(help: "An .xcdatamodel or .xcdatamodeld folder, a .mom or .momd, or a store.")
  var model: String
  @Option(help: "The new store's path.") var output: String
  @Option(help: "Objects of each concrete entity.") var rows: Int
  @Option(help: "Objects of one entity, as ENTITY=COUNT; may be repeated.")
  var entityRows: [String] = []
  @Option(help: "Equal seeds give equal stores.") var seed: UInt64 = 1
  @Option(help: "How many optional values are NULL, 0 to 1.") var nulls = 0.15
  @Option(help: "How many external values lie in files of their own, 0 to 1.") var external = 0.0
  @Option(help: "A second model whose rules the values keep, too: a migration's destination.")
  var validFor: String?
  @Option(help: "The largest integer, and its negative, where the models allow it.")
  var largest: Int64?
  @Flag(help: "ASCII text only.") var ascii = false
  @Flag(help: "The last rows are only in the write-ahead log.") var wal = false
  @Flag(help: "With the tables of persistent history.") var history = false

  func run() throws {
    var options = StoreOptions(seed: seed, rows: rows)
    for text in entityRows {
      let parts = text.split(separator: "=")
      guard parts.count == 2, let count = Int(parts[1]), count >= 0 else {
        throw ValidationError("--entity-rows is ENTITY=COUNT, not \(text)")
      }
      options.rowsByEntity[.init(String(parts[0]))] = count
    }
    options.nullFraction = nulls
    options.externalFraction = external
    options.validFor = try validFor.map { try EntityHierarchy(FixtureModels.model(at: $0)) }
    options.largestInteger = largest.map { max(1, $0) }
    options.unicodeText = !ascii
    options.leavesWAL = wal
    options.history = history
    let store = try StoreGenerator(FixtureModels.model(at: model), options: options)
      .write(to: output)
    print("\(store.path)  \(store.totalObjects) objects  \(store.bytes) bytes")
  }
}

struct BenchStoreCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench-store",
    abstract: "Write the store of the migration benchmark, its models beside it.")

  @Option(help: "The new store's path.") var output: String
  @Option(help: "About how large.") var megabytes = 100
  @Option(help: "About how large, for stores below a megabyte.") var kilobytes: Int?
  @Option(help: "Equal seeds give equal stores.") var seed: UInt64 = 1
  @Flag(help: "With a small entity, for the migration that changes nothing else.")
  var settings = false
  @Option(help: "Also write the SQL that migrates it: sqlite3 DESTINATION < FILE.")
  var sql: String?
  @Option(help: "Write the SQL of every migration of such a store into this folder.")
  var scripts: String?

  func validate() throws {
    guard (1...100_000).contains(megabytes) else {
      throw ValidationError("--megabytes must be 1 to 100000")
    }
    guard (1...1_000_000).contains(kilobytes ?? 1) else {
      throw ValidationError("--kilobytes must be 1 to 1000000")
    }
    guard sql == nil || !settings else {
      throw ValidationError("--sql is for stores without --settings")
    }
  }

  func run() throws {
    var bench = BenchStore(bytes: kilobytes.map { $0 * 1000 } ?? megabytes * 1_000_000, seed: seed)
    bench.version = settings ? .five : .one
    let store = try bench.write(to: output)
    print("\(store.path)  \(store.totalObjects) objects  \(store.bytes) bytes")
    let source = URL(fileURLWithPath: output).path
    if let sql {
      let migration = try HandWrittenMigration(
        from: FixtureModels.Bench.one.model(), to: FixtureModels.Bench.two.model())
      try Data(migration.script(for: source).utf8).write(to: URL(fileURLWithPath: sql))
    }
    if let scripts {
      try BenchMigration.writeScripts(to: scripts, store: source, version: bench.version)
    }
  }
}
