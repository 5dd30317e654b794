// swift-tools-version: 6.2
import PackageDescription

let system = Target.Dependency.product(name: "SystemPackage", package: "swift-system")
let argumentParser = Target.Dependency.product(
  name: "ArgumentParser", package: "swift-argument-parser")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let mustache = Target.Dependency.product(name: "Mustache", package: "swift-mustache")
let yams = Target.Dependency.product(name: "Yams", package: "Yams")

/// A target of this package: the folder's name with the package's before it.
func ours(_ folder: String) -> Target.Dependency { .target(name: "Godwit" + folder) }

/// `scripts/test` sets this: targets that are not on the row path are built without optimization then,
/// since theirs takes a third of the time of the whole build.
let isQuickBuild = Context.environment["GODWIT_QUICK_BUILD"] != nil

/// A library target: one folder, and the targets below it that it may import.
/// Resources become part of the executable.
func library(
  _ folder: String, _ dependencies: [Target.Dependency], resources: [Resource] = [],
  isOnRowPath: Bool = true, plugins: [Target.PluginUsage] = []
) -> Target {
  .target(
    name: "Godwit" + folder, dependencies: dependencies, path: "Sources/" + folder,
    resources: resources,
    swiftSettings: isQuickBuild && !isOnRowPath ? [.unsafeFlags(["-Onone"])] : [],
    plugins: plugins)
}

/// The tests of one target. Files that are read in place, such as golden ones, are excluded.
func tests(
  _ folder: String, _ dependencies: [Target.Dependency], exclude: [String] = []
) -> Target {
  .testTarget(
    name: folder + "Tests", dependencies: dependencies, path: "Tests/" + folder + "Tests",
    exclude: exclude,
    // `scripts/test` builds everything optimized; the tests' own code would take most of that time.
    swiftSettings: [.unsafeFlags(["-Onone"])])
}

