/// Why bytes cannot be read as a property list or as a keyed archive.
package enum ArchiveError: Error, Sendable, Equatable {
  /// Neither a binary nor an XML property list.
  case notAPropertyList
  /// The bytes begin as a property list and break its rules at `offset`.
  case malformed(offset: Int, reason: String)
  /// A bound of ``PropertyList/Limits`` was passed. Files of Core Data stay far below them.
  case tooLarge(what: String, limit: Int)
  /// Containers are nested deeper than ``PropertyList/Limits/depth``, below the key of the outermost dictionary; nil
  /// where there is none.
  case tooDeep(key: String?, limit: Int)
  /// A container holds itself.
  case circular
  /// A property list, but not of the shape that `NSKeyedArchiver` writes.
  case notAKeyedArchive(reason: String)
  /// The XML text is not well formed.
  case malformedXML(line: Int, reason: String)
}

extension ArchiveError: CustomStringConvertible {
  /// What is wrong, without the file and without advice: for errors that name both.
  package var reason: String {
    switch self {
    case .notAPropertyList: "it is neither a binary nor an XML property list"
    case .malformed(let offset, let reason): "it is damaged at byte \(offset): \(reason)"
    case .tooLarge(let what, let limit): "it has more than \(limit) \(what)"
    case .tooDeep(let key, let limit):
      (key.map { "the value of \($0.debugDescription)" } ?? "a value")
        + " is nested too deeply: it has more than \(limit) levels"
    case .circular: "a container holds itself"
    case .notAKeyedArchive(let reason): "it is not a keyed archive: \(reason)"
    case .malformedXML(let line, let reason):
      "the XML is not well formed at line \(line): \(reason)"
    }
  }

  package var description: String {
    "The property list cannot be read: \(reason). "
      + "Check that the right file is given, or take another copy of it."
  }
}
