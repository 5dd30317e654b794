import GodwitDigests

/// A text about everything but the store that its destination depends on, such as `WHOLE-MODELS`: SHA-256 in
/// hexadecimal over all of it, and over the models and mapping models alone.
///
/// Earlier versions wrote the first part alone. What it is made of stays as it is: files of theirs count.
enum SettingsDigest {
  static func text(whole: [UInt8], models: [UInt8]) -> String {
    [whole, models].map { Hexadecimal.text(of: SHA256.digest(of: $0)) }.joined(separator: "-")
  }

  /// What is the same in the texts of all versions.
  static func whole(_ text: String) -> Substring { text.prefix { $0 != "-" } }

  static func areSame(_ some: String, _ others: String) -> Bool { whole(some) == whole(others) }

  /// Whether an earlier version wrote a text.
  static func isOfEarlierVersion(_ text: String) -> Bool { !text.isEmpty && !text.contains("-") }

  /// Whether the models and the mapping models are the same, however they are used. A text of an earlier version says
  /// so only where everything is the same.
  static func areOfSameModels(_ some: String, _ others: String) -> Bool {
    func models(_ text: String) -> Substring { text.dropFirst(whole(text).count) }
    return areSame(some, others) || (!models(some).isEmpty && models(some) == models(others))
  }
}
