import Foundation
import GodwitLedger
import GodwitObjectModel
import GodwitPlanning
import SystemPackage
import Testing

@testable import GodwitFleet

@Suite struct `A pipeline file` {
  private func read(_ text: String) throws -> Pipeline {
    try Pipeline(bytes: Array(text.utf8), file: "/srv/Pipelines/nightly/pipeline.yaml")
  }

  @Test func `says everything with few keys`() throws {
    let pipeline = try read("stores: { roots: /data }\nmodels: Recipes.xcdatamodeld")
    #expect(pipeline.name == "nightly")
    #expect(pipeline.stores.roots == ["/data"])
    #expect(pipeline.stores.include == [PathPattern("**/*.sqlite")])
    #expect(pipeline.stores.exclude == [])
    #expect(pipeline.models == ["/srv/Pipelines/nightly/Recipes.xcdatamodeld"])
    #expect(pipeline.destination == nil && pipeline.mappings == [] && pipeline.workers == nil)
    #expect(pipeline.migrates && pipeline.infersMapping && pipeline.chain == nil)
    #expect(pipeline.losses == nil && pipeline.stores.inUse == .skip)
    #expect(pipeline.limits == RunLimits() && pipeline.canary == [])
    #expect(pipeline.shardBytes == 16 << 20 && pipeline.commit == .replace)
    #expect(!pipeline.backups.isLimited && pipeline.quarantineAfter == 3)
    #expect(pipeline.stateFolder == "/srv/Pipelines/nightly/state")
  }

  @Test func `without a name has that of its folder, by whatever path it is read`() throws {
    let folder = FilePath(NSTemporaryDirectory() + "godwit-" + UUID().uuidString)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    try FileManager.default.createDirectory(
      atPath: folder.string + "/nightly/sub", withIntermediateDirectories: true)
    let paths = ["nightly", "nightly/.", "nightly/sub/..", "nightly/./sub/../."]
    for path in paths {
      let file = FilePath("\(folder)/\(path)/pipeline.yaml")
      let text = "stores: { roots: /data }\nmodels: a.mom"
      #expect(try Pipeline(bytes: Array(text.utf8), file: file).name == "nightly", "\(path)")
    }
  }

