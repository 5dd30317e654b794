import Foundation
import GodwitLedger
import Testing

@testable import GodwitReport

/// A report over stores with these verdicts in turn, one second each on two processes.
private func report(
  count: Int, verdicts: [String] = ["migrated"], folder: String = "/srv/recipes",
  message: String = "The store is damaged."
) -> RunReport {
  let stores = (0..<count).map { place in
    let verdict = verdicts[place % verdicts.count]
    let path = "\(folder)/user-\(place)/Recipes.sqlite"
    return RunReport.Store(
      path: path, verdict: verdict, sourceVersion: "Recipes", destinationVersion: "Recipes 2",
      started: 1_700_000_000 + Double(place / 2), seconds: 1, rows: Int64(place), sourceBytes: 4096,
      reasons: verdict == "migrated"
        ? [] : [.init(reason: "damaged", message: "\(path): \(message)")],
      attempts: 1)
  }
  let good = stores.count { $0.verdict == "migrated" }
  return RunReport(
    pipeline: "recipes-2.0", pipelineFile: "/srv/pipeline.yaml",
    run: .init(
      kind: "run", name: "20231114", started: 1_700_000_000, ended: 1_700_000_100, seconds: 100,
      exitCode: good == count ? 0 : 3, starts: 1, host: "backup-1"),
    counts: .init(found: count, migrated: good, failed: count - good),
    sourceVersions: [.init(name: "Recipes", stores: count, bytes: 4096)],
    destinationVersion: "Recipes 2", stores: stores,
    failures: good == count
      ? []
      : [
        .init(
          verdict: "failed", reason: "damaged", count: count - good, examples: ["/srv/x"],
          message: message, advice: "Restore the store from a copy.")
      ],
    spans: stores.enumerated().map { place, store in
      .init(
        lane: place % 2, store: place, start: store.started, end: store.started + 1,
        verdict: store.verdict)
    }, slowest: Array(0..<min(20, count)), largest: Array(0..<min(20, count)))
}

private func page(_ report: RunReport, svg: String? = nil) throws -> String {
  try ReportPage.html(
    report,
    change: .init(title: "Recipes → Recipes 2", svg: svg, omittedCount: 0, text: "~ Recipe"),
    now: 1_700_000_200)
}

@Suite struct `The page of a report` {
  @Test func `draws the workers of stores that had several shards below the processes`() throws {
    var several = report(count: 4)
    let plain = Timeline(several)
    #expect(plain.lanes.count == 2 && plain.height == 36)
    let start = several.stores[1].started
    several.stores[1].stages = [
      RunReport.Stage(
        stage: "copy", seconds: 1, rows: 1, bytes: 1,
        shards: [
          .init(worker: 0, start: start, end: start + 0.5),
          .init(worker: 0, start: start + 0.5, end: start + 1),
          .init(worker: 1, start: start, end: start + 1),
        ])
    ]
    let timeline = Timeline(several)
    #expect(timeline.lanes.map { $0.bars.count } == [2, 2, 2, 1])
    #expect(timeline.lanes.map(\.y) == [0, 18, 44, 62] && timeline.height == 80)
    #expect(timeline.lanes[3].bars[0].title.contains("copy, 3 of 3"))
    #expect(try page(several).contains("each bar a shard"))
  }

  /// What stands at the top for 0, 1 and some stores.
  @Test(arguments: [
    (0, ["migrated"], "No store was found"),
    (1, ["migrated"], "The store is at version Recipes 2"),
    (3, ["migrated"], "All 3 stores are at version Recipes 2"),
    (3, ["migrated", "failed"], "2 of 3 stores are at version Recipes 2; 1 is not"),
  ])
  func `says first whether all is well`(count: Int, verdicts: [String], headline: String) throws {
    #expect(View.headline(report(count: count, verdicts: verdicts)) == headline)
    #expect(try page(report(count: count, verdicts: verdicts)).contains("<h1>\(headline)</h1>"))
  }

