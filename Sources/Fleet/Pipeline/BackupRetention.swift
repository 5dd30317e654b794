import GodwitMapping

/// How long backups are kept: the key `backups` of a pipeline's file.
package struct BackupRetention: Sendable, Equatable {
  /// Backups that are older may go; nil for no limit.
  package var keepSeconds: Double?
  /// The oldest go while all of them together have more; nil for no limit.
  package var maxBytes: Int64?

  package init(keepSeconds: Double? = nil, maxBytes: Int64? = nil) {
    self.keepSeconds = keepSeconds
    self.maxBytes = maxBytes
  }

  /// False where every backup is kept for ever.
  package var isLimited: Bool { keepSeconds != nil || maxBytes != nil }

  enum Key: String, CaseIterable { case keep, max }

  init(_ value: YAMLValue) throws {
    let fields = try value.fields(Key.self, of: "backups")
    guard !fields.isEmpty else { throw value.problem("backups needs the key keep, or max") }
    if let keep = fields[.keep] {
      keepSeconds = try TimeSpan.seconds(keep, such: "14d or 36h", unit: "d", mayBeNone: true)
    }
    if let max = fields[.max] {
      guard let size = ByteSize(try max.text()) else {
        throw max.problem("the size of backups is a number such as 200GiB")
      }
      maxBytes = size.bytes
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
