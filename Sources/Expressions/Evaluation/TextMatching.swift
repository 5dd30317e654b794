import Foundation

/// Compares texts with the options `[cd]`, `LIKE` and `MATCHES`. Patterns are compiled once.
///
/// Source: `core-data-migration.md` §4.5.
package final class TextMatching {
  /// 64. Patterns come from a mapping model's text; only a made-up one draws them from rows.
  private static let patternLimit = 64
  /// 2 000 reports of progress, which are counted in steps and not in time: about a third of a
  /// second. Foundation itself gives up after some 4 000 and then says "no match", which is not
  /// true.
  private static let progressLimit = 2_000
  /// 2^26 characters compared for `LIKE`: about a second.
  private static let comparisonLimit = 1 << 26
  private var patterns: [Pattern: NSRegularExpression] = [:]

  private struct Pattern: Hashable {
    var text: [UInt8]
    var ignoresCase: Bool
  }

  package init() {}

  /// Whether a text can be a pattern of `MATCHES`.
  package func isPattern(_ text: String, _ options: Comparison.Options) -> Bool {
    (try? matches("", text, options)) != nil
  }

  /// The text without what the options leave out.
  func folded(_ text: String, _ options: Comparison.Options) -> String {
    let folds = options.intersection([.caseInsensitive, .diacriticInsensitive])
    if folds.isEmpty || options.contains(.normalized) { return text }
    if text.utf8.allSatisfy({ $0 < 0x80 }) {
      // ASCII has no diacritics.
      return folds.contains(.caseInsensitive) ? text.lowercased() : text
    }
    var foundation: String.CompareOptions = []
    if folds.contains(.caseInsensitive) { foundation.insert(.caseInsensitive) }
    if folds.contains(.diacriticInsensitive) { foundation.insert(.diacriticInsensitive) }
    return text.folding(options: foundation, locale: nil)
  }

  /// `*` stands for any characters, `?` for one, and a backslash takes their meaning away.
  func isLike(
    _ text: String, _ pattern: String, _ options: Comparison.Options
  ) throws(EvaluationProblem) -> Bool {
    let text = Array(folded(text, options).unicodeScalars)
    let pattern = Self.wildcards(folded(pattern, options))
    // Back to the last star only: no more than text × pattern steps.
    var (t, p) = (0, 0)
    var star: (pattern: Int, text: Int)?
    var comparisons = 0
    while t < text.count {
      comparisons += 1
      guard comparisons <= Self.comparisonLimit else {
        throw .tooLarge(what: "characters compared by LIKE", limit: Self.comparisonLimit)
      }
      if p < pattern.count, pattern[p] == .any {
        star = (p, t)
        p += 1
      } else if p < pattern.count, pattern[p] == .one || pattern[p] == .scalar(text[t]) {
        t += 1
        p += 1
      } else if let last = star {
        star = (last.pattern, last.text + 1)
        p = last.pattern + 1
        t = last.text + 1
      } else {
        return false
      }
    }
    return pattern[p...].allSatisfy { $0 == .any }
  }

  private enum Wildcard: Equatable {
    case any, one
    case scalar(Unicode.Scalar)
  }

  private static func wildcards(_ pattern: String) -> [Wildcard] {
    var result: [Wildcard] = []
    var isEscaped = false
    for scalar in pattern.unicodeScalars {
      if isEscaped {
        result.append(.scalar(scalar))
        isEscaped = false
      } else if scalar == "\\" {
        isEscaped = true
      } else {
        result.append(scalar == "*" ? .any : scalar == "?" ? .one : .scalar(scalar))
      }
    }
    if isEscaped { result.append(.scalar("\\")) }
    return result
  }

  /// ICU's regular expressions; the whole text must match.
  func matches(
    _ text: String, _ pattern: String, _ options: Comparison.Options
  ) throws(EvaluationProblem) -> Bool {
    let diacritics = options.intersection(.diacriticInsensitive)
    let expression = try regularExpression(
      folded(pattern, diacritics), ignoresCase: options.contains(.caseInsensitive))
    let text = folded(text, diacritics)
    let whole = NSRange(location: 0, length: text.utf16.count)
    var (isMatch, progress, isFailed) = (false, 0, false)
    let options: NSRegularExpression.MatchingOptions = [
      .anchored, .reportProgress, .reportCompletion,
    ]
    expression.enumerateMatches(in: text, options: options, range: whole) { result, flags, stop in
      // ICU's stack is bounded too.
      if flags.contains(.internalError) { isFailed = true }
      if let result {
        isMatch = result.range == whole
        stop.pointee = true
      } else if flags.contains(.progress) {
        progress += 1
        if progress > Self.progressLimit { stop.pointee = true }
      }
    }
    guard progress <= Self.progressLimit, !isFailed else {
      throw .tooLarge(what: "steps of a regular expression", limit: Self.progressLimit)
    }
    return isMatch
  }

  private func regularExpression(
    _ pattern: String, ignoresCase: Bool
  ) throws(EvaluationProblem) -> NSRegularExpression {
    let key = Pattern(text: Array(pattern.utf8), ignoresCase: ignoresCase)
    if let found = patterns[key] { return found }
    let options: NSRegularExpression.Options = ignoresCase ? [.caseInsensitive] : []
    guard let made = NSRegularExpression.whole(pattern, options) else {
      throw .badPattern(what: "regular expression")
    }
    if patterns.count >= Self.patternLimit { patterns.removeAll() }
    patterns[key] = made
    return made
  }
}

