/// Dates as the XML form of property lists spells them: `2001-02-03T04:05:06Z`, always UTC.
///
/// The calendar is the Gregorian one for all years, those before 1582 too. A year has as many digits as
/// it needs, at least four, and a sign before that of the year 0.
///
/// Source: Core Foundation's open-source `CFPropertyList.c`, which `PropertyListSerialization` reads and
/// writes with. `Date.ISO8601FormatStyle` has the Julian calendar before 1582-10-15.
enum PropertyListDate {
  /// Beyond this, a double does not hold every second: 285 million years.
  private static let limit = 0x1p53

  /// Nil for what is no date, or one that the calendar does not have.
  static func seconds(_ text: String) -> Double? {
    let bytes = Array(text.utf8)
    let pattern = Array("-00-00T00:00:00Z".utf8)
    guard let start = bytes.count >= pattern.count ? bytes.count - pattern.count : nil,
      zip(bytes[start...], pattern).allSatisfy({ byte, expected in
        expected == UInt8(ascii: "0") ? isDigit(byte) : byte == expected
      })
    else { return nil }
    let isNegative = bytes.first == UInt8(ascii: "-")
    let digits = bytes[..<start].dropFirst(isNegative ? 1 : 0)
    guard (1...9).contains(digits.count), digits.allSatisfy(isDigit) else { return nil }
    func field(_ place: Int) -> Int { number(bytes[(start + place)..<(start + place + 2)]) }
    let year = isNegative ? -number(digits) : number(digits)
    let (month, day) = (field(1), field(4))
    let (hour, minute, second) = (field(7), field(10), field(13))
    guard (1...12).contains(month), day >= 1, hour < 24, minute < 60, second <= 60 else {
      return nil
    }
    let first = days(year, month)
    guard day <= (month == 12 ? 31 : days(year, month + 1) - first) else { return nil }
    let whole = (first + day - 1) * 86_400 + hour * 3_600 + minute * 60 + second
    return abs(Double(whole)) < limit ? Double(whole) : nil
  }

  /// Without what is less than a second. Nil where it would not be read again.
  static func text(_ seconds: Double) -> String? {
    guard abs(seconds) < limit else { return nil }
    let whole = Int(seconds.rounded(.down))
    let (days, second) = (floor(whole, 86_400), whole - floor(whole, 86_400) * 86_400)
    // A year near to the right one, and from there on by years and months.
    var year = 2001 + floor(days * 400, 146_097)
    while Self.days(year, 1) > days { year -= 1 }
    while Self.days(year + 1, 1) <= days { year += 1 }
    var month = 12
    while Self.days(year, month) > days { month -= 1 }
    func padded(_ number: Int, _ width: Int = 2) -> String {
      let digits = String(number)
      return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
    let day = padded(month) + "-" + padded(days - Self.days(year, month) + 1)
    let time = [second / 3_600, second / 60 % 60, second % 60].map { padded($0) }
    let shownYear = year < 0 ? "-" + padded(-year, 3) : padded(year, 4)
    return "\(shownYear)-\(day)T\(time.joined(separator: ":"))Z"
  }

  /// Days from 2001-01-01 to the first day of a month.
  private static func days(_ year: Int, _ month: Int) -> Int {
    // Years counted from March, so that the leap day is the last.
    let shifted = month > 2 ? year : year - 1
    let monthFromMarch = (month + 9) % 12
    return 365 * shifted + floor(shifted, 4) - floor(shifted, 100) + floor(shifted, 400)
      + (153 * monthFromMarch + 2) / 5 - 730_791
  }

  /// The quotient, rounded down.
  private static func floor(_ number: Int, _ divisor: Int) -> Int {
    let (quotient, rest) = number.quotientAndRemainder(dividingBy: divisor)
    return rest < 0 ? quotient - 1 : quotient
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }

  private static func number(_ digits: ArraySlice<UInt8>) -> Int {
    digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
  }
}
