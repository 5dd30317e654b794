import SystemPackage
import Testing

@testable import GodwitFleet

@Suite struct `The limits of a run` {
  @Test(arguments: [
    ("90s", 90.0), ("30m", 1_800), ("1h30m", 5_400), ("14d", 1_209_600), ("1d2h3m4s", 93_784),
    ("30", nil), ("m", nil), ("", nil), ("0m", 0), ("1.5h", nil), ("-3m", nil), ("5 m", nil),
    ("1w", 604_800), ("1y", nil), ("٣m", nil),  // digits of other scripts
  ])
  func `count time in whole units`(text: String, seconds: Double?) {
    #expect(TimeSpan(text)?.seconds == seconds)
  }

  @Test(arguments: [
    ("5%", FailureBudget.percent(5)), ("0.5%", .percent(0.5)), ("100%", .percent(100)),
    ("0", .count(0)), ("12", .count(12)),
    ("101%", nil), ("%", nil), ("-1", nil), ("5 %", nil), ("many", nil), ("1e3", nil),
    ("nan%", nil),
  ])
  func `know a failure budget as a count or a share`(text: String, budget: FailureBudget?) {
    #expect(FailureBudget(text) == budget)
  }

  @Test(arguments: [
    (FailureBudget.percent(5), 2_000, 100), (.percent(5), 19, 0), (.percent(5), 20, 1),
    (.percent(0), 1_000, 0), (.count(3), 1, 3),
    (FailureBudget("18.4%") ?? .count(0), 375, 69),  // 68.99… in binary
  ])
  func `allow so many failures`(budget: FailureBudget, stores: Int, allowed: Int) {
    #expect(budget.allowedFailures(among: stores) == allowed)
  }

  @Test(arguments: [
    ("01:00-05:00", 60, true), ("01:00-05:00", 59, false), ("01:00-05:00", 299, true),
    ("01:00-05:00", 300, false),  // the end is outside
    ("22:30-02:00", 1_350, true), ("22:30-02:00", 0, true), ("22:30-02:00", 119, true),
    ("22:30-02:00", 120, false), ("22:30-02:00", 1_349, false),
    ("0:00-24:00", 1_439, true), ("0:00-24:00", 0, true),
    ("24:00-05:00", 0, true), ("24:00-05:00", 300, false), ("24:00-05:00", 1_439, false),
  ])
  func `know a window, over midnight too`(text: String, minutes: Int, isInside: Bool) throws {
    #expect(try #require(DailyWindow(text)).contains(minutes: minutes) == isInside)
  }

  @Test(arguments: [
    "", "1-5", "01:00", "01:00-01:00", "25:00-01:00", "01:60-02:00", "01:00-02:00-03:00",
    "01:0-02:00", "a:00-02:00", "24:01-02:00",
    "24:00-00:00", "24:00-24:00", "00:00-00:00",  // never open
  ])
  func `take nothing else for a window`(text: String) { #expect(DailyWindow(text) == nil) }
}

@Suite struct `Canary waves` {
  @Test(arguments: [("0.8%", 375, 3), ("18.4%", 375, 69), ("0.81%", 375, 4), ("100%", 7, 7)])
  func `take a share of the stores, rounded up`(text: String, all: Int, stores: Int) {
    #expect(WaveSize(text)?.stores(of: all) == stores)
  }

  static func stores(_ count: Int) -> [FoundStore] {
    (0..<count).map { FoundStore(path: FilePath("/r/\($0).sqlite"), root: "/r", bytes: 1) }
  }

  private static let sizes = ["1", "1%", "10%", "100%"].compactMap(WaveSize.init)

  @Test(arguments: [
    (2_000, [1, 19, 180, 1_800]), (100, [1, 9, 90]), (1, [1]), (5, [1, 4]),
  ])
  func `add up to all stores, each of them once`(count: Int, sizes: [Int]) {
    let waves = CanaryWaves(Self.stores(count), sizes: Self.sizes).waves
    #expect(waves.map(\.count) == sizes)
    #expect(Set(waves.joined()).count == count)
  }

  @Test func `are the same whatever the order in which stores are found`() {
    let stores = Self.stores(500)
    let waves = CanaryWaves(stores, sizes: Self.sizes)
    #expect(CanaryWaves(stores.reversed(), sizes: Self.sizes) == waves)
    #expect(waves.waves[1] != Array(stores[1...5]), "no folder comes first")
  }

  @Test func `try each cohort early, however few its stores are`() {
    let stores = Self.stores(500)
    let rare: Set<FilePath> = Set(stores.prefix(2).map(\.path))
    let waves = CanaryWaves(stores, sizes: Self.sizes) { rare.contains($0.path) ? "1.0" : "1.1" }
    #expect(waves.waves.prefix(2).joined().contains { rare.contains($0.path) })
  }

