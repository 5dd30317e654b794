import Foundation
import GodwitCheckpoints
import GodwitFleet
import GodwitReport
import Synchronization

/// How far a run has come: a bar on a terminal, else a line every ten seconds.
final class ProgressDisplay: Sendable {
  struct State {
    var stage = ""
    var units = 0
    var unitsDone = 0
    var workers = 1
    /// What the stage's time is in proportion to, see `RunEvent.work`.
    var work: Int64 = 0
    var workDone: Int64 = 0
    /// Rows to come; only the assembly is measured by them.
    var rows: Int64 = 0
    /// Of this run only: what was there already says nothing about speed.
    var unitsNow = 0
    var workNow: Int64 = 0
    var rowsNow: Int64 = 0
    var start = ContinuousClock.now
    /// Units that workers have in hand, and the sum of the seconds at which they began.
    var inHand = 0
    var beginnings = 0.0
    /// Seconds that finished units took, all workers together.
    var busySeconds = 0.0
    var isDrawn = false
    var drawnAt = ContinuousClock.now
  }

  private let store: String
  private let isQuiet: Bool
  private let isTerminal: Bool
  private let state = Mutex(State())

  init(store: String, isQuiet: Bool, isTerminal: Bool = isatty(STDERR_FILENO) == 1) {
    self.store = VisibleText.line(store)
    self.isQuiet = isQuiet
    self.isTerminal = isTerminal
  }

  func show(_ event: RunEvent) {
    guard !isQuiet else { return }
    let isNewStage = state.withLock { $0.take(event) }
    if isTerminal { draw(always: isNewStage) }
  }

  /// Redraws now and then until the task is cancelled, so that waiting shows as waiting.
  func tick() async {
    guard !isQuiet else { return }
    let interval: Duration = isTerminal ? .milliseconds(500) : .seconds(10)
    while (try? await Task.sleep(for: interval)) != nil {
      if isTerminal { draw(always: true) } else { Output.say(state.withLock { line($0) }) }
    }
  }

  /// Takes the bar away; what follows is the result.
  func end() {
    let wasDrawn = state.withLock { state in
      defer { state.isDrawn = false }
      return state.isDrawn
    }
    if wasDrawn { Output.draw("\r\u{1B}[K") }
  }

  private func draw(always: Bool) {
    let text: String? = state.withLock { state in
      // Ten times a second is all that an eye can use.
      guard always || ContinuousClock.now - state.drawnAt > .milliseconds(100) else { return nil }
      state.drawnAt = ContinuousClock.now
      state.isDrawn = true
      return "\r\(Self.bar(state.share)) \(line(state))\u{1B}[K"
    }
    if let text { Output.draw(text) }
  }

  private func line(_ state: State) -> String {
    var line = state.stage.isEmpty ? "\(store): planning" : "\(store): \(state.stage)"
    if let share = state.share { line += " \(Int(share * 100)) %" }
    let seconds = (ContinuousClock.now - state.start).inSeconds
    if state.rowsNow > 0, seconds > 0.2 {
      line += ", \(grouped(Int64(Double(state.rowsNow) / seconds))) rows/s"
    }
    if let left = state.secondsLeft(at: .now), seconds > 0.5 {
      line += ", \(Self.text(seconds: left.rounded(.up))) left"
    }
    return line
  }

  private static func bar(_ share: Double?) -> String {
    let width = 20
    let filled = Int((share ?? 0) * Double(width))
    return "[" + String(repeating: "#", count: filled)
      + String(repeating: "-", count: width - filled) + "]"
  }

  static func text(seconds: Double) -> String {
    guard seconds.isFinite, seconds < 1e9 else { return "long" }
    if seconds < 10 { return "\((seconds * 10).rounded() / 10) s" }
    let whole = Int(seconds.rounded())
    if whole < 120 { return "\(whole) s" }
    if whole < 7200 { return "\(whole / 60) min \(whole % 60) s" }
    return "\(whole / 3600) h \(whole % 3600 / 60) min"
  }
}

extension ProgressDisplay.State {
  var share: Double? {
    if work > 0 { return min(1, Double(workDone) / Double(work)) }
    if rows > 0 { return min(1, Double(rowsNow) / Double(rows)) }
    return units > 0 ? min(1, Double(unitsDone) / Double(units)) : nil
  }

  /// Seconds to the stage's end, by the speed so far; nil before anything is finished.
  ///
  /// Units end one by one, each after its whole time: what workers have in hand counts by how long
  /// they have had it, and for no more than a unit takes on average.
  func secondsLeft(at now: ContinuousClock.Instant) -> Double? {
    let time = (now - start).inSeconds
    if rows > 0, rowsNow > 0 { return Double(max(0, rows - rowsNow)) / Double(rowsNow) * time }
    guard unitsNow > 0, workNow > 0, busySeconds > 0 else { return nil }
    let held = Double(inHand)
    let age = min(held * time - beginnings, held * busySeconds / Double(unitsNow))
    let whole = Double(max(0, work - workDone)) * busySeconds / Double(workNow)
    return max(0, whole - age) / Double(max(1, min(workers, units - unitsDone)))
  }

  /// Takes a finished unit; the worker begins the next one, if there is one.
  private mutating func finish(_ event: RunEvent, at time: Double) {
    let seconds = min(event.seconds ?? time, time)
    unitsDone += 1
    unitsNow += 1
    workDone += event.work ?? 0
    workNow += event.work ?? 0
    rowsNow += event.rows ?? 0
    busySeconds += seconds
    beginnings -= time - seconds
    if unitsDone + inHand <= units { beginnings += time } else { inHand -= 1 }
  }

  /// - Returns: True when a stage begins.
  mutating func take(
    _ event: RunEvent, at now: ContinuousClock.Instant = .now
  ) -> Bool {
    // Audits run beside the assembly, which takes longer and is what is shown.
    if event.stage == Stage.audit.rawValue { return false }
    switch event.event {
    case .stage:
      self = ProgressDisplay.State(
        stage: event.stage ?? "", units: event.units ?? 0, workers: event.workers ?? 1,
        work: event.work ?? 0, rows: event.rows ?? 0, start: now,
        inHand: min(event.workers ?? 1, (event.units ?? 0) - (event.reused ?? 0)), isDrawn: isDrawn)
      return true
    case .unitFinished:
      finish(event, at: (now - start).inSeconds)
    case .unitReused:
      unitsDone += 1
      workDone += event.work ?? 0
    case .assembly:
      rowsNow = event.rows ?? rowsNow
    case .commitStep:
      stage = "commit"
    default: break
    }
    return false
  }
}
