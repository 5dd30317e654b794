import Glibc
import GodwitCheckpoints

/// Divides the time of a pass among its stages: one reading for each stage and page.
struct StageClock {
  private var last = StageClock.now()
  private var copy = 0.0
  private var link = 0.0
  private var validate = 0.0

  /// The time since the last reading was that of a stage.
  mutating func end(of stage: Stage) {
    let now = Self.now()
    switch stage {
    case .copy: copy += now - last
    case .link: link += now - last
    default: validate += now - last
    }
    last = now
  }

  /// What each stage took of the whole.
  var shares: [Stage: Double] {
    let sum = copy + link + validate
    guard sum > 0 else { return [.validate: 1] }
    return [.copy: copy / sum, .link: link / sum, .validate: validate / sum]
  }

  /// In seconds. Does not enter the kernel.
  private static func now() -> Double {
    var time = timespec()
    guard clock_gettime(CLOCK_MONOTONIC, &time) == 0 else { return 0 }
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
