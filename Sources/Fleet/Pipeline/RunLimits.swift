import Foundation
import GodwitDurableFiles

/// What a run may take, and when it stops by itself: the key `limits` of a pipeline.
package struct RunLimits: Sendable, Equatable {
  /// How long one store may take, in seconds; nil for as long as it needs.
  package var storeTimeoutSeconds: Double?
  /// How many stores may fail before the run stops; nil for all of them.
  package var failureBudget: FailureBudget?
  /// When the run may work; nil for always.
  package var window: DailyWindow?
  /// What the processes of the run may read and write together, in bytes a second; nil for no limit.
  package var ioBytesPerSecond: Int64?
  /// No further store begins while the system's load average of one minute is above this.
  package var load: Double?

  package init() {}
}

/// How many stores may fail, be refused or need a mapping model before a run stops.
package enum FailureBudget: Sendable, Equatable {
  case count(Int)
  /// Of the stores of the run or, with canary waves, of each wave; from 0 to 100.
  case percent(Decimal)

  /// Nil for anything but `5%`, `2.5%` or `10`.
  package init?(_ text: String) {
    guard text.hasSuffix("%") else {
      guard let count = Int(text), count >= 0, text.utf8.allSatisfy(isDigit) else { return nil }
      self = .count(count)
      return
    }
    guard let percent = Percent(text) else { return nil }
    self = .percent(percent.value)
  }

  /// The most failures among so many stores that do not break the budget.
  package func allowedFailures(among stores: Int) -> Int {
    switch self {
    case .count(let count): count
    case .percent(let percent): Percent(percent).share(of: stores, .down)
    }
  }
}

/// A share, from 0 to 100: `5%`, `0.5%`. Binary fractions would make 18.4 % of 375 less than 69.
struct Percent: Sendable, Equatable {
  var value: Decimal

  init(_ value: Decimal) { self.value = value }

  init?(_ text: String) {
    let digits = text.dropLast()
    guard text.hasSuffix("%"), let first = digits.utf8.first, isDigit(first),
      digits.utf8.allSatisfy({ isDigit($0) || $0 == UInt8(ascii: ".") }), Double(digits) != nil,
      let value = Decimal(string: String(digits)), value <= 100
    else { return nil }
    self.value = value
  }

  func share(of count: Int, _ rounding: Decimal.RoundingMode) -> Int {
    var (exact, whole) = (Decimal(count) * value / 100, Decimal())
    NSDecimalRound(&whole, &exact, 0, rounding)
    return Int(truncating: whole as NSDecimalNumber)
  }
}

/// A length of time as people write it: `90s`, `30m`, `1h30m`, `14d`, `2w`.
package struct TimeSpan: Sendable, Equatable {
  package var seconds: Double

  private static let units: [Character: Double] = [
    "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800,
  ]

  /// Nil for anything but whole numbers, each with its unit; and for nothing at all.
  package init?(_ text: String) {
    var (seconds, digits) = (0.0, "")
    for character in text {
      if character.isASCII, character.isWholeNumber {
        digits.append(character)
      } else {
        guard let unit = Self.units[character], let number = Double(digits), number < 1e9 else {
          return nil
        }
        seconds += number * unit
        digits = ""
      }
    }
    guard digits.isEmpty, !text.isEmpty else { return nil }
    self.seconds = seconds
  }

  /// For people: the largest unit that fits.
  package static func text(_ seconds: Double) -> String {
    let whole = Int64(nearest: max(0, seconds.isFinite ? seconds : 0))
    switch whole {
    case ..<120: return "\(whole) s"
    case ..<7_200: return "\(whole / 60) min"
    case ..<172_800: return "\(whole / 3_600) h"
    default: return "\(whole / 86_400) d"
    }
  }
}

/// A part of every day, in local time: from a minute, inclusive, to another, exclusive. One that ends
/// before it begins goes over midnight.
package struct DailyWindow: Sendable, Equatable {
  /// Minutes since midnight.
  package var start: Int
  package var end: Int

  /// Nil for anything but two different times such as `01:00-05:00`. 24:00 is the midnight of 00:00: from it
  /// until 00:00 is no time, and from 00:00 until it the whole day.
  package init?(_ text: String) {
    let times = text.split(separator: "-", omittingEmptySubsequences: false).map(Self.minutes)
    guard times.count == 2, let start = times[0], let end = times[1], start != end,
      start % Self.day != end
    else { return nil }
    (self.start, self.end) = (start, end)
  }

  /// In minutes.
  private static let day = 1_440

  private static func minutes(_ text: Substring) -> Int? {
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count == 2,
      parts.allSatisfy({ (1...2).contains($0.utf8.count) && $0.utf8.allSatisfy(isDigit) }),
      parts[1].utf8.count == 2, let hours = Int(parts[0]), let minutes = Int(parts[1]),
      minutes < 60, hours < 24 || (hours == 24 && minutes == 0)
    else { return nil }
    return hours * 60 + minutes
  }

  /// - Parameter minutes: Since midnight.
  package func contains(minutes: Int) -> Bool {
    start < end ? start <= minutes && minutes < end : start <= minutes || minutes < end
  }

  /// - Parameter time: Seconds since 1970-01-01 UTC.
  package func contains(time: Double) -> Bool {
    var seconds = time_t(time)
    var parts = tm()
    localtime_r(&seconds, &parts)
    return contains(minutes: Int(parts.tm_hour) * 60 + Int(parts.tm_min))
  }
}

extension DailyWindow: CustomStringConvertible {
  package var description: String { "\(Self.text(start))-\(Self.text(end))" }

  private static func text(_ minutes: Int) -> String {
    [minutes / 60, minutes % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
  }
}

private func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
