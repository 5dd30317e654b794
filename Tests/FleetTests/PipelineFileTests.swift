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
  }
}

@Suite struct `A path pattern` {
  @Test(arguments: [
    ("*/Recipes.sqlite", "ada/Recipes.sqlite", true),
    ("*/Recipes.sqlite", "Recipes.sqlite", false),
    ("*/Recipes.sqlite", "ada/b/Recipes.sqlite", false),
    ("**/*.sqlite", "a.sqlite", true),  // ** is any number of folders, none as well
    ("**/*.sqlite", "a/b/c/d.sqlite", true),
    ("**/*.sqlite", "a/b/c/d.sqlite-wal", false),
    ("a/**/b/*.db", "a/b/x.db", true), ("a/**/b/*.db", "a/b/c/b/x.db", true),
    ("a/**/b/*.db", "a/b/c/x.db", false),
    ("*/trash/**", "ada/trash/x", true), ("*/trash/**", "ada/trash", false),
    ("store-????.sqlite", "store-0001.sqlite", true),
    ("store-????.sqlite", "store-1.sqlite", false),
    ("*", ".hidden", false), (".*", ".hidden", true), ("**/a", ".git/a", false),
    ("a*b*c", "aXbYbZc", true), ("a*b*c", "aXbYbZ", false), ("*", "", false),
    ("[ab].sqlite", "[ab].sqlite", true), ("[ab].sqlite", "a.sqlite", false),
    ("Cre\u{301}me", "Cr\u{E9}me", true),  // a Mac writes accents apart
  ])
  func `means these paths and no others`(pattern: String, path: String, matches: Bool) throws {
    #expect(try #require(PathPattern(pattern)).matches(path) == matches)
  }

  @Test(arguments: ["", "/a", "a//b", "a/", "../a", "./a", "a/../b", "a\0b"])
  func `is never one that leads out`(text: String) {
    #expect(PathPattern(text) == nil)
  }

  @Test func `takes no longer for many stars`() throws {
    let pattern = try #require(PathPattern(String(repeating: "*a", count: 100) + "b"))
    #expect(!pattern.matches(String(repeating: "a", count: 250)))
  }
}

@Suite struct `A search for stores` {
  private func pipeline(
    _ scratch: borrowing Scratch, include: String = "**/*.sqlite", exclude: String = "nothing",
    commit: String = "replace"
  ) throws -> Pipeline {
    let text = """
      stores: { roots: ["\(scratch.path)"], include: "\(include)", exclude: "\(exclude)" }
      models: m
      commit: \(commit)
      """
    return try Pipeline(bytes: Array(text.utf8), file: scratch.path.appending("pipeline.yaml"))
  }

  private func found(_ findings: StoreSearch.Findings, _ root: FilePath) -> [String] {
    findings.stores.map { store in
      var path = store.path
      return path.removePrefix(root) ? path.string : store.path.string
    }
  }

  private func fill(_ scratch: borrowing Scratch, _ names: [String]) throws {
    for name in names {
      let path = scratch.path.pushing(FilePath(name))
      try FileManager.default.createDirectory(
        atPath: path.removingLastComponent().string, withIntermediateDirectories: true)
      #expect(FileManager.default.createFile(atPath: path.string, contents: Data(name.utf8)))
    }
  }

  @Test func `is in order, and leaves out what Godwit and SQLite keep beside them`() throws {
    let scratch = try Scratch()
    try fill(
      scratch,
      [
        "b/s.sqlite", "b/s.sqlite-wal", "b/s.sqlite-shm", "a/s.sqlite", "a/s.sqlite-journal",
        "a/s.sqlite.godwit-backup-2026/x.sqlite", "a/s.sqlite.godwit/run.sqlite",
        "a/s.sqlite.godwit-backup-2026.sqlite", "a/s.sqlite.godwit-rolled-back-2026.sqlite",
        "a/.s.sqlite.godwit-backup-2026_SUPPORT/_EXTERNAL_DATA/E",
        ".hidden/s.sqlite", "a/trash/s.sqlite", "state/stores/1/snapshot/s.sqlite", "a/text.txt",
      ])
    let pipeline = try pipeline(scratch, include: "**", exclude: "*/trash/**")
    let search = StoreSearch(pipeline, state: scratch.path.appending("state"))
    #expect(found(try search.run(), scratch.path) == ["a/s.sqlite", "a/text.txt", "b/s.sqlite"])
  }

