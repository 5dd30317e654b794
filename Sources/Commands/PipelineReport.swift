import Foundation
import GodwitFleet
import GodwitPlanning
import Synchronization

/// Says what becomes of a pipeline's stores as it happens, how far the run is, and at the end what
/// was wrong, by reason.
final class PipelineReport: Sendable {
  private struct State {
    /// What is known so far.
    var summary: PipelineSummary
    var view = RunView()
    var groups = ReasonGroups()
    var losses = LossTotals()
    var notes = NoteTotals()
    var lostRights = LostRightsTotals()
    /// Lines that are on the screen, and go before the next are drawn.
    var drawn = 0
  }

  private let name: String
  private let asJSON: Bool
  private let isQuiet: Bool
  private let isVerbose: Bool
  private let isPlan: Bool
  private let losses: LossPolicy
  private let isTerminal: Bool
  private let state: Mutex<State>
  /// Whether the end is told. Held while anything is told, so that nothing follows the end, and a second
  /// signal does not cut it off.
  private let isReported = Mutex(false)

  /// - Parameter isVerbose: Whether stores that end well have lines of their own.
  init(
    name: String, asJSON: Bool, isQuiet: Bool, isVerbose: Bool, isPlan: Bool = false,
    losses: LossPolicy,
    isTerminal: Bool = isatty(STDERR_FILENO) == 1
  ) {
    self.name = name
    self.asJSON = asJSON
    self.isQuiet = isQuiet
    self.isVerbose = isVerbose
    self.isPlan = isPlan
    self.losses = losses
    self.isTerminal = isTerminal
    state = Mutex(State(summary: PipelineSummary(pipeline: name)))
  }

  /// Whether what happens to single stores is shown while it happens.
  var isLive: Bool { isTerminal && !isQuiet }

  /// Takes an event of the run, on any thread. After the end there is nothing to say.
  @Sendable func take(_ event: PipelineEvent) {
    isReported.withLock { isReported in
      guard !isReported else { return }
      tell(event)
    }
  }

  private func tell(_ event: PipelineEvent) {
    state.withLock { $0.view.take(event) }
    switch event {
    case .found(let found):
      state.withLock {
        ($0.summary.found, $0.summary.run) = (found.stores, found.run)
        $0.summary.resumed = found.resumed
      }
      if asJSON { Output.result(json: found) }
      Self.warnings(found).forEach(warn)
      Self.notes(found).forEach(say)
    case .note(let text): say(text)
    case .warning(let text): warn(text)
    case .store(let store, var event):
      event.store = store.path.string
      if asJSON { Output.result(jsonLine: event.jsonLine()) }
    case .result(let store, let result):
      state.withLock {
        if store == nil { $0.summary.found += 1 }
        $0.summary.count(result)
        $0.groups.add(result)
        $0.losses.add(result)
        $0.notes.add(result)
        $0.lostRights.add(result)
      }
      // The view stays where nothing is written: at many stores a second it would never be seen.
      let endsWell = result.verdict == .migrated || result.verdict == .sameModel
      if asJSON || isVerbose || !endsWell { clear() }
      if let setAside = ResultReport.setAside(result), !asJSON, !isVerbose {
        clear()
        say("\(result.store): \(setAside)")
      }
      // A run that stops would say so once for every store under way.
      ResultReport(
        asJSON: asJSON, isQuiet: isQuiet || !isVerbose, isPlan: isPlan, losses: losses,
        isOne: false, explains: isVerbose || (!isPlan && !result.isStopped)
      ).end(result)
    case .wave(let wave):
      if asJSON { Output.result(json: wave) }
      say(
        "Wave \(wave.wave) of \(wave.waves): \(grouped(Int64(wave.stores))) "
          + (wave.stores == 1 ? "store." : "stores."))
    case .later(let store, let result):
      guard asJSON else { return }
      Output.result(
        json: Retry(store: store.path.string, reason: result.reasons.first?.reason ?? ""))
    case .progress: break
    case .submitted(let submission):
      if asJSON { Output.result(json: submission) }
      say(Self.text(submission))
    }
  }

