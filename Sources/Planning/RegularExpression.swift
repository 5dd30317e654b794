import Foundation

/// ICU's regular expressions, as the model editor's patterns are.
package enum RegularExpression {
  /// A test whether a pattern matches a whole text; nil for a pattern that is none.
  package static func matcher(_ pattern: String) -> ((String) -> Bool)? {
    guard let expression = try? NSRegularExpression(pattern: "^(?:\(pattern))\\z") else {
      return nil
    }
    return { text in
      let all = NSRange(location: 0, length: text.utf16.count)
      return expression.firstMatch(in: text, options: .anchored, range: all) != nil
    }
  }
}
