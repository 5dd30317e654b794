import Foundation
import GodwitPlanning
import SystemPackage
import Testing

@testable import GodwitFleet

@Suite struct `A plan of a fleet` {
  private func result(
    _ store: String, _ verdict: MigrationResult.Verdict, source: String? = nil,
    reason: String? = nil,
    losses: [Loss] = [], notes: [String] = []
  ) -> MigrationResult {
    var result = MigrationResult(
      store: store, verdict: verdict, ending: .done,
      reasons: reason.map { [.init(reason: $0, message: "why")] } ?? [], notes: notes)
    (result.source, result.losses) = (source, losses)
    if source != nil { result.destination = "3" }
    return result
  }

  @Test func `counts cohorts, reasons and losses`() {
    var maker = FleetPlanMaker()
    func add(_ result: MigrationResult, bytes: Int64 = 10) {
      maker.add(FoundStore(path: FilePath(result.store), root: "/", bytes: bytes), result)
    }
    let loss = Loss(.attribute, entity: "Recipe", property: "note", count: 5, message: "lost")
    for number in 1...4 {
      add(
        result(
          "/a\(number)", .migrated, source: "1", losses: [loss],
          notes: number < 3 ? ["both", "all"] : ["all"]))
    }
    add(result("/b", .migrated, source: "2"), bytes: 7)
    add(result("/c", .sameModel))
    for number in 1...5 { add(result("/d\(number)", .failed, reason: "damaged")) }
    add(result("/e", .refused, reason: "validation", losses: [loss]))
    let plan = maker.plan("nightly")
    #expect(
      plan.cohorts.map(\.source) == ["1", "2", nil]
        || plan.cohorts.map(\.source) == ["1", nil, "2"])
    #expect(plan.cohorts[0].stores == 4 && plan.cohorts[0].bytes == 40)
    #expect(plan.cohorts[0].notes == ["all": 4, "both": 2])
    #expect(plan.reasons.map(\.reason) == ["damaged", "validation"])
    #expect(plan.reasons[0].count == 5 && plan.reasons[0].examples == ["/d1", "/d2", "/d3"])
    #expect(plan.reasons[0].advice?.contains("godwit inspect") == true)
    #expect(plan.losses.map(\.count) == [20] && plan.losses[0].stores == 4)
    #expect(maker.migrated.count == 5)
    #expect(maker.counted.count == 4 && maker.counted["/a1"]?.map(\.count) == [5])
  }

  /// A key of one entity and property may come twice: from two steps of a chain.
  @Test(
    arguments: [
      ([5], [], [5]), ([5], [5], []), ([5], [3], [2]), ([5], [7], []), ([5, 4], [6], [3]),
      ([], [5], []),
    ] as [([Int64], [Int64], [Int64])])
  func `leaves to a sample what the plan of its store does not count`(
    lost: [Int64], known: [Int64], rest: [Int64]
  ) {
    func losses(_ counts: [Int64]) -> [Loss] {
      counts.map { Loss(.attribute, entity: "A", property: "a", count: $0, message: "lost") }
    }
    let others = [
      Loss(.attribute, entity: "A", property: "b", count: 9, message: ""),
      Loss(.relationship, entity: "A", property: "a", count: 9, message: ""),
    ]
    #expect(losses(lost).beyond(losses(known) + others).map(\.count) == rest)
  }

  @Test func `counts a store that was migrated before, and forecasts nothing for it`() {
    var maker = FleetPlanMaker()
    for isEarlier in [true, false] {
      let result = self.result("/\(isEarlier)", .migrated, source: "1")
      let store = FoundStore(path: FilePath(result.store), root: "/", bytes: 10)
      maker.add(store, result, isEarlier: isEarlier)
    }
    #expect(maker.plan("nightly").cohorts.map(\.stores) == [2])
    #expect(maker.migrated.map(\.path) == ["/false"])
  }

  @Test func `counts a store once that loses the same in two steps`() {
    let losses = [3, 4].map {
      Loss(.attribute, entity: "Recipe", property: "note", count: $0, message: "lost")
    }
    var totals = LossTotals()
    for store in ["/a", "/b"] { totals.add(result(store, .migrated, losses: losses)) }
    #expect(totals.all.map(\.count) == [14] && totals.all.map(\.stores) == [2])
  }

  @Test func `tells versions of one name apart by their models`() throws {
    var maker = FleetPlanMaker()
    for (name, checksum) in [("a", "x"), ("b", "y"), ("c", "y")] {
      var result = self.result("/\(name)", .migrated, source: "Model")
      result.plan = MigrationResult.Plan(
        fingerprint: "", sourceVersion: "Model", sourceChecksum: checksum,
        destinationVersion: "3", destinationChecksum: checksum + "3", shards: 1, bytes: 1)
      maker.add(FoundStore(path: FilePath(result.store), root: "/", bytes: 1), result)
    }
    let cohorts = maker.plan("nightly").cohorts
    #expect(cohorts.map(\.stores) == [2, 1])
    #expect(cohorts.map(\.sourceChecksum) == ["y", "x"])
    #expect(cohorts.allSatisfy { $0.source == "Model" && $0.destination == "3" })
  }

  private typealias Sample = FleetForecast.Sample

  @Test func `forecasts by a line through its sample`() throws {
    // 10 ms a store and 1 ms a byte; four at a time.
    let samples = [10, 20, 40].map {
      Sample(bytes: $0, workers: 0, seconds: 0.01 + Double($0) * 0.001, destinationBytes: $0 * 2)
    }
    let stores = Array(repeating: (bytes: Int64(30), workers: 0), count: 1_000)
    let forecast = try #require(
      FleetForecast(of: stores, samples: samples, workerCount: 2, isInPlace: true))
    #expect(abs(forecast.seconds - 10) < 0.01)
    #expect(forecast.leastSeconds < forecast.seconds && forecast.seconds < forecast.mostSeconds)
    #expect(forecast.bytes == 60_000 && forecast.keptBytes == 60_000)
    #expect(forecast.peakBytes > forecast.keptBytes)
    #expect(FleetForecast(of: stores, samples: [], workerCount: 2, isInPlace: true) == nil)
  }

  @Test func `adds up stores that say that they have 5 EiB each`() throws {
    let stores = (1...3).map {
      FoundStore(path: FilePath("/\($0)"), root: "/", bytes: 5 << 60)
    }
    var maker = FleetPlanMaker()
    for store in stores { maker.add(store, result(store.path.string, .migrated, source: "1")) }
    #expect(maker.plan("nightly").cohorts.map(\.bytes) == [.max])
    let samples = [Sample(bytes: 1, workers: 0, seconds: 1, destinationBytes: .max)]
    let forecast = try #require(
      FleetForecast(
        of: stores.map { ($0.bytes, 0) }, samples: samples, workerCount: 2, isInPlace: true))
    #expect(forecast.bytes == .max && forecast.keptBytes == .max && forecast.peakBytes == .max)
    var settings = ClusterSettings()
    (settings.bundleStores, settings.bundleBytes) = (10, .max)
    #expect(BundleCutter(settings, slots: 1).bundles(stores).flatMap(\.self).count == 3)
  }

  @Test func `samples stores of all sizes, each once`() {
    let stores = (1...100).map {
      FoundStore(path: FilePath("/\($0)"), root: "/", bytes: Int64($0))
    }
    #expect(FleetForecast.sample(of: stores, count: 4).map(\.bytes) == [1, 34, 67, 100])
    #expect(FleetForecast.sample(of: Array(stores.prefix(2)), count: 6).map(\.bytes) == [1, 2])
    #expect(
      FleetForecast.sample(of: stores, count: 3, mostBytes: 60).map(\.bytes) == [1, 30],
      "neither one that is too large nor more than all may have")
    #expect(FleetForecast.sample(of: [], count: 3).isEmpty)
  }

  private func planned(_ scratch: borrowing Scratch, _ names: [String]) -> PlannedStores {
    PlannedStores(
      pipeline: "p", settings: "s",
      stores: names.map {
        .init(store: scratch.path.appending($0).string, identity: nil, verdict: .failed)
      })
  }

  @Test func `names every store that is not as it was planned for`() throws {
    let scratch = try Scratch()
    let plan = planned(scratch, ["a", "b"])
    let file = scratch.path.appending("plan.json")
    try plan.text.write(toFile: file.string, atomically: true, encoding: .utf8)
    #expect(try PlannedStores(file: file) == plan)
    func found(_ names: [String]) -> [FoundStore] {
      names.map { FoundStore(path: scratch.path.appending($0), root: scratch.path, bytes: 1) }
    }
    let root = scratch.path
    func check(
      _ names: [String], settings: String = "s", meaning selection: StoreSelection = .all
    ) throws {
      try plan.check(
        found(names), settings: settings,
        isMeant: { selection.means($0, roots: [root]) }, isOurs: { _, _ in false })
    }
    try check(["a", "b"])
    let (a, b) = (root.appending("a").string, root.appending("b").string)
    // A part of them is not all.
    try check(["a"], meaning: StoreSelection(patterns: ["a"], paths: nil))
    for selection in [
      .all, try StoreSelection(patterns: ["b", "a"], paths: nil),
      try StoreSelection(patterns: [], paths: [a, b]),
      try StoreSelection(patterns: ["?"], paths: [a, b]),
    ] {
      #expect(throws: PlanDrift.stores(changed: [], vanished: [b], new: [])) {
        try check(["a"], meaning: selection)
      }
    }
    #expect(
      throws: PlanDrift.stores(
        changed: [], vanished: [b], new: [scratch.path.appending("c").string])
    ) {
      try check(["a", "c"])
    }
    #expect(throws: PlanDrift.otherSettings(pipeline: "p")) { try check([], settings: "t") }
  }

  @Test(arguments: [
    "", "{}", "{\"formatVersion\":2,\"pipeline\":\"\",\"settings\":\"\",\"stores\":[]}",
  ])
  func `is not read from anything else`(text: String) throws {
    let scratch = try Scratch()
    let file = scratch.file("plan.json", text)
    #expect(throws: PlanDrift.self) { try PlannedStores(file: file) }
  }
}

