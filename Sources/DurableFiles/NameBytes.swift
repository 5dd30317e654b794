private import Glibc

/// Names, paths and texts of others by their scalars. `hasPrefix`, `hasSuffix`, `split` and `replacing` of Swift
/// take several for one Character, such as a letter of an Arabic name and the dot after it, a quotation mark and
/// an accent, or the two that end a line; and two spellings of one accent are equal to them.
extension StringProtocol {
  /// Whether the text has these bytes first.
  package func begins(with beginning: String) -> Bool { utf8.starts(with: beginning.utf8) }

  /// Whether the text has these bytes last.
  package func ends(with ending: String) -> Bool {
    utf8.suffix(ending.utf8.count).elementsEqual(ending.utf8)
  }

  /// What follows on these bytes; nil where the text begins otherwise.
  package func after(_ beginning: String) -> String? {
    guard begins(with: beginning) else { return nil }
    return String(decoding: utf8.dropFirst(beginning.utf8.count), as: UTF8.self)
  }

  /// What stands before these bytes; nil where the text ends otherwise.
  package func before(_ ending: String) -> String? {
    guard ends(with: ending) else { return nil }
    return String(decoding: utf8.dropLast(ending.utf8.count), as: UTF8.self)
  }

  /// The parts of the text between the places that have this sign.
  package func parts(between sign: Unicode.Scalar) -> [String] {
    unicodeScalars.split(separator: sign, omittingEmptySubsequences: false).map { part in
      String(String.UnicodeScalarView(part))
    }
  }

  /// The text with another one in all places that have this sign.
  package func replacing(_ sign: Unicode.Scalar, by other: String) -> String {
    replacingSigns { $0 == sign ? other : nil }
  }

  /// The text with another one for each sign that has one; nil leaves a sign as it is.
  package func replacingSigns(by other: (Unicode.Scalar) -> String?) -> String {
    var text = ""
    for scalar in unicodeScalars {
      if let other = other(scalar) { text += other } else { text.unicodeScalars.append(scalar) }
    }
    return text
  }
}

extension String {
  /// Two spellings of one letter are two names.
  package func isSameBytes(as other: String) -> Bool { utf8.elementsEqual(other.utf8) }

  /// Whether the text has these bytes anywhere: a search asks it of every name in a fleet's folders.
  package func holds(_ part: String) -> Bool {
    var (text, part) = (self, part)
    return text.withUTF8 { text in
      part.withUTF8 { part in
        guard let base = text.baseAddress, let wanted = part.baseAddress, part.count <= text.count
        else { return part.isEmpty }
        return (0...(text.count - part.count)).contains { place in
          base[place] == wanted[0] && memcmp(base + place, wanted, part.count) == 0
        }
      }
    }
  }
}
