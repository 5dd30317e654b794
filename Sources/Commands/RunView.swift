import Foundation
import GodwitDurableFiles
import GodwitFleet
import GodwitReport
import SystemPackage

/// How far a pipeline's run is: rates, time left, and what is under way.
struct RunView {
  /// A store costs something however small it is: as much as so many bytes.
  private static let bytesOfStore: Int64 = 256 << 10

  private struct InFlight {
    var bytes: Int64
    var stage = "planning"
    var since: ContinuousClock.Instant
  }

  private var found = 0
  private var notDone = 0
  private var ended = 0
  /// Work in all and done, in bytes; what was done before this start is in neither.
  private var work: Int64 = 0
  private var workDone: Int64 = 0
  private var rows: Int64 = 0
  private var bytes: Int64 = 0
  private var inFlight: [FilePath: InFlight] = [:]
  private var progress: RunProgress?
  private let start: ContinuousClock.Instant

  init(start: ContinuousClock.Instant = .now) { self.start = start }

  mutating func take(_ event: PipelineEvent, at now: ContinuousClock.Instant = .now) {
    switch event {
    case .found(let found):
      self.found = found.stores
      work = found.bytes.added(Int64(found.stores) * Self.bytesOfStore)
    case .store(let store, let event):
      let stage = event.event == .stage ? event.stage : nil
      let path = store.path
      if inFlight[path] == nil { inFlight[path] = InFlight(bytes: store.bytes, since: now) }
      // Audits run beside the assembly, which takes longer.
      if let stage, stage != "audit" { inFlight[path]?.stage = stage }
    case .result(let store, let result):
      ended += 1
      inFlight[FilePath(result.store)] = nil
      if result.verdict != .migrated && result.verdict != .sameModel { notDone += 1 }
      guard let store else {
        found += 1
        return
      }
      let cost = store.bytes.added(Self.bytesOfStore)
      guard result.seconds != nil, result.verdict != .sameModel else {
        work = max(0, work.added(-cost))
        return
      }
      workDone = workDone.added(cost)
      bytes = bytes.added(store.bytes)
      rows = rows.added(result.rows ?? 0)
    case .later(let store, _): inFlight[store.path] = nil
    case .progress(let progress): self.progress = progress
    case .wave, .note, .warning, .submitted: break
    }
  }

  /// What share of a store's work lies before a stage.
  private static let shares: [String: Double] = [
    "rows": 0.05, "copy": 0.05, "link": 0.3, "validate": 0.45, "assemble": 0.55, "verify": 0.75,
    "soundness": 0.9, "commit": 0.95,
  ]

  /// From 0 to 1; nil while nothing is known.
  var share: Double? {
    guard work > 0 else { return nil }
    let underWay = inFlight.values.reduce(0.0) {
      $0 + Double($1.bytes.added(Self.bytesOfStore)) * (Self.shares[$1.stage] ?? 0)
    }
    return min(1, (Double(workDone) + underWay) / Double(work))
  }

  /// Seconds to the end by the speed so far; nil before anything is known of it.
  func secondsLeft(at now: ContinuousClock.Instant) -> Double? {
    let seconds = (now - start).inSeconds
    // The first store of a run waits for what the others find ready.
    guard let share, share > 0, workDone > 0 || seconds > 5, seconds > 1,
      progress?.isPaused != true
    else { return nil }
    return seconds / share * (1 - share)
  }

  /// One line, without what is under way.
  func line(_ name: String, at now: ContinuousClock.Instant = .now) -> String {
    guard found > 0 else { return "\(name): looking for stores" }
    var line = "\(name): \(grouped(Int64(ended))) of \(grouped(Int64(found))) stores"
    if notDone > 0 { line += ", \(grouped(Int64(notDone))) not migrated" }
    if let waiting = progress?.waiting, waiting > 0 {
      line += ", \(grouped(Int64(waiting))) tried again later"
    }
    if let wave = progress?.wave, let waves = progress?.waves {
      line += ", wave \(wave) of \(waves)"
    }
    if let cluster = progress?.cluster {
      line += ", \(cluster.running) of \(cluster.bundles - cluster.finished) open bundles run"
      if cluster.restarted > 0 { line += ", \(cluster.restarted) started again" }
      if cluster.resubmitted > 0 { line += ", \(cluster.resubmitted) submitted again" }
      if !cluster.stuck.isEmpty { line += ", some are stuck" }
      if cluster.silent != nil { line += ", the scheduler does not answer" }
    }
    let seconds = (now - start).inSeconds
    if seconds > 1, workDone > 0 {
      // A plan moves no row.
      if rows > 0 { line += ", \(grouped(Int64(nearest: Double(rows) / seconds))) rows/s" }
      line += ", \(ByteSize.text(Int64(nearest: Double(bytes) / seconds)))/s"
    }
    if let held = progress?.held {
      line += held == "load" ? ", waiting for the load to fall" : ", paused"
    } else if let left = secondsLeft(at: now) {
      line += ", \(ProgressDisplay.text(seconds: left.rounded(.up))) left"
    }
    return line
  }

  private static let mostInFlight = 8

  /// The line, and one for each store under way, the one that began first on top.
  func lines(_ name: String, width: Int, at now: ContinuousClock.Instant = .now) -> [String] {
    let stores = inFlight.map { (path: $0.key.string, store: $0.value) }
      .sorted { ($0.store.since, $0.path) < ($1.store.since, $1.path) }
    var lines = [line(VisibleText.line(name), at: now)]
    lines += stores.prefix(Self.mostInFlight).map { path, store in
      let seconds = ProgressDisplay.text(seconds: (now - store.since).inSeconds.rounded())
      let tail = "  \(store.stage), \(ByteSize.text(store.bytes)), \(seconds)"
      return "  " + Self.end(of: VisibleText.line(path), fitting: max(8, width - tail.count - 3))
        + tail
    }
    if stores.count > Self.mostInFlight {
      lines.append("  and \(stores.count - Self.mostInFlight) more")
    }
    return lines.map { $0.count < width ? $0 : String($0.prefix(max(1, width - 1))) }
  }

  /// Of a path that is too long, the end says more.
  private static func end(of path: String, fitting width: Int) -> String {
    path.count <= width ? path : "…" + path.suffix(width - 1)
  }
}