  @Test func `may begin with a byte order mark`() throws {
    #expect(try read("\u{FEFF}stores: { roots: /data }\nmodels: a.mom").stores.roots == ["/data"])
    #expect(
      try read("\u{FEFF}# a note\nstores: { roots: /a }\nmodels: a.mom").models == [
        "/srv/Pipelines/nightly/a.mom"
      ])
  }

  @Test func `may say more`() throws {
    let pipeline = try read(
      """
      # yaml-language-server: $schema=../pipeline.schema.json
      name: recipes-2.0
      stores:
        roots: [/srv/recipes, local]
        include: ["*/Recipes.sqlite"]
        exclude: ["*/trash/**"]
        in-use: offline
      models: [A.mom, "/m/B.momd:B 2"]
      destination: Recipes 2
      mappings: [RecipesV1toV2.xcmappingmodel, units.mapping.yaml]
      migrate: false
      infer: false
      chain: progressive
      losses: refuse
      invalid: set-aside
      workers: 2
      shard: { bytes: 4MiB }
      commit: { beside: -2.0 }
      limits:
        store-timeout: 1h30m
        failure-budget: 2.5%
        window: "23:00-05:00"
        io: 80MiB/s
        load: 3.5
      canary: [1, 1%, 10%, 100%]
      backups: { keep: 14d, max: 200GiB }
      quarantine: { after: 5 }
      report: { html: out/report.html, metrics: /var/lib/godwit.prom, ping: "https://hc-ping.com/x" }
      """)
    #expect(pipeline.limits.storeTimeoutSeconds == 5_400)
    #expect(pipeline.limits.failureBudget == .percent(2.5))
    #expect(pipeline.limits.window?.description == "23:00-05:00")
    #expect(pipeline.limits.ioBytesPerSecond == 80 << 20 && pipeline.limits.load == 3.5)
    #expect(pipeline.report.html == "/srv/Pipelines/nightly/out/report.html")
    #expect(pipeline.report.metrics == "/var/lib/godwit.prom")
    #expect(pipeline.report.ping == "https://hc-ping.com/x")
    #expect(pipeline.canary == [.count(1), .percent(1), .percent(10), .percent(100)])
    #expect(pipeline.name == "recipes-2.0")
    #expect(pipeline.stores.roots == ["/srv/recipes", "/srv/Pipelines/nightly/local"])
    #expect(pipeline.stores.inUse == .offline)
    #expect(pipeline.models == ["/srv/Pipelines/nightly/A.mom", "/m/B.momd:B 2"])
    #expect(pipeline.destination == "Recipes 2")
    #expect(pipeline.mappings.last == "/srv/Pipelines/nightly/units.mapping.yaml")
    #expect(!pipeline.migrates && !pipeline.infersMapping && pipeline.chain == .progressive)
    #expect(pipeline.losses == .refuse && pipeline.invalid == .setAside)
    #expect(pipeline.workers == 2 && pipeline.shardBytes == 4 << 20)
    #expect(pipeline.commit == .beside(suffix: "-2.0"))
    #expect(pipeline.backups == BackupRetention(keepSeconds: 1_209_600, maxBytes: 200 << 30))
    #expect(pipeline.quarantineAfter == 5)
  }

  @Test(arguments: [
    ("worker: 2", "Did you mean workers?"),
    (#"name: "a\e[31m""#, "control characters"),
    ("stores: { root: /a }", "Did you mean roots?"),
    ("stores: { roots: a, in-use: ofline }", "Did you mean offline?"),
    ("stores: { roots: a, in-use: wait }", "none of skip, offline, snapshot"),
    ("stores: { roots: a, in-use: { wiat: 1m } }", "Did you mean wait?"),
    ("stores: { roots: a, in-use: { wait: 10 } }", "Did you mean 10m?"),
    ("limits: { store-timeuot: 1m }", "Did you mean store-timeout?"),
    ("limits: { store-timeout: 30 }", "Did you mean 30m?"),
    ("limits: { store-timeout: 0m }", "is not a length of time"),
    ("limits: { failure-budget: 200% }", "from 0% to 100%"),
    ("limits: { window: 1-5 }", "such as \"01:00-05:00\""),
    ("limits: { io: 80MiB }", "Did you mean 80MiB/s?"), ("limits: { io: fast/s }", "80MiB/s"),
    ("limits: { load: high }", "not a load average"),
    ("canary: [1, 100%]", "needs the key failure-budget"),
    ("chain: progresive", "Did you mean progressive?"),
    ("commit: replaced", "Did you mean replace?"),
    ("commit: { besides: x }", "Did you mean beside?"),
    ("commit: { beside: .new }", "begins with no dot"),
    ("commit: { beside: a/b }", "part of a file name"),
    ("invalid: setaside", "Did you mean set-aside?"),
    ("migrate: yes", "none of true, false"),
    ("workers: 0", "from 1 to 256"), ("workers: two", "from 1 to 256"),
    ("shard: { bytes: 16 parsecs }", "such as 16MiB"), ("shard: {}", "needs the key bytes"),
    ("backups: {}", "needs the key keep, or max"), ("backups: 14d", "keys with values"),
    ("backups: { keep: 14 }", "Did you mean 14d?"),
    ("limits: { store-timeout: 30 }", "Did you mean 30m?"),
    ("backups: { keep: 14 days }", "such as 14d"), ("backups: { max: lots }", "such as 200GiB"),
    ("backups: { kep: 14d }", "Did you mean keep?"),
    ("quarantine: { after: -1 }", "from 1 to 1000"), ("quarantine: {}", "needs the key after"),
    ("models: []", "at least one"), ("mappings: ''", "a text is missing"),
    ("stores: { roots: a, include: /etc/passwd }", "not a path below a root"),
    ("stores: { roots: a, include: ../b }", "not a path below a root"),
  ])
  func `is refused with its line and what was meant`(text: String, said: String) throws {
    let lines = ["stores: { roots: /a }", "models: m"].filter {
      $0.prefix(6) != text.prefix(6)
    }
    let error = #expect(throws: PipelineError.self) {
      try read((lines + [text]).joined(separator: "\n"))
    }
    let message = "\(error.map(String.init(describing:)) ?? "")"
    #expect(message.contains(said) && message.contains("line \(lines.count + 1)"), "\(message)")
  }

  @Test(arguments: [
    ("skip", InUsePolicy.skip), ("offline", .offline), ("snapshot", .snapshot),
    ("{ wait: 10m }", .wait(seconds: 600)),
  ])
  func `says what becomes of stores in use`(text: String, policy: InUsePolicy) throws {
    let pipeline = try read("stores: { roots: /a, in-use: \(text) }\nmodels: m")
    #expect(pipeline.stores.inUse == policy)
  }

  @Test(arguments: [
    ("[1, 10%]", "the last wave of canary is 100%"), ("[]", "a list of waves"), ("5%", "a list"),
    ("[1, 0%, 100%]", "0% is not a wave"),
  ])
  func `has waves up to all stores`(waves: String, said: String) throws {
    let error = #expect(throws: PipelineError.self) {
      try read(
        "stores: { roots: /a }\nmodels: m\nlimits: { failure-budget: 1 }\ncanary: \(waves)")
    }
    #expect("\(error.map(String.init(describing:)) ?? "")".contains(said))
  }

  @Test func `has the keys of its published schema`() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .deletingLastPathComponent().deletingLastPathComponent()
    let data = try Data(
      contentsOf: root.appendingPathComponent("Pipelines/pipeline.schema.json"))
    let schema = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    #expect(schema["$schema"] as? String == "https://json-schema.org/draft/2020-12/schema")
    let properties = try #require(schema["properties"] as? [String: Any])
    #expect(Set(properties.keys) == Set(PipelineFile.Key.allCases.map(\.rawValue)))
    func keys(_ name: String) -> Set<String> {
      let property = properties[name] as? [String: Any]
      let object =
        (property?["oneOf"] as? [[String: Any]])?.first { $0["properties"] != nil } ?? property
      return Set((object?["properties"] as? [String: Any] ?? [:]).keys)
    }
    #expect(keys("stores") == Set(PipelineFile.StoresKey.allCases.map(\.rawValue)))
    #expect(keys("shard") == Set(PipelineFile.ShardKey.allCases.map(\.rawValue)))
    #expect(keys("commit") == Set(PipelineFile.CommitKey.allCases.map(\.rawValue)))
    #expect(keys("limits") == Set(PipelineFile.LimitsKey.allCases.map(\.rawValue)))
    #expect(keys("backups") == Set(BackupRetention.Key.allCases.map(\.rawValue)))
    #expect(keys("quarantine") == Set(Pipeline.QuarantineKey.allCases.map(\.rawValue)))
    #expect(keys("report") == Set(ReportSettings.Key.allCases.map(\.rawValue)))
    let chain = properties["chain"] as? [String: Any]
    #expect(Set(chain?["enum"] as? [String] ?? []) == Set(Chain.allCases.map(\.rawValue)))
    let invalid = properties["invalid"] as? [String: Any]
    #expect(Set(invalid?["enum"] as? [String] ?? []) == Set(InvalidPolicy.allCases.map(\.rawValue)))
    let losses = properties["losses"] as? [String: Any]
    #expect(Set(losses?["enum"] as? [String] ?? []) == Set(LossPolicy.allCases.map(\.rawValue)))
  }

  @Test(arguments: [
    ("a/Recipes.sqlite", "a/Recipes-2.0.sqlite"), ("a/store", "a/store-2.0"),
    ("a/b.c.sqlite", "a/b.c-2.0.sqlite"),
  ])
  func `writes beside a store under a name of its own`(store: String, output: String) throws {
    let pipeline = try read("stores: { roots: a }\nmodels: m\ncommit: { beside: -2.0 }")
    #expect(pipeline.output(of: FilePath(store)) == FilePath(output))
    #expect(Pipeline.isOutput(FilePath(output), of: FilePath(store)))
  }

  @Test(arguments: [
    "a/Recipes.sqlite", "b/Recipes-2.sqlite", "a/b/Recipes-2.sqlite", "a/Recipes-2.store",
    "a/Recipes-2", "a/Other.sqlite", "a/Recipes.2.sqlite", "a/recipes-2.sqlite",
    "/a/Recipes-2.sqlite",
  ])
  func `writes nowhere else beside a store, whatever the suffix`(path: String) {
    #expect(!Pipeline.isOutput(FilePath(path), of: "a/Recipes.sqlite"))
    #expect(!Pipeline.isOutput("a/store-wal", of: "a/store"))
  }
}