  @Test func `stay as they are when the run is begun again`() throws {
    let scratch = try Scratch()
    let stores = Self.stores(300)
    let waves = CanaryWaves(stores, sizes: Self.sizes) { "\($0.path.string.utf8.count)" }
    try waves.write(of: "run 1", sizes: Self.sizes, in: scratch.path)
    // Migrated stores are of another cohort; one is gone, one is new.
    let new = FoundStore(path: "/r/new.sqlite", root: "/r", bytes: 1)
    let gone = waves.waves[1][0]
    let now = stores.filter { $0 != gone } + [new]
    let again = try #require(try CanaryWaves(of: "run 1", in: scratch.path, now, sizes: Self.sizes))
    #expect(again.waves[0] == waves.waves[0])
    #expect(again.waves[1] == Array(waves.waves[1].dropFirst()))
    #expect(again.waves.last?.contains(new) == true)
    #expect(again.waves.map(\.count).reduce(0, +) == now.count)
    #expect(try CanaryWaves(of: "run 2", in: scratch.path, now, sizes: Self.sizes) == nil)
    #expect(!again.isCutAnew)
  }

  /// A wave that was too large to go well is made smaller, and the run goes on.
  @Test func `are cut anew, in the same order, when the pipeline says other sizes`() throws {
    let scratch = try Scratch()
    let stores = Self.stores(10)
    let waves = CanaryWaves(stores, sizes: [.percent(50), .percent(100)])
    try waves.write(of: "run 1", sizes: [.percent(50), .percent(100)], in: scratch.path)
    let anew = try #require(
      try CanaryWaves(of: "run 1", in: scratch.path, stores, sizes: [.count(1), .percent(100)]))
    #expect(anew.isCutAnew)
    #expect(anew.waves.map(\.count) == [1, 9])
    #expect(Array(anew.waves.joined().prefix(5)) == waves.waves[0])
  }

  @Test(arguments: ["0", "0%", "101%", "-1", "x", "", "1.5"])
  func `are counts or shares`(text: String) { #expect(WaveSize(text) == nil) }
}

@Suite struct `A selection of stores` {
  private let stores = ["a/x.sqlite", "a/y.sqlite", "b/x.sqlite"].map {
    FoundStore(path: FilePath("/r/" + $0), root: "/r", bytes: 1)
  }

  private func chosen(_ patterns: [String], _ paths: [String]? = nil) throws -> [String] {
    try StoreSelection(patterns: patterns, paths: paths).chosen(from: stores, roots: ["/r"])
      .stores.map { String($0.path.string.dropFirst(3)) }
  }

  @Test func `is of patterns below a root or of whole paths`() throws {
    #expect(try chosen([]) == ["a/x.sqlite", "a/y.sqlite", "b/x.sqlite"])
    #expect(try chosen(["a/*"]) == ["a/x.sqlite", "a/y.sqlite"])
    #expect(try chosen(["a/y.sqlite", "b/*"]) == ["a/y.sqlite", "b/x.sqlite"])
    #expect(try chosen(["/r/**/x.sqlite"]) == ["a/x.sqlite", "b/x.sqlite"])
    #expect(try chosen(["/a/*"]) == [], "a whole path begins at the root of all files")
    #expect(throws: SelectionError.badPattern("../a")) { try chosen(["../a"]) }
  }

  @Test func `is of a list of paths, and of both`() throws {
    #expect(
      try chosen([], ["/r/a/y.sqlite", "/r/b/../b/x.sqlite"]) == ["a/y.sqlite", "b/x.sqlite"])
    #expect(try chosen(["a/*"], ["/r/a/y.sqlite", "/r/b/x.sqlite"]) == ["a/y.sqlite"])
    let selection = try StoreSelection(patterns: [], paths: ["/r/a/x.sqlite", "/r/gone.sqlite"])
    #expect(try selection.chosen(from: stores, roots: ["/r"]).unknown == ["/r/gone.sqlite"])
  }

  @Test func `names the patterns that mean nothing`() throws {
    let selection = try StoreSelection(
      patterns: ["a/*", "/r/b/y*", "c/*"], paths: ["/r/b/x.sqlite"])
    let chosen = try selection.chosen(from: stores, roots: ["/r"])
    #expect(chosen.unmatched == ["/r/b/y*", "c/*"], "the first means others than the list's")
  }

  @Test func `is below every root that leads to a store`() throws {
    // Found from the outer root; the pattern is of the inner one.
    #expect(
      try StoreSelection(patterns: ["x.*"], paths: nil).chosen(from: stores, roots: ["/r", "/r/b"])
        .stores.map(\.path.string) == ["/r/b/x.sqlite"])
  }

  @Test func `never leaves the roots`() throws {
    #expect(throws: SelectionError.outside(paths: ["/etc/passwd", "/r2/a"])) {
      try chosen([], ["/r/a/x.sqlite", "/etc/passwd", "/r/../r2/a"])
    }
  }

  @Test func `reads a list by lines or by zero bytes`() throws {
    let lines = Array("/a\r\n\n/b c\n".utf8)
    #expect(try StoreSelection.paths(in: lines, partedByZero: false) == ["/a", "/b c"])
    #expect(try StoreSelection.paths(in: Array("\u{FEFF}/a\n".utf8), partedByZero: false) == ["/a"])
    let parts = Array("/a\n1\0/b\0".utf8)
    #expect(try StoreSelection.paths(in: parts, partedByZero: true) == ["/a\n1", "/b"])
    #expect(throws: SelectionError.notText) {
      try StoreSelection.paths(in: parts, partedByZero: false)
    }
    #expect(throws: SelectionError.notText) {
      try StoreSelection.paths(in: [0xFF, 0x0A], partedByZero: false)
    }
  }
}