extension NSRegularExpression {
  /// One that matches a whole text from its beginning, and not the beginning of one; nil for a pattern that is
  /// none.
  package static func whole(_ pattern: String, _ options: Options = []) -> NSRegularExpression? {
    guard (try? NSRegularExpression(pattern: pattern, options: options)) != nil else { return nil }
    // The group keeps an alternation inside the anchors. A comment, and a quotation, go on to the end.
    return ["", "\n", "\\E"].lazy.compactMap { end in
      try? NSRegularExpression(pattern: "\\A(?:\(pattern)\(end))\\z", options: options)
    }.first
  }
}

/// Dates as texts, in the POSIX locale and UTC.
final class DateTexts {
  /// 1970-01-01 to 2001-01-01, in seconds.
  static let referenceDate = 978_307_200.0
  private var formatters: [String: DateFormatter] = [:]

  /// Unicode date formats such as `yyyy-MM-dd HH:mm`; the text must be all of the date.
  func date(_ text: String, format: String) throws(EvaluationProblem) -> Double {
    guard let found = formatter(format).date(from: text) else {
      throw .notConvertible(to: "a date of this format")
    }
    return found.timeIntervalSinceReferenceDate
  }

  func text(_ seconds: Double, format: String) throws(EvaluationProblem) -> String {
    guard abs(seconds) < Self.farthest else { throw .overflow }
    return formatter(format).string(from: Date(timeIntervalSinceReferenceDate: seconds))
  }

  /// About 30 000 years: calendars go wrong far beyond.
  static let farthest = 1e12

  private func formatter(_ format: String) -> DateFormatter {
    if let found = formatters[format] { return found }
    let made = DateFormatter()
    made.locale = Locale(identifier: "en_US_POSIX")
    made.timeZone = TimeZone(secondsFromGMT: 0)
    made.calendar = Calendar(identifier: .gregorian)
    made.isLenient = false
    made.dateFormat = format
    if formatters.count >= 64 { formatters.removeAll() }
    formatters[format] = made
    return made
  }

  /// 1582-10-15, in days since 1970-01-01: dates before are Julian ones, as a formatter has them.
  private static let firstGregorianDay: Int64 = -141_427

  private static func gregorianDate(ofDay day: Int64) -> (year: Int64, month: Int64, day: Int64) {
    // By eras of 400 years that begin in March.
    let shifted = day + 719_468
    let era = flooredQuotient(shifted, 146_097)
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    return date(year: yearOfEra + era * 400, dayFromMarch: dayOfYear)
  }

  private static func julianDate(ofDay day: Int64) -> (year: Int64, month: Int64, day: Int64) {
    // By four years that begin in March.
    let shifted = day + 719_470
    let era = flooredQuotient(shifted, 1_461)
    let dayOfEra = shifted - era * 1_461
    let yearOfEra = (dayOfEra - dayOfEra / 1_460) / 365
    return date(year: yearOfEra + era * 4, dayFromMarch: dayOfEra - 365 * yearOfEra)
  }

  private static func date(year: Int64, dayFromMarch day: Int64) -> (Int64, Int64, Int64) {
    let month = (5 * day + 2) / 153
    let civilMonth = month < 10 ? month + 3 : month - 9
    return (year + (civilMonth <= 2 ? 1 : 0), civilMonth, day - (153 * month + 2) / 5 + 1)
  }

  private static func flooredQuotient(_ a: Int64, _ b: Int64) -> Int64 {
    a >= 0 ? a / b : (a - b + 1) / b
  }

  /// `2001-01-01 00:00:00 +0000`; nil for dates far outside the calendar.
  static func description(of seconds: Double) -> String? {
    guard abs(seconds) < farthest else { return nil }
    let whole = Int64((seconds + referenceDate).rounded(.down))
    let days = flooredQuotient(whole, 86_400)
    let second = whole - days * 86_400
    let (year, month, dayOfMonth) =
      days < firstGregorianDay ? julianDate(ofDay: days) : gregorianDate(ofDay: days)
    func padded(_ value: Int64, _ width: Int) -> String {
      let digits = String(value.magnitude)
      return (value < 0 ? "-" : "")
        + String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
    }
    let date = [padded(year, 4), padded(month, 2), padded(dayOfMonth, 2)]
    let time = [second / 3_600, second / 60 % 60, second % 60].map { padded($0, 2) }
    return date.joined(separator: "-") + " " + time.joined(separator: ":") + " +0000"
  }
}
