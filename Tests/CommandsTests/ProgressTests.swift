import GodwitFleet
import Testing

@testable import GodwitCommands

@Suite struct `The time left` {
  /// Units of one stage, shared by workers that take the next one as soon as they are free.
  private func estimate(seconds units: [Double], workers: Int, at time: Double) -> (
    said: Double?, left: Double
  ) {
    let start = ContinuousClock.now
    var state = ProgressDisplay.State()
    var begin = RunEvent(.stage)
    (begin.stage, begin.units, begin.workers) = ("link", units.count, workers)
    begin.work = Int64(units.reduce(0, +) * 1000)
    _ = state.take(begin, at: start)
    var free = [Double](repeating: 0, count: workers)
    var ends: [(time: Double, seconds: Double)] = []
    for seconds in units {
      let worker = free.indices.min { free[$0] < free[$1] } ?? 0
      free[worker] += seconds
      ends.append((free[worker], seconds))
    }
    for end in ends.sorted(by: { $0.time < $1.time }) where end.time <= time {
      var event = RunEvent(.unitFinished)
      event.work = Int64(end.seconds * 1000)
      event.seconds = end.seconds
      // What a unit of this stage has written tells nothing.
      (event.rows, event.bytes) = (1, 0)
      _ = state.take(event, at: start + .seconds(end.time))
    }
    return (state.secondsLeft(at: start + .seconds(time)), (free.max() ?? 0) - time)
  }

  @Test(arguments: [
    ([Double](repeating: 1, count: 40), 1, 5.5),
    ([Double](repeating: 1, count: 40), 2, 5.5),
    ([Double](repeating: 4.9, count: 8), 2, 5.0),  // each worker has finished one
    ([Double](repeating: 3, count: 30), 8, 5.0),
    ([Double](repeating: 2, count: 10) + [Double](repeating: 0.1, count: 100), 2, 5.0),
  ])
  func `is right within a factor of two after five seconds`(
    units: [Double], workers: Int, time: Double
  ) throws {
    let (said, left) = estimate(seconds: units, workers: workers, at: time)
    let seconds = try #require(said)
    #expect(seconds <= left * 2 && seconds >= left / 2, "\(seconds) said, \(left) left")
  }

  @Test func `is not said before anything is finished`() {
    #expect(estimate(seconds: [9, 9], workers: 1, at: 5).said == nil)
  }
}