  @Test func `does not take a snapshot, or a store that was put back, for one at the version`()
    throws
  {
    var some = report(count: 4)
    some.counts.snapshots = 1
    #expect(
      View.headline(some) == "3 of 4 stores are at version Recipes 2; 1 has a snapshot beside it")
    some.counts.snapshots = 0
    some.restored = 3
    #expect(View.headline(some) == "1 of 4 stores is at version Recipes 2; 3 are not")
    #expect(try page(some).contains("A rollback has put 3 stores back since"))
    #expect(Metrics.text(of: some, now: 0).contains("verdict=\"restored\"} 0"))
  }

  /// Stores found and restored, and the exit code; nil for one that was killed.
  @Test(
    arguments: [
      (3, 3, 0, "All 3 stores are restored", "Everything is done. Exit code 0."),
      (
        3, 2, 3, "2 of 3 stores are restored; 1 is not",
        "Finished; some stores are not restored. Exit code 3."
      ),
      (1, 1, 0, "The store is restored", "Everything is done. Exit code 0."),
      (
        2, 1, nil, "1 of 2 stores is restored; 1 is not",
        "The rollback was killed. A later one has brought it to its end."
      ),
    ] as [(Int, Int, Int?, String, String)])
  func `says how much a rollback has restored`(
    found: Int, restored: Int, code: Int?, headline: String, ending: String
  ) throws {
    var rollback = report(count: found)
    rollback.run.kind = "rollback"
    rollback.run.exitCode = code
    rollback.counts = .init(found: found, refused: found - restored, restored: restored)
    #expect(View.headline(rollback) == headline)
    #expect(View.ending(rollback.run) == ending)
    #expect(View.tiles(rollback)[0].name == (found == 1 ? "store found" : "stores found"))
    #expect(View.tiles(rollback)[1].value == "\(restored)")
  }

  @Test func `counts the time of a process once where it has several stores in hand`() {
    var several = report(count: 6)
    for place in several.spans.indices { several.spans[place].lane = 0 }
    #expect(Timeline(several).text.hasPrefix("1 process, busy for 100\(Figures.space)%"))
  }

  @Test func `says why a start ended before it came to a store`() throws {
    var ended = report(count: 0)
    ended.run.exitCode = 65
    #expect(View.headline(ended) == "This start did not begin with any store")
    ended.run.message = "Make the plan again."
    #expect(
      View.ending(ended.run) == "Ended with an error. Make the plan again. Exit code 65.")
    ended = report(count: 0)
    ended.fleet = .init(found: 2, migrated: 2)
    #expect(View.headline(ended) == "No store of the pipeline was selected")
  }

  @Test func `shows control characters of names, and sends none`() throws {
    let folder = "/srv/\u{1B}[2J\u{202E}x\u{1}"
    let html = try page(report(count: 3, verdicts: ["migrated", "failed"], folder: folder))
    #expect(html.contains(#"\u{1B}[2J\u{202E}x\u{01}"#))
    #expect(!html.unicodeScalars.contains { $0 != "\n" && VisibleText.isControl($0) })
  }

  @Test func `says what failed and what to do about it`() throws {
    let page = try page(report(count: 4, verdicts: ["failed"]))
    #expect(page.contains("<h3>4 stores: failed, damaged</h3>"))
    #expect(page.contains("<p>Restore the store from a copy.</p>"))
    #expect(page.contains("And 3 stores more"))
  }

  @Test func `tells of the stores that a run over some of them was not about`() throws {
    var part = report(count: 4)
    #expect(try !page(part).contains("The pipeline has"))
    part.fleet = .init(found: 9, migrated: 6, failed: 3)
    #expect(
      try page(part).contains(
        "The pipeline has 9 stores, of which 3 are not migrated as far as is known."))
  }

  @Test func `has no address of the network but namespaces`() throws {
    let svg = try Graphviz.svg(of: EntityDiagram())
    #expect(svg.contains("DTD"))
    let page = try page(report(count: 3), svg: svg)
    let addresses = page.matches(of: /https?:\/\/[^\s"'<]+/).map { String($0.output) }
    #expect(Set(addresses) == ["http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"])
  }

  /// Text that would end an element, a script or a string of one.
  @Test(arguments: [
    "</script><script>alert(1)</script>", "<!--<script>", "\"]};alert(1)//", "a\\", "{{run}}",
    "<img src=x onerror=alert(1)>", "\u{2028}\u{0}\u{7F}",
    // To Swift the first two are one Character.
    "\u{6DD}<img src=x onerror=alert(1)>",
  ])
  func `is not changed by what a path or message says`(text: String) throws {
    let page = try page(
      report(count: 2, verdicts: ["failed"], folder: "/srv/\(text)", message: text))
    #expect(page.components(separatedBy: "<script").count == 3)
    #expect(page.components(separatedBy: "</script>").count == 3)
    #expect(!page.utf8.contains("<img".utf8))
    let data = try #require(
      page.firstMatch(
        of: /<script type="application\/json" id="data">(.*?)<\/script>/.dotMatchesNewlines()))
    let table = try JSONSerialization.jsonObject(with: Data(data.output.1.utf8)) as? [String: Any]
    #expect((table?["rows"] as? [[Any]])?.count == 2)
    #expect((table?["reasons"] as? [String]) == ["damaged: this store: \(VisibleText.line(text))"])
  }

  @Test func `of forty thousand stores is small and has every store`() throws {
    let page = try page(report(count: 40_000, verdicts: ["migrated", "failed"]))
    #expect(page.utf8.count < 10_000_000)
    #expect(page.contains("user-39999/Recipes.sqlite"))
    #expect(page.components(separatedBy: "<rect").count < 2_100)
  }

  @Test func `of very many long paths leaves out stores that ended well, and says so`() throws {
    let folder = "/srv/" + String(repeating: "long/", count: 30)
    let stores = report(
      count: 60_000, verdicts: ["migrated", "migrated", "failed"], folder: folder)
    // One store elsewhere, so that the paths have next to nothing in common.
    var elsewhere = stores
    elsewhere.stores.append(
      .init(path: "/x", verdict: "migrated", started: 0, seconds: 0, sourceBytes: 0, attempts: 1))
    let table = StoreTable(elsewhere.stores)
    #expect(table.omittedCount > 0)
    #expect(table.json.contains("user-59999"))  // the last one, which failed
    #expect(try page(elsewhere).utf8.count < 10_000_000)
    #expect(try page(elsewhere).contains("that ended well are left out"))
  }
}