/// Every target carries the package's name, since a team's package that uses ours may have a
/// `SQLite` or a `Worker` of its own. Folders use the short names.
let package = Package(
  name: "godwit",
  products: [
    .executable(name: "godwit", targets: ["GodwitTool"]),
    .library(name: "Godwit", targets: ["Godwit"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
    .package(url: "https://github.com/hummingbird-project/swift-mustache", from: "2.1.1"),
  ],
  targets: [
    // Models, fleets and rivals for the tests; not part of the product.
    .target(
      name: "StoreFixtures",
      dependencies: [
        ours("Fixtures"), ours("PersistentStore"), ours("ObjectModel"), ours("KeyedArchive"),
        ours("DurableFiles"), ours("SQLite"), system,
      ], path: "Tests/StoreFixtures"),
    .executableTarget(
      name: "godwit-fixtures",
      dependencies: [
        "StoreFixtures", ours("ObjectModel"), ours("Digests"), ours("SQLite"), argumentParser,
      ],
      path: "Tests/FixtureTool"),
    // The executable of a team with policies, for trials and the benchmark.
    .executableTarget(
      name: "godwit-trial", dependencies: ["Godwit"], path: "Tests/TrialTool"),
    // An executable with stages of its own, for crash trials of real processes.
    .executableTarget(
      name: "staged-tool", dependencies: ["Godwit"], path: "Tests/StagedTool"),
    .executableTarget(
      name: "godwit-benchmarks",
      dependencies: ["StoreFixtures", ours("KeyedArchive"), ours("SQLite"), argumentParser],
      path: "Tests/Benchmarks"),
    tests(
      "StoreFixtures", ["StoreFixtures", ours("Fixtures"), ours("SQLite"), ours("ObjectModel")]),
    // Parsers of bytes that others wrote, for the fuzzer and for tests of what it found.
    .target(
      name: "FuzzTargets",
      dependencies: [
        ours("Fleet"), ours("Commit"), ours("Planning"), ours("Checkpoints"),
        ours("PersistentStore"), ours("Mapping"), ours("Expressions"), ours("ObjectModel"),
        ours("KeyedArchive"),
        ours("SQLite"), ours("Digests"), "CZstd", system,
      ], path: "Tests/FuzzTargets"),
    tests("FuzzTargets", ["FuzzTargets"], exclude: ["Inputs"]),

    // System libraries.
    .systemLibrary(name: "CSQLite", path: "Sources/CSQLite", pkgConfig: "sqlite3"),
    .systemLibrary(name: "CZstd", path: "Sources/CZstd", pkgConfig: "libzstd"),
    .systemLibrary(name: "CZlib", path: "Sources/CZlib", pkgConfig: "zlib"),
    .systemLibrary(name: "CCrypto", path: "Sources/CCrypto", pkgConfig: "libcrypto"),
    .systemLibrary(name: "CLinux", path: "Sources/CLinux"),

    library("KeyedArchive", []),
    library("Digests", ["CCrypto"]),
    library("DurableFiles", ["CLinux", system]),
    library("SQLite", ["CSQLite", ours("Digests")]),
    library(
      "ObjectModel",
      [ours("KeyedArchive"), ours("Digests"), ours("DurableFiles"), "CZlib", system]),
    library("Expressions", [ours("ObjectModel"), ours("KeyedArchive"), ours("SQLite")]),
    library(
      "Mapping",
      [
        ours("Expressions"), ours("ObjectModel"), ours("KeyedArchive"), ours("DurableFiles"),
        system, yams,
      ], isOnRowPath: false),
    library(
      "PersistentStore",
      [
        ours("ObjectModel"), ours("KeyedArchive"), ours("Digests"), ours("DurableFiles"),
        ours("SQLite"), system,
      ]),
    // Seeded stores for tests, those of teams included.
    library(
      "Fixtures",
      [
        ours("PersistentStore"), ours("ObjectModel"), ours("KeyedArchive"), ours("DurableFiles"),
        ours("SQLite"), system,
      ]),
    library(
      "Repair",
      [
        ours("PersistentStore"), ours("ObjectModel"), ours("Digests"), ours("DurableFiles"),
        ours("SQLite"), system,
      ]),
    library("Checkpoints", [ours("DurableFiles"), ours("Digests"), "CZstd", system]),
    library(
      "Planning",
      [
        ours("Checkpoints"), ours("Mapping"), ours("Expressions"), ours("PersistentStore"),
        ours("ObjectModel"),
        ours("Digests"), ours("DurableFiles"), ours("SQLite"), system,
      ]),
    // The objects of a store, for the handlers of stages.
    library(
      "StagedObjects",
      [
        ours("Commit"), ours("Planning"), ours("PersistentStore"), ours("Expressions"),
        ours("ObjectModel"), ours("DurableFiles"), ours("SQLite"), system,
      ]),
    // What the coordinator does between the stages.
    library(
      "Barriers",
      [
        ours("Worker"), ours("Planning"), ours("Checkpoints"), ours("PersistentStore"),
        ours("Expressions"), ours("ObjectModel"), ours("Digests"), ours("DurableFiles"),
        ours("SQLite"), system,
      ]),
    library("Ledger", [ours("SQLite"), ours("DurableFiles"), system], isOnRowPath: false),
    library("Pages", [ours("Planning"), ours("ObjectModel"), ours("SQLite")]),
    library(
      "Worker",
      [
        ours("Pages"), ours("Planning"), ours("Checkpoints"), ours("PersistentStore"),
        ours("Expressions"), ours("ObjectModel"), ours("Digests"), ours("DurableFiles"),
        ours("SQLite"), system,
      ]),
    library(
      "Commit",
      [
        ours("Pages"), ours("Planning"), ours("Checkpoints"), ours("PersistentStore"),
        ours("Digests"), ours("SQLite"), ours("DurableFiles"), ours("ObjectModel"), "CLinux",
        system,
      ]),
    // Programs of the system that do something for us.
    library("Programs", [ours("DurableFiles")]),
    library(
      "Fleet",
      [
        ours("Programs"),
        ours("Commit"), ours("Worker"), ours("Barriers"), ours("StagedObjects"), ours("Ledger"),
        ours("Planning"), ours("Checkpoints"),
        ours("KeyedArchive"), ours("PersistentStore"), ours("Mapping"), ours("Expressions"),
        ours("ObjectModel"),
        ours("DurableFiles"),
        ours("SQLite"), ours("Digests"), "CLinux", "CZlib", "CZstd", system,
      ], isOnRowPath: false),
    library(
      "Report",
      [ours("Programs"), ours("Ledger"), ours("ObjectModel"), ours("DurableFiles"), mustache],
      resources: [.embedInCode("Templates/report.mustache")], isOnRowPath: false),
    library(
      "Commands",
      [
        ours("Report"), ours("Fleet"), ours("Fixtures"), ours("Repair"), ours("Ledger"),
        ours("Worker"),
        ours("Planning"), ours("Checkpoints"), ours("PersistentStore"), ours("Mapping"),
        ours("Expressions"),
        ours("ObjectModel"), ours("DurableFiles"), ours("SQLite"), ours("Digests"), argumentParser,
        logging, system,
      ], isOnRowPath: false, plugins: ["BuildCommit"]),
    // Tells `--version` the commit.
    .plugin(name: "BuildCommit", capability: .buildTool(), path: "Plugins/BuildCommit"),
    .target(
      name: "Godwit",
      dependencies: [
        ours("Commands"), ours("Worker"), ours("Planning"), ours("Mapping"), ours("Expressions"),
        ours("ObjectModel"),
      ], path: "Sources/Godwit"),
    .executableTarget(
      name: "GodwitTool", dependencies: ["Godwit"], path: "Sources/GodwitTool"),
    // The sources of the example package, built with ours for its tests.
    .executableTarget(
      name: "example-policies", dependencies: ["Godwit"],
      path: "Pipelines/Policies/Sources/LibraryMigrator"),

    // Tests of executables import nothing of them: they are compiled while those still are.
    tests(
      "PolicyExample",
      ["StoreFixtures", ours("SQLite"), ours("ObjectModel")]),
    tests("SQLite", [ours("SQLite"), ours("Digests")]),
    tests("Digests", [ours("Digests")]),
    tests("DurableFiles", [ours("DurableFiles"), "CLinux", system]),
    tests(
      "Checkpoints",
      [ours("Checkpoints"), ours("DurableFiles"), ours("Digests"), "CZstd", system],
      exclude: ["Golden"]),
    tests(
      "Ledger", [ours("Ledger"), ours("SQLite"), ours("DurableFiles"), system],
      exclude: ["Golden"]),
    tests("KeyedArchive", [ours("KeyedArchive")]),
    tests(
      "ObjectModel",
      [ours("ObjectModel"), ours("KeyedArchive"), ours("DurableFiles"), system]),
    tests(
      "Expressions",
      [ours("Expressions"), ours("ObjectModel"), ours("KeyedArchive"), ours("SQLite")]),
    tests(
      "Mapping",
      [
        ours("Mapping"), ours("Expressions"), ours("ObjectModel"), ours("KeyedArchive"),
      ]),
    tests(
      "PersistentStore",
      [
        ours("PersistentStore"), ours("ObjectModel"), ours("DurableFiles"), ours("SQLite"),
        ours("KeyedArchive"), system,
      ]),
    tests(
      "Repair",
      [
        ours("Repair"), ours("Fixtures"), ours("PersistentStore"), ours("ObjectModel"),
        ours("DurableFiles"), ours("SQLite"), "StoreFixtures", system,
      ]),
    tests(
      "Planning",
      [
        ours("Planning"), ours("Mapping"), ours("Expressions"), ours("PersistentStore"),
        ours("ObjectModel"), ours("SQLite"), system,
      ]),
    tests(
      "Commit",
      [
        ours("Commit"), ours("Pages"), ours("Planning"), ours("Checkpoints"),
        ours("PersistentStore"),
        ours("Digests"), ours("SQLite"), ours("DurableFiles"),
        ours("ObjectModel"), "StoreFixtures", "CLinux", system,
      ]),
    tests(
      "StagedObjects",
      [
        ours("StagedObjects"), ours("Commit"), ours("Planning"), ours("PersistentStore"),
        ours("Expressions"), ours("SQLite"), ours("ObjectModel"), ours("KeyedArchive"),
        "StoreFixtures", system,
      ]),
    tests(
      "Worker",
      [
        ours("Worker"), ours("Barriers"), ours("Commit"), ours("Planning"), ours("Mapping"),
        ours("Expressions"), ours("Checkpoints"), ours("PersistentStore"), ours("SQLite"),
        ours("ObjectModel"), ours("KeyedArchive"), ours("Digests"), ours("DurableFiles"),
        "StoreFixtures", system,
      ]),
    tests(
      "Fleet",
      [
        ours("Fleet"), ours("Commit"), ours("Worker"), ours("Barriers"), ours("Ledger"),
        ours("Planning"),
        ours("Checkpoints"), ours("PersistentStore"), ours("Mapping"), ours("ObjectModel"),
        ours("DurableFiles"), ours("SQLite"), "StoreFixtures", system,
      ]),
    tests("Report", [ours("Report"), ours("Ledger"), ours("ObjectModel")]),
    tests(
      "Pipeline",
      ["StoreFixtures", ours("ObjectModel"), ours("SQLite"), ours("KeyedArchive"), "CLinux"]),
    tests(
      "Commands",
      [
        ours("Commands"), ours("Fleet"), ours("Ledger"), ours("Planning"), ours("PersistentStore"),
        ours("ObjectModel"),
        argumentParser, logging, system,
      ]),
  ]
)

// libFuzzer's executable links only when it is built with the fuzzer's instrumentation, which
// scripts/fuzz switches on.
if Context.environment["GODWIT_FUZZ"] != nil {
  package.targets.append(
    .executableTarget(
      name: "godwit-fuzz", dependencies: ["FuzzTargets"], path: "Tests/FuzzTool",
      linkerSettings: [.unsafeFlags(["-use-ld=lld"])]))
}
