import Foundation

extension Error {
  /// What an error says of itself: the description, reason and suggestion that are meant for people,
  /// where it has them, else its own text. Nothing is made up: Foundation would say "The operation
  /// could not be completed" of any other. Of a long one that is the beginning. What else stands in
  /// `userInfo` may be a row's values, and is never told.
  package var ownDescription: String {
    let text = wholeDescription
    let rest = text.utf8.count - longestDescription
    guard rest > 0 else { return text }
    return String(decoding: text.utf8.prefix(longestDescription), as: UTF8.self)
      + "… (\(rest) bytes more)"
  }

  private var wholeDescription: String {
    if let localized = self as? any LocalizedError, let text = localized.errorDescription {
      return [text, localized.failureReason, localized.recoverySuggestion].compactMap(\.self)
        .joined(separator: " ")
    }
    let isObject = type(of: self) is NSError.Type
    guard isObject || self is any CustomNSError else { return String(describing: self) }
    let error = self as NSError
    let texts = [
      NSLocalizedDescriptionKey, NSLocalizedFailureReasonErrorKey,
      NSLocalizedRecoverySuggestionErrorKey,
    ].compactMap { error.userInfo[$0] as? String }
    if !texts.isEmpty { return texts.joined(separator: " ") }
    // The own text of a struct of Foundation's, such as `CocoaError`, shows all of `userInfo`.
    let isOpen =
      !error.userInfo.isEmpty && String(reflecting: type(of: self)).hasPrefix("Foundation")
    return isObject || isOpen ? "\(error.domain) \(error.code)" : String(describing: self)
  }
}

/// 16 KiB, in bytes: a description goes from process to process, and into logs, results and the ledger.
private let longestDescription = 16 << 10