  static func text(_ submission: ClusterSubmission) -> String {
    let tasks =
      submission.tasks == 1 ? "1 task" : "\(grouped(Int64(submission.tasks))) tasks"
    let job = submission.job.isEmpty ? "" : " as job \(submission.job)"
    guard submission.again else { return "\(tasks) of \(submission.array) submitted\(job)." }
    let never = submission.neverStarted.map { $0 > 0 ? ", \($0) of them never began" : "" } ?? ""
    return "\(tasks) of \(submission.array) got lost\(never), and submitted again\(job)."
  }

  /// A line of `--json`: the store is tried again later in the run.
  private struct Retry: Encodable {
    var event = "retry"
    var store: String
    var reason: String
  }

  /// What is said even to somebody who wants to hear of nothing that ends well: something was meant and is
  /// left out.
  ///
  /// - Parameter key: What the patterns were given by.
  static func warnings(_ found: PipelineStart, key: String = "stores.include") -> [String] {
    var warnings: [String] = []
    if let unknown = found.unknown, !unknown.isEmpty {
      let (text, verb) = several(unknown, "path")
      warnings.append("\(text) of the list \(verb) not among the pipeline's stores, and left out.")
    }
    if let unmatched = found.unmatched, !unmatched.isEmpty {
      let (text, _) = several(unmatched, "pattern")
      let note = PathPattern.literalNote(unmatched).map { " \($0)" } ?? ""
      warnings.append(
        "--only \(text) \(unmatched.count > 1 ? "mean" : "means") none of the stores.\(note)"
      )
    }
    if let leftOut = found.leftOut, !leftOut.isEmpty {
      let (text, verb) = several(leftOut, "file")
      warnings.append(
        "\(text) that \(key) names \(verb) left out: files of SQLite's or Godwit's beside a "
          + "store have such names. Rename \(leftOut.count > 1 ? "them" : "it"), or correct the pattern."
      )
    }
    return warnings
  }

  /// The first, how many more there are, and a verb for all of them.
  private static func several(_ names: [String], _ noun: String) -> (text: String, verb: String) {
    guard names.count > 1 else { return (names[0], "is") }
    let more =
      names.count == 2 ? "1 more \(noun)" : "\(grouped(Int64(names.count - 1))) more \(noun)s"
    return ("\(names[0]) and \(more)", "are")
  }

  /// - Parameter key: What the patterns were given by; nil for patterns that nobody gave.
  static func notes(_ found: PipelineStart, key: String? = "stores.include") -> [String] {
    var notes: [String] = []
    if let key, let idle = found.idlePatterns, !idle.isEmpty {
      let (text, _) = several(idle, "pattern")
      let note = PathPattern.literalNote(idle).map { " \($0)" } ?? ""
      notes.append("\(text) of \(key) \(idle.count > 1 ? "mean" : "means") no file.\(note)")
    }
    if let roots = found.emptyRoots, !roots.isEmpty {
      let (text, verb) = several(roots, "root")
      notes.append("\(text) \(verb) without a store.")
    }
    if found.links > 0 {
      notes.append(
        "\(found.links) symbolic \(found.links == 1 ? "link is" : "links are") not followed.")
    }
    if let special = found.special {
      notes.append(
        "\(key ?? "The pattern") means \(special) \(special == 1 ? "FIFO, socket or device" : "FIFOs, sockets or devices"), "
          + "left out: a store is a file."
      )
    }
    if found.stores == 0, let all = found.all, all > 0 {
      notes.append(
        "--only and --files-from mean none of the pipeline's \(grouped(Int64(all))) "
          + (all == 1 ? "store." : "stores.") + " Nothing is done.")
    }
    if found.resumed == true { notes.append("Resuming an interrupted run.") }
    return notes
  }

  /// Draws now and then until the task is cancelled.
  func tick() async {
    guard !isQuiet else { return }
    let interval: Duration = isTerminal ? .milliseconds(250) : .seconds(10)
    while (try? await Task.sleep(for: interval)) != nil {
      if isTerminal { draw() } else { Output.say(state.withLock { $0.view.line(name) }) }
    }
  }

