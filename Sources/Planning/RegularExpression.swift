import Foundation
import GodwitExpressions

/// ICU's regular expressions, as the model editor's patterns are.
package enum RegularExpression {
  /// 2 000 reports of progress, about a third of a second: Foundation itself gives up after some 4 000, and
  /// says then that nothing matches.
  private static let progressLimit = 2_000

  /// A table of such texts would take days: after so many of them, a pattern has only ``shortLimit``. Texts
  /// that are judged at once still are, wherever they stand.
  private static let mostGivenUp = 5
  private static let shortLimit = 4

  /// A test whether a pattern matches a whole text, which gives nil where that takes too long to tell; nil for
  /// a pattern that is none.
  package static func matcher(_ pattern: String) -> ((String) -> Bool?)? {
    guard let expression = NSRegularExpression.whole(pattern) else { return nil }
    var givenUp = 0
    return { text in
      let limit = givenUp < mostGivenUp ? progressLimit : shortLimit
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
          if progress > limit { (isGivenUp, stop.pointee) = (true, true) }
        }
      }
      guard isGivenUp, !isMatch else { return isMatch }
      givenUp += 1
      return nil
    }
  }
}