@Suite struct `What a user may do to stores` {
  // To root everything is open.
  @Test(.enabled(if: geteuid() != 0)) func `is found out before a run`() throws {
    let place = FileManager.default.temporaryDirectory.resolvingSymlinksInPath()
      .appendingPathComponent("godwit-rights-\(UUID().uuidString)")
    let root = FilePath(place.path)
    defer {
      for name in ["b", "c"] { chmod(place.path + "/" + name, 0o755) }
      try? FileManager.default.removeItem(at: place)
    }
    var stores: [FoundStore] = []
    for (name, store, folder) in [("a", 0o644, 0o755), ("b", 0o000, 0o755), ("c", 0o444, 0o555)] {
      let path = root.appending(name)
      try FileManager.default.createDirectory(
        atPath: path.string, withIntermediateDirectories: true)
      let file = path.appending("s.sqlite")
      try Data([1]).write(to: URL(fileURLWithPath: file.string))
      #expect(chmod(file.string, mode_t(store)) == 0 && chmod(path.string, mode_t(folder)) == 0)
      stores.append(FoundStore(path: file, root: root, bytes: 1))
    }
    func values(_ isReplaced: Bool) -> [String] {
      StoreRights(stores, isReplaced: isReplaced).findings(in: root).map(\.value)
    }
    let b = root.appending("b/s.sqlite").string
    #expect(values(true) == [b, root.appending("c").string], "what is its own is replaced by name")
    #expect(values(false) == [b, root.appending("c").string], "a source is only read")
    #expect(StoreRights([stores[0]], isReplaced: true).findings(in: root).isEmpty)
  }
}
