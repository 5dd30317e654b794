import Foundation

/// Numbers as people read them. A narrow no-break space stands between groups, and before a unit.
enum Figures {
  static let space = "\u{202F}"

  static func count(_ number: Int64) -> String {
    var text = ""
    let digits = String(number.magnitude)
    for (place, digit) in digits.enumerated() {
      if place > 0, (digits.count - place).isMultiple(of: 3) { text += space }
      text.append(digit)
    }
    return (number < 0 ? "−" : "") + text
  }

  static func count(_ number: Int) -> String { count(Int64(number)) }

  /// `1 store`, `2 000 stores`.
  static func stores(_ number: Int) -> String {
    "\(count(number)) \(number == 1 ? "store" : "stores")"
  }

  static func bytes(_ number: Int64) -> String {
    var (value, unit) = (Double(number), 0)
    let units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024, unit < units.count - 1 {
      value /= 1024
      unit += 1
    }
    let digits = unit > 0 && value < 100 ? 1 : 0
    return String(format: "%.\(digits)f", value) + space + units[unit]
  }

  static func seconds(_ number: Double) -> String {
    let seconds = number.isFinite ? min(max(number, 0), 1e11) : 0
    return switch seconds {
    case ..<1: "\(Int((seconds * 1000).rounded()))\(space)ms"
    case ..<120: String(format: "%.1f", seconds) + "\(space)s"
    case ..<7200: "\(Int(seconds / 60))\(space)min \(Int(seconds) % 60)\(space)s"
    default: "\(count(Int64(seconds / 3600)))\(space)h \(Int(seconds / 60) % 60)\(space)min"
    }
  }

  static func share(_ part: Double, of whole: Double) -> String {
    whole > 0 ? String(format: "%.0f", 100 * part / whole) + "\(space)%" : ""
  }

  /// `2026-11-22 05:03 UTC`.
  static func date(_ secondsSince1970: Double) -> String {
    let style = Date.ISO8601FormatStyle(dateTimeSeparator: .space)
      .year().month().day().time(includingFractionalSeconds: false)
    return Date(timeIntervalSince1970: secondsSince1970).formatted(style).prefix(16) + " UTC"
  }
}
