import Foundation
import GodwitDurableFiles
import GodwitLedger

// Times that other machines say. How old a backup is, and what is written down of a store, counts from the
// clock of whoever follows the run: that of a machine whose battery is empty may be years away.

extension BundleManifest.Header {
  /// The result, at a time at which it can have ended: not before the array was made. It took as long as its
  /// machine says. What any start, or command, makes of it is the same.
  func placed(_ result: BundleResult) -> BundleResult {
    guard let made, result.ended < made else { return result }
    var placed = result
    placed.secondsTooEarly = made - result.ended
    placed.started = made - max(0, result.ended - result.started)
    placed.ended = made
    return placed
  }
}

extension BundleFolder {
  /// By how many seconds the clock of an attempt's machine was ahead of the file server's when it began; 0 for
  /// less than a minute, which its writing may take.
  func secondsAhead(_ index: Int, _ attempt: String) -> Double {
    guard let said = readStart(index, attempt), let mark = try? FileMark(start(index, attempt))
    else {
      return 0
    }
    let ahead = said.time - Double(mark.modificationSeconds)
    return ahead > 60 ? ahead : 0
  }
}

extension BundleResult {
  /// The result by a clock that is not ahead.
  func earlier(by seconds: Double) -> BundleResult {
    guard seconds > 0 else { return self }
    var earlier = self
    (earlier.started, earlier.ended) = (started - seconds, ended - seconds)
    earlier.secondsAhead = seconds
    return earlier
  }

  /// By how many seconds the clock of its machine differs from ours, as far as the result shows it;
  /// nil where it does not.
  ///
  /// - Parameter now: Seconds since 1970-01-01 UTC.
  func clockError(at now: Double) -> Double? {
    if let secondsAhead { return secondsAhead }
    if let secondsTooEarly, secondsTooEarly > Self.tolerance { return -secondsTooEarly }
    return ended - now > Self.tolerance ? ended - now : nil
  }

  /// 1 s. Clocks that are kept together are closer.
  private static let tolerance = 1.0

  /// What to say of that, for people.
  func clockNote(at now: Double) -> String? {
    guard let error = clockError(at: now) else { return nil }
    let way = error < 0 ? "behind" : "ahead of"
    return
      "The clock of \(host) is about \(Self.span(abs(error))) \(way) the one here: it says that "
      + "\(store) ended \(error < 0 ? "before its bundle was made" : "later than now"). What it says is "
      + "taken for a time of this run. Set its clock, or leases may be lost: see `godwit doctor`."
  }

  private static func span(_ seconds: Double) -> String {
    let units = [("d", 86_400.0), ("h", 3_600), ("min", 60)]
    guard let unit = units.first(where: { seconds >= $0.1 }) else { return "\(Int(seconds)) s" }
    return "\(Int64(nearest: (seconds / unit.1).rounded())) \(unit.0)"
  }
}

extension LedgerBackup {
  /// The same, made at a time that is not later than now.
  func notLater(than now: Double) -> LedgerBackup {
    guard made > now else { return self }
    var backup = self
    (backup.made, backup.changed) = (now, now)
    return backup
  }
}
