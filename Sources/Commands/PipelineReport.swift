import Foundation
import GodwitFleet
import GodwitPlanning
import Synchronization

/// Says what becomes of a pipeline's stores as it happens: a few lines a store, and how far it is.
final class PipelineReport: Sendable {
  private struct State {
    var bytes: Int64 = 0
    var storesDone = 0
    var bytesDone: Int64 = 0
    /// What is known so far.
    var summary: PipelineSummary
    var isDrawn = false
    var isReported = false
  }

  private let name: String
  private let asJSON: Bool
  private let isQuiet: Bool
  private let isPlan: Bool
  private let losses: LossPolicy
  private let isTerminal = isatty(STDERR_FILENO) == 1
  private let start = ContinuousClock.now
  private let state: Mutex<State>

  init(name: String, asJSON: Bool, isQuiet: Bool, isPlan: Bool = false, losses: LossPolicy) {
    self.name = name
    self.asJSON = asJSON
    self.isQuiet = isQuiet
    self.isPlan = isPlan
    self.losses = losses
    state = Mutex(State(summary: PipelineSummary(pipeline: name)))
  }

  /// Takes an event of the run, on any thread.
  @Sendable func take(_ event: PipelineEvent) {
    switch event {
    case .found(let found):
      state.withLock {
        $0.bytes = found.bytes
        ($0.summary.found, $0.summary.run) = (found.stores, found.run)
        $0.summary.resumed = found.resumed
      }
      if asJSON { Output.result(json: found) }
      if found.links > 0 {
        say("\(found.links) symbolic \(found.links == 1 ? "link is" : "links are") not followed.")
      }
      if found.resumed == true { say("Resuming an interrupted run.") }
    case .note(let text): say(text)
    case .store(let store, var event):
      event.store = store.path.string
      if asJSON { Output.result(event.jsonLine()) }
    case .result(let store, let result):
      state.withLock {
        $0.storesDone += 1
        $0.bytesDone += store?.bytes ?? 0
        if store == nil { $0.summary.found += 1 }
        $0.summary.count(result)
      }
      clear()
      ResultReport(asJSON: asJSON, isQuiet: isQuiet, isPlan: isPlan, losses: losses).end(result)
    }
  }

  /// Draws now and then until the task is cancelled.
  func tick() async {
    guard !isQuiet else { return }
    let interval: Duration = isTerminal ? .milliseconds(500) : .seconds(10)
    while (try? await Task.sleep(for: interval)) != nil {
      if isTerminal {
        let text = state.withLock { state in
          state.isDrawn = true
          return line(state)
        }
        Output.draw("\r\(text)\u{1B}[K")
      } else {
        Output.say(state.withLock { line($0) })
      }
    }
  }

  /// Says what is known, of a run that does not come to its own end.
  func endEarly() {
    var summary = state.withLock { $0.summary }
    summary.countTheRest()
    end(summary)
  }

  /// The first call counts: a run that ends while a second signal ends it says one thing.
  func end(_ summary: PipelineSummary) {
    let isFirst = state.withLock { state in
      defer { state.isReported = true }
      return !state.isReported
    }
    guard isFirst else { return }
    clear()
    if asJSON {
      Output.result(json: summary)
    } else if !isQuiet || summary.done != summary.found {
      Output.result(Self.line(summary, isPlan: isPlan))
    }
    if summary.pending > 0, !isPlan {
      let stores =
        summary.pending == 1 ? "1 store is" : "\(grouped(Int64(summary.pending))) stores are"
      Output.say("\(stores) not done yet. Run the same command to resume.")
    }
  }

  static func line(_ summary: PipelineSummary, isPlan: Bool) -> String {
    var parts = [isPlan ? "would be migrated" : "migrated", "same model", "refused"]
      .enumerated().map { place, word in
        ([summary.migrated, summary.sameModel, summary.refused][place], word)
      }
    parts += [
      (summary.needsMapping, "need a mapping model"), (summary.quarantined, "quarantined"),
      (summary.failed, "failed"), (summary.pending, "not done yet"),
    ]
    let said = parts.enumerated().filter { $0.element.0 > 0 || $0.offset == 0 }
    let text = said.map { "\(grouped(Int64($0.element.0))) \($0.element.1)" }
    let earlier = summary.earlier.map { $0 > 0 ? " (\(grouped(Int64($0))) before)" : "" } ?? ""
    let stores = summary.found == 1 ? "1 store" : "\(grouped(Int64(summary.found))) stores"
    return "\(summary.pipeline): \(stores): \(text[0])\(earlier)"
      + text.dropFirst().map { ", " + $0 }.joined()
  }

  private func line(_ state: State) -> String {
    let (found, notDone) = (state.summary.found, state.summary.notDone)
    guard found > 0 else { return "\(name): looking for stores" }
    var line = "\(name): \(grouped(Int64(state.storesDone))) of \(grouped(Int64(found))) stores"
    if notDone > 0 { line += ", \(grouped(Int64(notDone))) not migrated" }
    let seconds = (ContinuousClock.now - start).inSeconds
    if state.bytesDone > 0, seconds > 2 {
      let left = Double(state.bytes - state.bytesDone) / (Double(state.bytesDone) / seconds)
      line += ", \(ProgressDisplay.text(seconds: left.rounded(.up))) left"
    }
    return line
  }

  private func say(_ text: String) { if !isQuiet { Output.say("\(name): \(text)") } }

  /// Takes the drawn line away; what follows is a result.
  private func clear() {
    let wasDrawn = state.withLock { state in
      defer { state.isDrawn = false }
      return state.isDrawn
    }
    if wasDrawn { Output.draw("\r\u{1B}[K") }
  }
}
