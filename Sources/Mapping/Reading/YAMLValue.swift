import GodwitExpressions
import Yams

/// What is wrong with a text in YAML, and where.
package struct YAMLProblem: Error, Sendable, Equatable {
  /// Counted from 1; nil where the text as a whole cannot be read.
  package var line: Int?
  /// Part of a sentence, without its full stop.
  package var problem: String
  /// What was probably meant.
  package var suggestion: String?

  /// Makes a problem. Nothing is checked.
  package init(line: Int? = nil, problem: String, suggestion: String? = nil) {
    self.line = line
    self.problem = problem
    self.suggestion = suggestion
  }
}

/// A value of a text in YAML that people write by hand, and the line it stands on.
///
/// Keys and words come from fixed lists; any other is a ``YAMLProblem`` with a suggestion. Scalars
/// are texts as they are written: whether `5`, `yes` or `null` means more is for the reader to say.
package struct YAMLValue {
  private let node: Node

  private init(_ node: Node) { self.node = node }

  /// Reads a whole text.
  ///
  /// - Parameter byteLimit: Bytes that the text may have.
  /// - Throws: ``YAMLProblem``.
  package init(bytes: [UInt8], byteLimit: Int) throws {
    guard bytes.count <= byteLimit else {
      throw YAMLProblem(problem: "it is larger than \(byteLimit) bytes")
    }
    // Editors of other systems begin a file with a byte order mark.
    let bytes = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw YAMLProblem(problem: "it is not UTF-8")
    }
    guard !Self.hasManyAliases(bytes) else {
      throw YAMLProblem(problem: "it uses YAML aliases; write the repeated part out")
    }
    let root: Node?
    do {
      root = try Yams.compose(yaml: text)
    } catch {
      throw YAMLProblem(problem: Self.cut("\(error)"))
    }
    guard let root else { throw YAMLProblem(problem: "it is empty") }
    node = root
  }

  /// The parser repeats the whole line that it stumbled over.
  private static func cut(_ message: String) -> String {
    message.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      line.count > 200 ? line.prefix(200) + "…" : line
    }.joined(separator: "\n")
  }

  /// Aliases of aliases grow without bound; a handful cannot.
  package static func hasManyAliases(_ bytes: [UInt8]) -> Bool {
    var aliases = 0
    var hasAnchor = false
    for (place, byte) in bytes.enumerated().dropLast() {
      guard byte == UInt8(ascii: "*") || byte == UInt8(ascii: "&") else { continue }
      let before = place == 0 ? UInt8(ascii: " ") : bytes[place - 1]
      let after = bytes[place + 1]
      guard before <= 0x20 || "[{,:?-".utf8.contains(before), after > 0x20,
        after != byte, after != UInt8(ascii: "=")
      else { continue }
      if byte == UInt8(ascii: "*") { aliases += 1 } else { hasAnchor = true }
    }
    return hasAnchor && aliases > 16
  }
}

extension YAMLValue {
  /// A text in JSON as one in YAML that says the same.
  ///
  /// Every JSON is YAML but for characters that YAML folds, such as U+0085, or does not take as they are, and for
  /// `*` and `&`, of which many pass for aliases. All of them stand in JSON's texts alone, where both languages know
  /// `\u`, as in any YAML where they are double-quoted.
  package static func text(ofJSON json: String) -> String {
    var text = ""
    for scalar in json.unicodeScalars {
      switch scalar {
      case "*", "&", "\u{7F}"..."\u{9F}", "\u{2028}", "\u{2029}", "\u{FEFF}", "\u{FFFE}",
        "\u{FFFF}":
        let digits = String(scalar.value, radix: 16, uppercase: true)
        text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text
  }
}

extension YAMLValue {
  /// The members of a list; nil for anything else.
  package var list: [YAMLValue]? { node.sequence.map { $0.map(YAMLValue.init) } }

  /// Keys and values in their order; nil for anything else.
  package var pairs: [(key: YAMLValue, value: YAMLValue)]? {
    node.mapping.map { $0.map { (YAMLValue($0.key), YAMLValue($0.value)) } }
  }

  /// Any scalar as it is written, an empty one too; nil for lists and keys with values.
  package var scalar: String? { node.scalar?.string }

  /// A problem of this value.
  package func problem(_ problem: String, _ suggestion: String? = nil) -> YAMLProblem {
    YAMLProblem(line: node.mark?.line ?? 1, problem: problem, suggestion: suggestion)
  }

  /// A scalar as it is written, which must not be empty.
  package func text() throws -> String {
    guard let scalar, !scalar.isEmpty else { throw problem("a text is missing here") }
    return scalar
  }

  /// A word of a fixed list.
  package func word<Word: RawRepresentable & CaseIterable>(
    _ type: Word.Type
  ) throws -> Word where Word.RawValue == String {
    let name = try text()
    guard let word = Word(rawValue: name) else {
      let known = Word.allCases.map(\.rawValue)
      throw problem(
        "\(name) is none of \(known.joined(separator: ", "))",
        Spelling.closest(to: name, among: known))
    }
    return word
  }

  /// Values by their keys, which must be of a fixed list.
  ///
  /// - Parameter what: What has these keys, for messages.
  package func fields<Key: RawRepresentable & Hashable & CaseIterable>(
    _ type: Key.Type, of what: String
  ) throws -> [Key: YAMLValue] where Key.RawValue == String {
    guard let pairs else { throw problem("\(what) is keys with values") }
    var result: [Key: YAMLValue] = [:]
    for (key, value) in pairs {
      let name = try key.text()
      guard let known = Key(rawValue: name) else {
        throw key.problem(
          "\(what) has no key \(name)",
          Spelling.closest(to: name, among: Key.allCases.map(\.rawValue)))
      }
      result[known] = value
    }
    return result
  }
}
