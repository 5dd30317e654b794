import Foundation
import GodwitCheckpoints
import GodwitFleet
import Synchronization

/// How far a run has come: a bar on a terminal, else a line every ten seconds.
final class ProgressDisplay: Sendable {
  fileprivate struct State {
    var stage = ""
    var units = 0
    var unitsDone = 0
    var bytes: Int64 = 0
    var bytesDone: Int64 = 0
    /// Rows to come; only the assembly is measured by them.
    var rows: Int64 = 0
    /// Work of this run only: what was there already says nothing about speed.
    var bytesNow: Int64 = 0
    var rowsNow: Int64 = 0
    var start = ContinuousClock.now
    var isDrawn = false
    var drawnAt = ContinuousClock.now
  }

  private let store: String
  private let isQuiet: Bool
  private let isTerminal: Bool
  private let state = Mutex(State())

  init(store: String, isQuiet: Bool, isTerminal: Bool = isatty(STDERR_FILENO) == 1) {
    self.store = store
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
    if state.bytesNow > 0, seconds > 0.5 {
      let left = Double(max(0, state.bytes - state.bytesDone)) / (Double(state.bytesNow) / seconds)
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
  fileprivate var share: Double? {
    if bytes > 0 { return min(1, Double(bytesDone) / Double(bytes)) }
    if rows > 0 { return min(1, Double(rowsNow) / Double(rows)) }
    return units > 0 ? min(1, Double(unitsDone) / Double(units)) : nil
  }

  /// - Returns: True when a stage begins.
  fileprivate mutating func take(_ event: RunEvent) -> Bool {
    // Audits run beside the assembly, which takes longer and is what is shown.
    if event.stage == Stage.audit.rawValue { return false }
    switch event.event {
    case .stage:
      self = ProgressDisplay.State(
        stage: event.stage ?? "", units: event.units ?? 0, bytes: event.bytes ?? 0,
        rows: event.rows ?? 0, isDrawn: isDrawn)
      return true
    case .unitFinished:
      unitsDone += 1
      bytesDone += event.bytes ?? 0
      bytesNow += event.bytes ?? 0
      rowsNow += event.rows ?? 0
    case .unitReused:
      unitsDone += 1
      bytesDone += event.bytes ?? 0
    case .assembly:
      rowsNow = event.rows ?? rowsNow
    case .commitStep:
      stage = "commit"
    default: break
    }
    return false
  }
}
