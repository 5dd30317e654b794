import Glibc

/// What a run may take, and when it stops by itself: the key `limits` of a pipeline.
public struct RunLimits: Sendable, Equatable {
  /// How long one store may take, in seconds; nil for as long as it needs.
  public var storeTimeoutSeconds: Double?
  /// How many stores may fail before the run stops; nil for all of them.
  public var failureBudget: FailureBudget?
  /// When the run may work; nil for always.
  public var window: DailyWindow?
  /// What the processes of the run may read and write together, in bytes a second; nil for no limit.
  public var ioBytesPerSecond: Int64?
  /// No further store begins while the system's load average of one minute is above this.
  public var load: Double?

  public init() {}
}

/// How many stores may fail, be refused or need a mapping model before a run stops.
public enum FailureBudget: Sendable, Equatable {
  case count(Int)
  /// Of the stores of the run or, with canary waves, of each wave; from 0 to 100.
  case percent(Double)

  /// Nil for anything but `5%`, `2.5%` or `10`.
  public init?(_ text: String) {
    guard text.hasSuffix("%") else {
      guard let count = Int(text), count >= 0, text.utf8.allSatisfy(isDigit) else { return nil }
      self = .count(count)
      return
    }
    guard let percent = Percent(text) else { return nil }
    self = .percent(percent.value)
  }

  /// The most failures among so many stores that do not break the budget.
  public func allowedFailures(among stores: Int) -> Int {
    switch self {
    case .count(let count): count
    case .percent(let percent): Int((Double(stores) * percent / 100).rounded(.down))
    }
  }
}

/// A share, from 0 to 100: `5%`, `0.5%`.
struct Percent: Sendable, Equatable {
  var value: Double

  init?(_ text: String) {
    let digits = text.dropLast()
    guard text.hasSuffix("%"), let first = digits.utf8.first, isDigit(first),
      digits.utf8.allSatisfy({ isDigit($0) || $0 == UInt8(ascii: ".") }),
      let value = Double(digits), value <= 100
    else { return nil }
    self.value = value
  }
}

/// A length of time as people write it: `90s`, `30m`, `1h30m`, `14d`.
public struct TimeSpan: Sendable, Equatable {
  public var seconds: Double

  private static let units: [Character: Double] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]

  /// Nil for anything but whole numbers, each with its unit; and for nothing at all.
  public init?(_ text: String) {
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
    guard digits.isEmpty, seconds > 0 else { return nil }
    self.seconds = seconds
  }
}

/// A part of every day, in local time: from a minute, inclusive, to another, exclusive. One that ends
/// before it begins goes over midnight.
public struct DailyWindow: Sendable, Equatable {
  /// Minutes since midnight.
  public var start: Int
  public var end: Int

  /// Nil for anything but two different times such as `01:00-05:00`.
  public init?(_ text: String) {
    let times = text.split(separator: "-", omittingEmptySubsequences: false).map(Self.minutes)
    guard times.count == 2, let start = times[0], let end = times[1], start != end else {
      return nil
    }
    (self.start, self.end) = (start, end)
  }

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
  public func contains(minutes: Int) -> Bool {
    start < end ? start <= minutes && minutes < end : start <= minutes || minutes < end
  }

  /// - Parameter time: Seconds since 1970-01-01 UTC.
  public func contains(time: Double) -> Bool {
    var seconds = time_t(time)
    var parts = tm()
    localtime_r(&seconds, &parts)
    return contains(minutes: Int(parts.tm_hour) * 60 + Int(parts.tm_min))
  }
}

extension DailyWindow: CustomStringConvertible {
  public var description: String { "\(Self.text(start))-\(Self.text(end))" }

  private static func text(_ minutes: Int) -> String {
    [minutes / 60, minutes % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
  }
}

private func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }
