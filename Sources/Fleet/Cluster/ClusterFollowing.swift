import Foundation
import GodwitDurableFiles
import SystemPackage

/// What the coordinator remembers of stores that others have in hand.
struct ClusterFollowing {
  init(found: [FilePath: FoundStore]) { self.found = found }

  /// The stores of this start.
  let found: [FilePath: FoundStore]
  var wave = -1
  /// Stores that have begun and have no result.
  var inFlight: Set<FilePath> = []
  /// Those of them that are in no bundle: nothing is cut while the run is held.
  var uncut: [FoundStore] = []
  /// Results of stores that have not begun.
  var early: [FilePath: PipelineRun.Outcome] = [:]
  /// Arrays whose bundles are done, and whose folders are still there.
  var finished: [ClusterArray] = []
  /// Nothing, or the list would be thousands of paths.
  let running: Set<FoundStore> = []
  private var said: Set<String> = []
  private var silence = SilenceNotes()
  private var lanes: [String: Int] = [:]

  /// Half a second: results are taken over as they come, and nobody waits for it but the last of many bundles.
  let pause = Duration.milliseconds(500)

  /// The lane of a process on another machine.
  mutating func lane(of line: BundleResult, _ numbers: LaneNumbers) -> Int? {
    guard let lane = line.lane else { return nil }
    let name = "\(line.host) \(lane)"
    if let known = lanes[name] { return known }
    let number = numbers.take()
    lanes[name] = number
    return number
  }

  /// Says once of each machine that its clock is wrong, where its results show it.
  mutating func tellClocks(_ results: [BundleResult], _ say: (String) -> Void) {
    let now = Date().timeIntervalSince1970
    for result in results {
      guard let note = result.clockNote(at: now), said.insert("clock \(result.host)").inserted
      else {
        continue
      }
      say(note)
    }
  }

  /// Says once why tasks do not begin, and that the scheduler does not answer.
  mutating func tellStuck(_ report: ClusterProgress, held: [String], _ say: (String) -> Void) {
    if let note = silence.next(report.silent) { say(note) }
    for bundle in held where said.insert(bundle).inserted {
      say(
        "\(bundle), which the scheduler does not know. It is submitted again when that one ends, or "
          + "has stood still for \(Int(LeaseTime.seconds)) s.")
    }
    for reason in report.stuck where said.insert(reason).inserted {
      say(
        "Tasks do not begin: \(reason). Waiting does not help; see `sinfo -R` and "
          + "`scontrol show job`.")
    }
  }
}
