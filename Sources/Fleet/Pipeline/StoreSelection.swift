import Foundation
import GodwitDigests
import GodwitDurableFiles
import SystemPackage

/// Which of a pipeline's stores a run is to take up: those that a pattern or a list of paths means.
package struct StoreSelection: Sendable {
  /// Nil for all of them.
  private var patterns: [Pattern]?
  /// Whole paths without a link among their folders; nil for all of them.
  private var paths: Set<FilePath>?

  fileprivate struct Pattern: Sendable {
    var pattern: PathPattern
    /// Of a whole path, not of one below a root.
    var isWhole: Bool
  }

  /// Every store.
  package static var all: StoreSelection { StoreSelection(patterns: nil, paths: nil) }

  private init(patterns: [Pattern]?, paths: Set<FilePath>?) {
    (self.patterns, self.paths) = (patterns, paths)
  }

  /// Stores that a pattern means and that are on the list, where there are patterns and a list.
  ///
  /// - Parameters:
  ///   - patterns: As in `stores.include`, of a path below a root or of a whole path.
  ///   - paths: Whole, or from where the process stands; nil for no list.
  /// - Throws: ``SelectionError``.
  package init(patterns: [String], paths: [String]?) throws {
    let found = try patterns.map { text in
      let whole = text.after("/").map(Self.resolvingFolders(ofPattern:))
      guard let pattern = PathPattern(whole ?? text) else {
        throw SelectionError.badPattern(text)
      }
      return Pattern(pattern: pattern, isWhole: whole != nil)
    }
    self.init(
      patterns: found.isEmpty ? nil : found, paths: paths.map { Set($0.map(Self.whole)) })
  }

  /// Of a whole path, without its first `/`: what comes before a wildcard has no link among its folders.
  private static func resolvingFolders(ofPattern text: String) -> String {
    let names = text.parts(between: "/")
    let count = names.dropLast().prefix { name in !name.utf8.contains { "*?".utf8.contains($0) } }
      .count
    let folder = FilePath("/" + names[..<count].joined(separator: "/")).resolved
    guard count > 0, let start = folder?.string.after("/"), !start.isEmpty else { return text }
    return ([start] + names[count...]).joined(separator: "/")
  }

  private static func whole(_ path: String) -> FilePath {
    let path = FilePath(path)
    let whole =
      path.isAbsolute
      ? path : FilePath(FileManager.default.currentDirectoryPath).pushing(path)
    return whole.lexicallyNormalized().resolvingFolders
  }

  var isAll: Bool { patterns == nil && paths == nil }

  /// The same for the same selection; SHA-256 in hexadecimal.
  var digest: String {
    let words = (patterns ?? []).map(\.text) + ["\n"] + (paths ?? []).map(\.string).sorted()
    return Hexadecimal.text(
      of: SHA256.digest(of: Array(words.joined(separator: "\0").utf8)))
  }

  /// The stores that are meant, in their order, and what was asked for and is none of them: paths of the
  /// list, and patterns.
  ///
  /// - Parameter roots: Resolved.
  /// - Throws: ``SelectionError/outside(paths:)``.
  func chosen(
    from stores: [FoundStore], roots: [FilePath]
  ) throws -> (stores: [FoundStore], unknown: [String], unmatched: [String]) {
    if let paths {
      let outside = paths.filter { path in !roots.contains { path.starts(with: $0) } }
      guard outside.isEmpty else {
        throw SelectionError.outside(paths: outside.map(\.string).sorted())
      }
    }
    let known = Set(stores.map(\.path))
    let unknown = (paths ?? []).filter { !known.contains($0) }.map(\.string).sorted()
    let chosen = stores.filter { means($0.path, roots: roots) }
    // A store that the list leaves out is one of the pipeline's all the same.
    let unmatched = (patterns ?? []).filter { pattern in
      !stores.contains { pattern.means($0.path, roots: roots) }
    }
    return (chosen, unknown, unmatched.map(\.text))
  }

  /// Whether a store is meant, be it there or not.
  ///
  /// - Parameter roots: Resolved.
  func means(_ store: FilePath, roots: [FilePath]) -> Bool {
    guard paths?.contains(store) ?? true else { return false }
    return patterns?.contains { $0.means(store, roots: roots) } ?? true
  }
}

extension StoreSelection.Pattern {
  /// As it was given.
  fileprivate var text: String { (isWhole ? "/" : "") + pattern.text }

  /// Whether it means a store, which may lie below several roots.
  fileprivate func means(_ store: FilePath, roots: [FilePath]) -> Bool {
    if isWhole { return pattern.matches(store.string, meetsHidden: true) }
    return roots.contains { root in
      var below = store
      return below.removePrefix(root) && pattern.matches(below.string, meetsHidden: true)
    }
  }
}

extension StoreSelection {
  /// The paths of a list: one a line, or parted by zero bytes. Empty ones are left out, and so is the byte order
  /// mark that editors of other systems put before a text.
  package static func paths(in bytes: [UInt8], partedByZero: Bool) throws -> [String] {
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    let list = bytes[(bytes.starts(with: mark) ? mark.count : 0)...]
    return try list.split(separator: partedByZero ? 0 : UInt8(ascii: "\n")).compactMap { line in
      var line = line
      if !partedByZero, line.last == UInt8(ascii: "\r") { line.removeLast() }
      if line.isEmpty { return nil }
      guard let text = String(validating: line, as: UTF8.self), !line.contains(0) else {
        throw SelectionError.notText
      }
      return text
    }
  }
}

/// Why the stores that were asked for are not taken up. No store was opened.
package enum SelectionError: Error, Sendable, Equatable {
  case badPattern(String)
  /// Paths that lie in none of the pipeline's roots.
  case outside(paths: [String])
  /// The list holds bytes that are no text.
  case notText
}

extension SelectionError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .badPattern(let text):
      "\(text.isEmpty ? "An empty text" : text) is not a pattern. Give a path below a root, such as "
        + "*/Recipes.sqlite, or a whole path."
    case .outside(let paths):
      "\(paths[0])\(paths.count > 1 ? " and \(paths.count - 1) more" : "") "
        + "\(paths.count > 1 ? "lie" : "lies") outside of the pipeline's roots. Nothing was opened. "
        + "Remove the \(paths.count > 1 ? "paths" : "path") from the list, or add the root to the "
        + "pipeline."
    case .notText:
      "The list of stores holds bytes that are not UTF-8, or zero bytes. Give one path a line; with "
        + "--null, part them by zero bytes."
    }
  }
}
