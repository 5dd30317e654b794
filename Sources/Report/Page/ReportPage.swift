import Foundation
import GodwitDurableFiles
import GodwitLedger
import Mustache

/// The report of a run as one HTML page that needs nothing else: no network, no other file.
///
/// What it shows is decided here; how it looks is decided by `Templates/report.mustache`.
package enum ReportPage {
  /// What changed in the model, and what to say of it.
  package struct Change: Sendable {
    /// `Recipes → Recipes 2`.
    package var title: String
    /// A drawing; nil where there is nothing to draw it with.
    package var svg: String?
    /// Entities that are not drawn.
    package var omittedCount: Int
    /// The same in lines of text, for those who cannot see the drawing.
    package var text: String

    package init(title: String, svg: String?, omittedCount: Int, text: String) {
      (self.title, self.svg, self.omittedCount, self.text) = (title, svg, omittedCount, text)
    }
  }

  /// - Parameters:
  ///   - change: Nil where there is none to show.
  ///   - now: Seconds since 1970 in UTC, for the page's last line.
  /// - Throws: Mustache's error, for a template that cannot be read; a test sees that it can.
  /// - Complexity: O(*n* log *n*) in the stores. The page stays below 10 MB.
  package static func html(_ report: RunReport, change: Change? = nil, now: Double) throws
    -> String
  {
    MustacheContentTypes.register(PageText(), named: "PAGE")
    let text = String(decoding: PackageResources.report_mustache, as: UTF8.self)
    return VisibleText.lines(
      try MustacheTemplate(string: text).render(View(report, change, now: now)))
  }
}

/// Escapes what Mustache escapes, but scalar by scalar: to Swift, and so to Mustache, a letter of a store's name and
/// the `<` after it may be one Character.
private struct PageText: MustacheContentType {
  func escapeText(_ text: String) -> String {
    text.replacingSigns { scalar in
      switch scalar {
      case "<": "&lt;"
      case ">": "&gt;"
      case "&": "&amp;"
      case "\"": "&quot;"
      case "'": "&#39;"
      default: nil
      }
    }
  }
}

/// What the template is filled with: texts, and lists of texts.
struct View {
  struct Tile {
    var value: String
    var name: String
  }

  struct Verdict {
    var verdict: String
    var count: Int
    var countText: String
    var words: String
  }

  struct Failure {
    var verdict: String
    var title: String
    var advice: String
    var message: String
    var examples: [String]
    var more: String?
  }

  struct Version {
    var name: String
    var after: String
    var stores: String
    var bytes: String
  }

  struct Loss {
    var kind: String
    var place: String
    var count: String
    var stores: String
    var message: String
  }

  struct Change {
    var title: String
    var svg: String?
    var text: String
    var omitted: String?
  }

  struct Stage {
    var name: String
    var time: String
    var share: String
    var rows: String
    var bytes: String
  }

  struct Store {
    var path: String
    var time: String
    var bytes: String
    var rows: String
  }

  struct Extreme {
    var caption: String
    var stores: [Store]
  }

  let pipeline: String
  let kind: String
  let headline: String
  let ending: String
  let when: String
  let host: String
  let starts: String
  let run: String
  let written: String
  let tiles: [Tile]
  let verdicts: [Verdict]
  let shareText: String
  let earlier: String?
  let rest: String?
  let hasFailures: Bool
  let failures: [Failure]
  let versions: [Version]
  let hasLosses: Bool
  let losses: [Loss]
  let moreLosses: String?
  let change: Change?
  let hasTimeline: Bool
  let lanes: [Timeline.Lane]
  let timelineHeight: Int
  let timelineText: String
  let axisStart: String
  let axisEnd: String
  let hasStages: Bool
  let stages: [Stage]
  let hasStores: Bool
  let extremes: [Extreme]
  let root: String
  let truncated: String?
  let data: String

  /// Groups of losses and of failures beyond these are counted, not shown.
  static let mostGroups = 200

  /// Of the slowest, and of the largest stores.
  static let mostExtremes = 10

  init(_ report: RunReport, _ change: ReportPage.Change?, now: Double) {
    let isRollback = report.run.kind == "rollback"
    pipeline = report.pipeline
    kind = isRollback ? "Rollback" : "Run"
    headline = Self.headline(report)
    ending = Self.ending(report.run)
    when =
      Figures.date(report.run.started)
      + (report.run.workedSeconds.map { ", \(Figures.seconds($0))" } ?? "")
    host = report.run.host
    starts = report.run.starts == 1 ? "started once" : "started \(report.run.starts) times"
    run = report.run.name
    written = Figures.date(now)
    tiles = Self.tiles(report)
    verdicts = Self.verdicts(report)
    shareText = verdicts.map { "\($0.countText) \($0.words)" }.joined(separator: ", ")
    earlier =
      report.counts.earlier > 0
      ? "\(Figures.stores(report.counts.earlier)) of them by an earlier "
        + (report.run.starts > 1 ? "start of this run, or an earlier run." : "run.") : nil
    rest = Self.rest(report)
    failures = report.failures.prefix(Self.mostGroups).map(Self.failure)
    hasFailures = !failures.isEmpty
    versions = report.sourceVersions.map {
      Version(
        name: $0.name, after: report.destinationVersion ?? "none", stores: Figures.count($0.stores),
        bytes: Figures.bytes($0.bytes))
    }
    losses = report.losses.prefix(Self.mostGroups).map(Self.loss)
    hasLosses = !losses.isEmpty
    let more = report.losses.count - losses.count
    moreLosses = more > 0 ? "And \(Figures.count(more)) more." : nil
    self.change = change.map { change in
      Change(
        title: change.title, svg: change.svg.map(Self.inline), text: change.text,
        omitted: change.omittedCount > 0
          ? change.omittedCount == 1
            ? "1 entity that stays as it is, and is not related to one that changed, is left out."
            : "\(Figures.count(change.omittedCount)) entities that stay as they are, and are not "
              + "related to one that changed, are left out." : nil)
    }
    let timeline = Timeline(report)
    lanes = timeline.lanes
    hasTimeline = !lanes.isEmpty
    timelineHeight = max(1, timeline.height)
    timelineText = timeline.text
    axisStart = "0"
    axisEnd = timeline.end
    let sum = report.stages.reduce(0) { $0 + $1.seconds }
    stages = report.stages.map {
      Stage(
        name: $0.stage, time: Figures.seconds($0.seconds),
        share: Figures.share($0.seconds, of: sum),
        rows: $0.rows > 0 ? Figures.count($0.rows) : "",
        bytes: $0.bytes > 0 ? Figures.bytes($0.bytes) : "")
    }
    hasStages = !stages.isEmpty
    hasStores = !report.stores.isEmpty
    let table = StoreTable(report.stores)
    root = table.root
    truncated =
      table.omittedCount > 0
      ? "\(Figures.stores(table.omittedCount)) that ended well are left out; the report in the format "
        + "json has them." : nil
    data = table.json
    extremes = [("Slowest", report.slowest), ("Largest", report.largest)].map { caption, places in
      Extreme(
        caption: caption,
        stores: places.prefix(Self.mostExtremes).map {
          Self.store(report.stores[$0], below: table.root)
        })
    }
  }

  private static func store(_ store: RunReport.Store, below root: String) -> Store {
    Store(
      path: String(store.path.dropFirst(root.count)), time: Figures.seconds(store.seconds),
      bytes: Figures.bytes(store.sourceBytes), rows: store.rows.map { Figures.count($0) } ?? "")
  }
}
