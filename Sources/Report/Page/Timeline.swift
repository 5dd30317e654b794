import Foundation
import GodwitLedger

/// What each process did when, as bars: stores that are too short to be seen are drawn together.
struct Timeline {
  struct Bar {
    var verdict: String
    var x: String
    var y: Int
    var width: String
    var title: String
  }

  struct Lane {
    var y: Int
    var bars: [Bar]
  }

  private(set) var lanes: [Lane] = []
  private(set) var text = ""
  private(set) var end = ""
  /// In the units of ``Lane/y``.
  private(set) var height = 0

  /// More lanes, or more bars in one, show nothing.
  static let mostLanes = 32
  static let leastWidth = 2.0
  private static let mostShardedStores = 3

  /// From the worst, which is the one a bar of several stores shows, to the best.
  private static let severity = [
    "failed", "refused", "needs-mapping", "quarantined", "pending", "migrated", "restored",
    "same-model",
  ]

  init(_ report: RunReport) {
    guard let start = report.spans.map(\.start).min(), let last = report.spans.map(\.end).max()
    else { return }
    let length = max(last - start, 0.001)
    let byLane = Dictionary(grouping: report.spans, by: \.lane).sorted { $0.key < $1.key }
    for (place, lane) in byLane.prefix(Self.mostLanes).enumerated() {
      lanes.append(Lane(y: place * 18, bars: []))
      for group in Self.groups(lane.value, start: start, length: length) {
        lanes[place].bars.append(Self.bar(group, report, start, length, y: place * 18))
      }
    }
    let busy = byLane.reduce(0) { $0 + Self.busy($1.value) }
    text =
      "\(byLane.count) \(byLane.count == 1 ? "process" : "processes"), busy for "
      + "\(Figures.share(busy, of: length * Double(byLane.count))) of "
      + "\(Figures.seconds(length)). Each line is a process, each bar a store."
    if byLane.count > Self.mostLanes { text += " The first \(Self.mostLanes) are drawn." }
    end = Figures.seconds(length)
    height = lanes.count * 18
    addShards(report, start, length)
  }

  /// How long a process was at work: a rollback has several stores in hand at a time.
  ///
  /// - Parameter spans: By their starts.
  private static func busy(_ spans: [RunReport.Span]) -> Double {
    var (seconds, end) = (0.0, -Double.infinity)
    for span in spans {
      seconds += max(0, span.end - max(span.start, end))
      end = max(end, span.end)
    }
    return seconds
  }

  /// Below the processes, the workers of the slowest stores that had shards.
  private mutating func addShards(_ report: RunReport, _ start: Double, _ length: Double) {
    let stores = report.slowest.lazy.map { report.stores[$0] }
      .filter { $0.stages.contains { $0.shards != nil } }.prefix(Self.mostShardedStores)
    for store in stores {
      height += 8
      let first = lanes.count
      for stage in store.stages {
        let shards = stage.shards ?? []
        for (number, shard) in shards.enumerated() {
          while lanes.count <= first + shard.worker, lanes.count - first < Self.mostLanes {
            lanes.append(Lane(y: height, bars: []))
            height += 18
          }
          guard first + shard.worker < lanes.count else { continue }
          let x = 1000 * (shard.start - start) / length
          let width = 1000 * (shard.end - shard.start) / length
          lanes[first + shard.worker].bars.append(
            Bar(
              verdict: store.verdict, x: String(format: "%.1f", max(0, x)),
              y: lanes[first + shard.worker].y,
              width: String(format: "%.1f", max(width - 0.3, 0.5)),
              title: "\(store.path), \(stage.stage), \(number + 1) of \(shards.count), "
                + Figures.seconds(shard.end - shard.start)))
        }
      }
    }
    guard !stores.isEmpty else { return }
    text +=
      " Below them are the workers of the slowest \(Figures.stores(stores.count)) that had several "
      + "shards, each bar a shard."
  }

  private struct Group {
    var spans: [RunReport.Span]
    var end: Double
  }

  private static func groups(
    _ spans: [RunReport.Span], start: Double, length: Double
  ) -> [Group] {
    let least = leastWidth * length / 1000
    var groups: [Group] = []
    for span in spans {
      // Into the last bar, where that or this one is too short for a bar of its own.
      if let last = groups.last, span.start - last.end < least / 2,
        span.end - span.start < least, last.end - (last.spans.first?.start ?? 0) < least
      {
        groups[groups.count - 1].spans.append(span)
        groups[groups.count - 1].end = max(last.end, span.end)
      } else {
        groups.append(Group(spans: [span], end: span.end))
      }
    }
    return groups
  }

  private static func bar(
    _ group: Group, _ report: RunReport, _ start: Double, _ length: Double, y: Int
  ) -> Bar {
    let first = group.spans[0]
    let verdicts = Set(group.spans.map(\.verdict))
    let (x, width) = (
      1000 * (first.start - start) / length, 1000 * (group.end - first.start) / length
    )
    let name =
      group.spans.count > 1
      ? Figures.stores(group.spans.count)
      : "\(report.stores[first.store].path), \(first.verdict)"
    return Bar(
      verdict: severity.first(where: verdicts.contains) ?? first.verdict,
      x: String(format: "%.1f", x), y: y,
      width: String(format: "%.1f", max(width - 0.3, 0.5)),
      title: "\(name), \(Figures.seconds(group.end - first.start))")
  }
}
