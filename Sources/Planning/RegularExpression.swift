import Foundation

/// ICU's regular expressions, as the model editor's patterns are.
package enum RegularExpression {
  /// 2 000 reports of progress, about a third of a second: Foundation itself gives up after some 4 000, and
  /// says then that nothing matches.
  private static let progressLimit = 2_000

  /// A test whether a pattern matches a whole text, as far as that can be told; nil for a pattern that is
  /// none.
  package static func matcher(_ pattern: String) -> ((String) -> Bool)? {
    guard let expression = try? NSRegularExpression(pattern: "^(?:\(pattern))\\z") else {
      return nil
    }
    return { text in
      let all = NSRange(location: 0, length: text.utf16.count)
      var (isMatch, progress, isGivenUp) = (false, 0, false)
      let options: NSRegularExpression.MatchingOptions = [
        .anchored, .reportProgress, .reportCompletion,
      ]
      expression.enumerateMatches(in: text, options: options, range: all) { result, flags, stop in
        // Of a long text or a pattern that goes back and forth, ICU's stack and patience have an end.
        if flags.contains(.internalError) { isGivenUp = true }
        if result != nil {
          isMatch = true
          stop.pointee = true
        } else if flags.contains(.progress) {
          progress += 1
          if progress > progressLimit { (isGivenUp, stop.pointee) = (true, true) }
        }
      }
      // What nobody can tell is not taken for a broken rule: the row would be refused or set aside.
      return isMatch || isGivenUp
    }
  }
}
