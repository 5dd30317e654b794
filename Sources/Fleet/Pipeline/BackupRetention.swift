import GodwitMapping

/// How long backups are kept: the key `backups` of a pipeline's file.
public struct BackupRetention: Sendable, Equatable {
  /// Backups that are older may go; nil for no limit.
  public var keepSeconds: Double?
  /// The oldest go while all of them together have more; nil for no limit.
  public var maxBytes: Int64?

  public init(keepSeconds: Double? = nil, maxBytes: Int64? = nil) {
    self.keepSeconds = keepSeconds
    self.maxBytes = maxBytes
  }

  /// False where every backup is kept for ever.
  public var isLimited: Bool { keepSeconds != nil || maxBytes != nil }

  enum Key: String, CaseIterable { case keep, max }

  init(_ value: YAMLValue) throws {
    let fields = try value.fields(Key.self, of: "backups")
    guard !fields.isEmpty else { throw value.problem("backups needs the key keep, or max") }
    if let keep = fields[.keep] {
      guard let age = Age(try keep.text()) else {
        throw keep.problem("the age of backups is a number of days or hours, such as 14d or 36h")
      }
      keepSeconds = age.seconds
    }
    if let max = fields[.max] {
      guard let size = ByteSize(try max.text()) else {
        throw max.problem("the size of backups is a number such as 200GiB")
      }
      maxBytes = size.bytes
    }
  }
}

/// A length of time as people write it: `14d`, `36h`, `90m`, `30s`.
public struct Age: Sendable, Equatable {
  public var seconds: Double

  /// Nil for anything but a whole number of at most nine digits with one unit.
  public init?(_ text: String) {
    let units: [Character: Double] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800]
    guard let unit = text.last.flatMap({ units[$0] }) else { return nil }
    let digits = text.dropLast()
    guard (1...9).contains(digits.utf8.count),
      digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Double(String(digits))
    else { return nil }
    seconds = number * unit
  }

  /// For people: the largest unit that fits.
  public static func text(_ seconds: Double) -> String {
    let whole = Int64(max(0, seconds.isFinite ? seconds : 0))
    switch whole {
    case ..<120: return "\(whole) s"
    case ..<7_200: return "\(whole / 60) min"
    case ..<172_800: return "\(whole / 3_600) h"
    default: return "\(whole / 86_400) d"
    }
  }
}

extension Pipeline {
  enum QuarantineKey: String, CaseIterable { case after }

  static func quarantineAfter(_ value: YAMLValue) throws -> Int {
    guard let after = try value.fields(QuarantineKey.self, of: "quarantine")[.after] else {
      throw value.problem("quarantine needs the key after")
    }
    guard let count = Int(try after.text()), (0...1_000).contains(count) else {
      throw after.problem("after is a number of failures from 1 to 1000, or 0 for never")
    }
    return count
  }
}
