import Foundation
import GodwitDurableFiles

/// Which paths below a root are meant: `*/Recipes.sqlite`, `**/trash/**`.
///
/// `*` stands for any characters of one name, `?` for one, `**` as a whole name for any number of
/// folders. Every other character stands for itself, however its accents are written. Names that begin with
/// a dot are meant only where the pattern says the dot, as in the shell.
package struct PathPattern: Sendable, Equatable {
  private enum Part: Sendable, Equatable {
    case name([Unicode.Scalar])
    case folders
  }

  /// As it is written.
  package let text: String
  private let parts: [Part]

  /// Nil for a pattern that could not mean anything below a root: an empty one, a whole path, one
  /// with empty names, `.` or `..`.
  package init?(_ text: String) {
    let names = text.parts(between: "/")
    guard !text.utf8.contains(0), names.allSatisfy({ !$0.isEmpty && $0 != "." && $0 != ".." })
    else { return nil }
    self.text = text
    var parts: [Part] = names.map { $0 == "**" ? .folders : .name(Self.signs(of: $0)) }
    // What is in a folder, not the folder itself.
    if parts.last == .folders { parts.append(.name(["*"])) }
    self.parts = parts
  }
}

extension PathPattern {
  /// What to tell somebody whose patterns mean nothing and have brackets or braces; else nothing.
  package static func literalNote(_ patterns: [String]) -> String? {
    guard patterns.contains(where: { $0.utf8.contains { "[]{}".utf8.contains($0) } }) else {
      return nil
    }
    return "Brackets and braces stand for themselves in patterns."
  }

  /// How far a path has come in the pattern, name by name; in several places at once.
  ///
  /// A folder whose cursor ``isOver`` needs no look.
  package struct Cursor: Sendable {
    private let pattern: PathPattern
    private var places: Set<Int>

    fileprivate init(_ pattern: PathPattern) {
      self.pattern = pattern
      places = pattern.skippingFolders([0])
    }

    /// The pattern, as it is written.
    package var text: String { pattern.text }

    /// Nothing below can match.
    package var isOver: Bool { places.isEmpty }

    /// The names so far are a path that the pattern means.
    package var isMatch: Bool { places.contains(pattern.parts.count) }

    /// Likewise, and the pattern says the last name itself, without wildcards.
    package var isNamedOutright: Bool {
      guard isMatch, case .name(let name)? = pattern.parts.last else { return false }
      return !name.contains { $0 == "*" || $0 == "?" }
    }

    /// The cursor in the folder of that name, or at the file.
    ///
    /// - Parameter meetsHidden: Wildcards stand for names with a dot before them, too.
    package func advanced(by name: String, meetsHidden: Bool = false) -> Cursor {
      var copy = self
      copy.places = pattern.places(after: places, name, meetsHidden)
      return copy
    }
  }

  /// The cursor at the root.
  package var start: Cursor { Cursor(self) }

  /// Whether a path, relative to the root, is meant.
  package func matches(_ path: String, meetsHidden: Bool = false) -> Bool {
    path.parts(between: "/").reduce(start) {
      $1.isEmpty ? $0 : $0.advanced(by: $1, meetsHidden: meetsHidden)
    }.isMatch
  }

  private func places(after places: Set<Int>, _ name: String, _ meetsHidden: Bool) -> Set<Int> {
    let signs = Self.signs(of: name)
    let isHidden = signs.first == "." && !meetsHidden
    var next: Set<Int> = []
    for place in places where place < parts.count {
      switch parts[place] {
      case .folders:
        if !isHidden { next.insert(place) }
      case .name(let pattern):
        if isHidden, pattern.first != "." { continue }
        if Self.matches(signs, pattern) { next.insert(place + 1) }
      }
    }
    return skippingFolders(next)
  }

  /// Scalars, since Swift takes some letters and the dot after them for one Character; in the normal form, since
  /// a Mac writes accents apart.
  private static func signs(of name: String) -> [Unicode.Scalar] {
    let isASCII = name.utf8.allSatisfy { $0 < 0x80 }
    return Array((isASCII ? name : name.precomposedStringWithCanonicalMapping).unicodeScalars)
  }

  /// `**` may stand for no folder at all.
  private func skippingFolders(_ places: Set<Int>) -> Set<Int> {
    var result = places
    for start in places {
      var place = start
      while place < parts.count, parts[place] == .folders {
        place += 1
        result.insert(place)
      }
    }
    return result
  }

  /// One name. The last star is taken back when what follows it does not fit: no recursion, and at
  /// most name times pattern steps.
  private static func matches(_ name: [Unicode.Scalar], _ pattern: [Unicode.Scalar]) -> Bool {
    var (at, place) = (0, 0)
    var star: (at: Int, place: Int)?
    while at < name.count {
      if place < pattern.count, pattern[place] == "*" {
        star = (at, place)
        place += 1
      } else if place < pattern.count, pattern[place] == "?" || pattern[place] == name[at] {
        at += 1
        place += 1
      } else if let last = star {
        star = (last.at + 1, last.place)
        at = last.at + 1
        place = last.place + 1
      } else {
        return false
      }
    }
    return pattern[place...].allSatisfy { $0 == "*" }
  }
}