  @Test func `goes into folders whatever their names end with`() throws {
    let scratch = try Scratch()
    let names = ["a-wal/s.sqlite", "b-journal/s.sqlite", "c-shm/s.sqlite", "d.sqlite/s.sqlite"]
    try fill(scratch, names)
    #expect(found(try StoreSearch(try pipeline(scratch), state: nil).run(), scratch.path) == names)
  }

  @Test func `never finds a backup or a file of a commit, even by its very name`() throws {
    let scratch = try Scratch()
    let names = [
      "s.sqlite.godwit-backup-2026.sqlite", ".s.sqlite.godwit-2026", ".s.sqlite.godwit-2026-clone",
      ".s.sqlite.partial-0",
    ]
    try fill(scratch, names)
    for name in names {
      let pipeline = try pipeline(scratch, include: name)
      #expect(try StoreSearch(pipeline, state: nil).run().stores.isEmpty, "\(name)")
    }
  }

  @Test func `counts a store once, however many roots lead to it`() throws {
    let scratch = try Scratch()
    try fill(scratch, ["a/s.sqlite"])
    var pipeline = try pipeline(scratch)
    pipeline.stores.roots += [scratch.path.appending("a"), scratch.path]
    #expect(try StoreSearch(pipeline, state: nil).run().stores.count == 1)
  }