  private func draw() {
    var size = winsize()
    let isKnown = ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 20
    let width = isKnown ? Int(size.ws_col) : 80
    isReported.withLock { isReported in
      guard !isReported else { return }
      let text = state.withLock { state in
        let lines = state.view.lines(name, width: width)
        defer { state.drawn = lines.count }
        return Self.erasing(state.drawn) + lines.map { $0 + "\n" }.joined()
      }
      Output.draw(text)
    }
  }

  /// Goes up over the lines that were drawn, and takes them away.
  private static func erasing(_ lines: Int) -> String {
    lines == 0 ? "" : "\u{1B}[\(lines)A\r\u{1B}[J"
  }

  /// Says what is known, of a run that does not come to its own end.
  func endEarly() {
    endOnce {
      var summary = state.withLock { $0.summary }
      summary.countTheRest()
      tell(summary)
    }
  }

  func end(_ summary: PipelineSummary) { endOnce { tell(summary) } }

  /// The first call counts: a run that ends while a second signal ends it says one thing.
  private func endOnce(_ tell: () -> Void) {
    isReported.withLock { isReported in
      guard !isReported else { return }
      isReported = true
      clear()
      tell()
    }
  }

  private func tell(_ summary: PipelineSummary) {
    let (groups, losses, notes) = state.withLock { ($0.groups, $0.losses, $0.notes) }
    if asJSON {
      var summary = summary
      summary.reasons = groups.isEmpty ? nil : groups.all
      Output.result(json: summary)
    } else if !isQuiet || summary.done != summary.found
      || (self.losses != .allow && !losses.all.isEmpty)
    {
      for line in Self.lines(groups.all) { Output.result(line) }
      if !isQuiet, !isVerbose {
        for line in FleetPlanText.lines(notes.all) { Output.result(line) }
      }
      // A migration that loses something is not a success to be silent about.
      if self.losses != .allow {
        for line in FleetPlanText.lines(losses.all) { Output.result(line) }
      }
      if let snapshots = summary.snapshots { Output.result(Self.snapshotLine(snapshots) + ".") }
      Output.result(Self.line(summary))
    }
    Self.warnings(state.withLock { $0.lostRights }).forEach(warn)
    let (restarted, resubmitted) = (summary.restarted ?? 0, summary.resubmitted ?? 0)
    if restarted + resubmitted > 0 {
      Output.say(
        "\(name): \(grouped(Int64(restarted))) \(restarted == 1 ? "task" : "tasks") begun again, "
          + "\(grouped(Int64(resubmitted))) submitted again.")
    }
    if let message = summary.message { Output.say("\(name): \(message)") }
    if summary.detached == true {
      Output.say(
        "\(name): the work is submitted. `godwit status` tells how far it is; the same command attaches."
      )
    } else if summary.pending > 0, summary.stopped == nil, !isPlan {
      let stores =
        summary.pending == 1 ? "1 store is" : "\(grouped(Int64(summary.pending))) stores are"
      Output.say("\(stores) not done yet. Run the same command to resume.")
    }
  }

  /// Ends with a plan.
  func end(_ outcome: PipelineRun.PlanOutcome) { endOnce { tell(outcome) } }

  private func tell(_ outcome: PipelineRun.PlanOutcome) {
    if asJSON {
      Output.result(json: outcome.plan)
      Output.result(json: outcome.summary)
    } else if !isQuiet || outcome.summary.done != outcome.summary.found
      || outcome.plan.trial?.reasons.isEmpty == false
    {
      for line in FleetPlanText.lines(outcome.plan, outcome.summary) { Output.result(line) }
    } else if losses != .allow {
      // What loses something is not a success to be silent about.
      for line in FleetPlanText.losses(outcome.plan) { Output.result(line) }
    }
  }

  private func warn(_ text: String) {
    clear()
    Output.say("\(name): warning: \(text)")
  }

  private func say(_ text: String) {
    guard !isQuiet else { return }
    clear()
    Output.say("\(name): \(text)")
  }

  /// Takes the drawn lines away; what follows is a result.
  private func clear() {
    let text = state.withLock { state in
      defer { state.drawn = 0 }
      return Self.erasing(state.drawn)
    }
    if !text.isEmpty { Output.draw(text) }
  }
}