@Suite struct `A figure` {
  @Test(arguments: [
    (Int64(0), "0", "0\u{202F}B"), (999, "999", "999\u{202F}B"),
    (1024, "1\u{202F}024", "1.0\u{202F}KiB"),
    (1_234_567, "1\u{202F}234\u{202F}567", "1.2\u{202F}MiB"),
    (-1500, "−1\u{202F}500", "-1500\u{202F}B"),
  ])
  func `is grouped, or has a unit`(number: Int64, count: String, bytes: String) {
    #expect(Figures.count(number) == count)
    #expect(Figures.bytes(number) == bytes)
  }

  @Test(arguments: [
    (0.0, "0\u{202F}ms"), (0.0123, "12\u{202F}ms"), (12.34, "12.3\u{202F}s"),
    (125, "2\u{202F}min 5\u{202F}s"), (7380, "2\u{202F}h 3\u{202F}min"),
  ])
  func `of a duration has the unit that fits`(seconds: Double, text: String) {
    #expect(Figures.seconds(seconds) == text)
  }

  @Test func `of a date is in UTC`() {
    #expect(Figures.date(1_700_000_000) == "2023-11-14 22:13 UTC")
  }

  @Test(arguments: [
    ([], ""), (["/a/b.sqlite"], "/a/"), (["/a/b/x", "/a/bc/x"], "/a/"), (["/a/x", "b/x"], ""),
  ])
  func `is not needed for the folder that all paths share`(paths: [String], root: String) {
    #expect(StoreTable.commonFolder(of: paths) == root)
  }
}