  @Test func `leaves out what it wrote beside a store`() throws {
    let scratch = try Scratch()
    try fill(scratch, ["a.sqlite", "a-2.sqlite", "b-2.sqlite"])
    let pipeline = try pipeline(scratch, commit: "{ beside: -2 }")
    #expect(
      found(try StoreSearch(pipeline, state: nil).run(), scratch.path)
        == ["a.sqlite", "b-2.sqlite"])
  }

  @Test func `adds the write-ahead log to a store's bytes`() throws {
    let scratch = try Scratch()
    try fill(scratch, ["a.sqlite", "a.sqlite-wal"])
    let stores = try StoreSearch(try pipeline(scratch), state: nil).run().stores
    #expect(stores.map(\.bytes) == [Int64("a.sqlite".utf8.count + "a.sqlite-wal".utf8.count)])
  }

  @Test func `wants its roots to be there`() throws {
    let scratch = try Scratch()
    var pipeline = try pipeline(scratch)
    pipeline.stores.roots.append(scratch.path.appending("nowhere"))
    #expect(throws: PipelineError.self) { try StoreSearch(pipeline, state: nil).run() }
  }

  @Test func `tells of folders that cannot be read`() throws {
    let scratch = try Scratch()
    try fill(scratch, ["a/s.sqlite"])
    // Deeper than any path may be long, since root reads what modes forbid.
    let name = String(repeating: "d", count: 200)
    var folder = open(scratch.path.string, O_RDONLY | O_DIRECTORY)
    for _ in 0..<25 {
      try #require(mkdirat(folder, name, 0o700) == 0)
      let next = openat(folder, name, O_RDONLY | O_DIRECTORY)
      close(folder)
      folder = next
    }
    close(folder)
    defer { removeDeep(scratch.path.appending(name)) }
    let findings = try StoreSearch(try pipeline(scratch), state: nil).run()
    #expect(findings.stores.count == 1)
    #expect(findings.unreadable.count == 1)
    #expect(findings.unreadable.first?.reason.isEmpty == false)
  }

  @Test(arguments: ["m\u{FC}ll", "m\u{FC}ll.sqlite"])
  func `tells of names that are not UTF-8`(latin: String) throws {
    let scratch = try Scratch()
    try fill(scratch, ["a/s.sqlite", "a/other.txt"])
    let parent = scratch.path.appending("a").string
    // ISO 8859-1, as old folders of users have it.
    let name = latin.unicodeScalars.map { CChar(truncatingIfNeeded: $0.value) } + [0]
    let folder = open(parent, O_RDONLY | O_DIRECTORY)
    defer { close(folder) }
    if latin.hasSuffix(".sqlite") {
      close(openat(folder, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600))
    } else {
      try #require(mkdirat(folder, name, 0o700) == 0)
    }
    let findings = try StoreSearch(try pipeline(scratch), state: nil).run()
    #expect(findings.stores.map(\.path.lastComponent?.string) == ["s.sqlite"])
    #expect(findings.unreadable.map(\.reason) == ["its name is not UTF-8"])
    let text = "$'\(scratch.path.string)/a/" + latin.replacing("\u{FC}", with: #"\xfc"#) + "'"
    #expect(findings.unreadable.map(\.path.unambiguousText) == [text])
    #expect(findings.unreadable.first?.message.hasPrefix(text) == true)
  }

  @Test func `keep paths that are not UTF-8 apart from each other and from all that are`() {
    func text(_ bytes: [UInt8]) -> String {
      (bytes.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer {
        FilePath(platformString: $0.baseAddress!).unambiguousText
      }
    }
    let names: [[UInt8]] = [
      [0xFF], [0xFE], [0xFF, 0x0A], Array("\\xff".utf8), Array("\\".utf8) + [0xFF],
      Array("'".utf8) + [0xFF], [0xE2, 0x82], [0xC3, 0xBC],
    ]
    let texts = names.map { text(Array("/r/".utf8) + $0) }
    #expect(
      texts == [
        #"$'/r/\xff'"#, #"$'/r/\xfe'"#, "$'/r/\\xff\n'", #"/r/\xff"#, #"$'/r/\\\xff'"#,
        #"$'/r/\'\xff'"#, #"$'/r/\xe2\x82'"#, "/r/\u{FC}",
      ])
    #expect(Set(texts).count == names.count)
  }

  @Test func `names files that a pattern says and that have names like those of SQLite's files`()
    throws
  {
    let scratch = try Scratch()
    try fill(
      scratch, ["a/my-journal", "a/s.sqlite-wal", "a/s.sqlite", "b/x.godwit-backup-1.sqlite"])
    func leftOut(_ include: String, _ exclude: String = "nothing") throws -> [String] {
      try StoreSearch(try pipeline(scratch, include: include, exclude: exclude), state: nil).run()
        .leftOut.compactMap { $0.lastComponent?.string }
    }
    #expect(try leftOut("*/my-journal") == ["my-journal"])
    #expect(try leftOut("b/x.godwit-backup-1.sqlite") == ["x.godwit-backup-1.sqlite"])
    #expect(try leftOut("**").isEmpty, "no pattern says their names")
    #expect(try leftOut("**/*-journal").isEmpty)
    #expect(try leftOut("a/my-journal", "a/*").isEmpty, "excluded")
  }

  private func removeDeep(_ path: FilePath) {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/bin/rm")
    process.arguments = ["-rf", path.string]
    try? process.run()
    process.waitUntilExit()
  }
}

@Suite struct `A pipeline's ledger` {
  private func entry(
    _ store: FilePath, run: String, _ verdict: MigrationResult.Verdict = .migrated,
    final: String? = nil, backup: String? = nil
  ) -> PipelineLedger.Entry {
    PipelineLedger.Entry(
      run: run, store: store.string, verdict: verdict, time: 1, settings: "s", identity: "i",
      finalIdentity: final, backup: backup)
  }

  private func open(
    _ scratch: borrowing Scratch, now: Double, of pipeline: String = "/p/pipeline.yaml"
  ) throws -> PipelineLedger {
    try PipelineLedger(
      folder: scratch.path, now: now, owner: RunOwner(pipeline: pipeline, file: pipeline),
      history: try RunHistory(
        at: scratch.path.appending("ledger.sqlite"),
        of: RunOwner(pipeline: pipeline, file: pipeline),
        now: now, quarantineLimit: 3))
  }

  @Test func `goes on with a run that has not finished, under its name`() async throws {
    let scratch = try Scratch()
    let first = try open(scratch, now: 1_800_000_000)
    #expect(!first.isResumed)
    try await first.record(entry("/a", run: first.run, backup: "/a.backup"))
    let second = try open(scratch, now: 1_900_000_000)
    #expect(second.isResumed && second.run == first.run)
    #expect(second.entry(of: "/a") == entry("/a", run: first.run, backup: "/a.backup"))
    try second.end(isFinished: true, isInHistory: true)
    let third = try open(scratch, now: 1_900_000_000)
    #expect(!third.isResumed && third.run != first.run)
  }

  @Test func `goes on with no run of another pipeline that shares the folder`() throws {
    let scratch = try Scratch()
    let (one, two) = (scratch.path.appending("one.yaml"), scratch.path.appending("two.yaml"))
    for file in [one, two] { try Data().write(to: URL(fileURLWithPath: file.string)) }
    let first = try open(scratch, now: 1_800_000_000, of: one.string)
    let second = try open(scratch, now: 1_900_000_000, of: two.string)
    #expect(!second.isResumed && second.run != first.run)
    #expect(try open(scratch, now: 1_950_000_000, of: two.string).run == second.run)
  }

  @Test func `takes a name that neither a run nor a rollback has`() throws {
    let scratch = try Scratch()
    let now = 1_800_000_000.0
    func rollback(_ name: String) throws {
      let ledger = try Ledger(writingAt: scratch.path.appending("ledger.sqlite"), now: now)
      try ledger.writing {
        try ledger.begin(
          LedgerRun(
            name: name, kind: .rollback, pipeline: "/p/pipeline.yaml", file: "/p/pipeline.yaml",
            started: now, host: ""))
      }
    }
    try rollback(RunFolder.timestamp(now))
    let first = try open(scratch, now: now)
    #expect(first.run != RunFolder.timestamp(now))
    try first.end(isFinished: true, isInHistory: true)
    let second = try open(scratch, now: now)
    #expect(![first.run, RunFolder.timestamp(now)].contains(second.run))
    // A run that an earlier version gave the name of a rollback.
    try rollback(second.run)
    let third = try open(scratch, now: now + 60)
    #expect(!third.isResumed && third.run != second.run)
  }

  @Test func `keeps for the next run what that need not look at again`() async throws {
    let scratch = try Scratch()
    let first = try open(scratch, now: 1)
    let names = ["beside", "replaced", "same", "gone", "unknown", "failed"]
    let stores = Dictionary(
      uniqueKeysWithValues: names.map {
        ($0, $0 == "gone" ? scratch.path.appending($0) : scratch.file($0))
      })
    let (run, path) = (first.run, { (name: String) in stores[name] ?? "" })
    for entry in [
      entry(path("beside"), run: run),
      entry(path("replaced"), run: run, final: "f", backup: "/b"),
      entry(path("same"), run: run, .sameModel, final: "f"),
      entry(path("gone"), run: run, .sameModel, final: "f"),
      // A line of an earlier build.
      entry(path("unknown"), run: run, backup: "/b"),
      entry(path("failed"), run: run, .failed),
    ] {
      try await first.record(entry)
    }
    try first.end(isFinished: true, isInHistory: true)
    let second = try open(scratch, now: 2)
    let kept = names.filter { second.entry(of: path($0)) != nil }
    #expect(kept == ["beside", "replaced", "same"])
  }

  @Test func `has every result on the disk that came at the same time`() async throws {
    let scratch = try Scratch()
    let ledger = try open(scratch, now: 1)
    let entries = (0..<50).map { entry(FilePath("/\($0)"), run: ledger.run) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for entry in entries { group.addTask { try await ledger.record(entry) } }
      try await group.waitForAll()
    }
    let again = try open(scratch, now: 2)
    #expect(entries.allSatisfy { again.entry(of: FilePath($0.store)) == $0 })
  }

  @Test func `reads past a line that a crash cut, and begins a new one`() async throws {
    let scratch = try Scratch()
    let first = try open(scratch, now: 1)
    try await first.record(entry("/a", run: first.run))
    let path = scratch.path.appending("ledger.jsonl").string
    var data = try #require(FileManager.default.contents(atPath: path))
    data.append(Data(#"{"run":"x","store":"/b","verd"#.utf8))
    try data.write(to: URL(fileURLWithPath: path))
    let second = try open(scratch, now: 2)
    #expect(second.entry(of: "/a") != nil && second.entry(of: "/b") == nil)
    try await second.record(entry("/c", run: second.run))
    let third = try open(scratch, now: 3)
    #expect(third.entry(of: "/a") != nil && third.entry(of: "/c") != nil)
  }
}
