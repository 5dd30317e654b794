/// Why bytes cannot be read as a property list or as a keyed archive.
public enum ArchiveError: Error, Sendable, Equatable {
  /// Neither a binary nor an XML property list.
  case notAPropertyList
  /// The bytes begin as a property list and break its rules at `offset`.
  case malformed(offset: Int, reason: String)
  /// A bound of ``PropertyList/Limits`` was passed. Files of Core Data stay far below them.
  case tooLarge(what: String, limit: Int)
  /// A container holds itself.
  case circular
  /// A property list, but not of the shape that `NSKeyedArchiver` writes.
  case notAKeyedArchive(reason: String)
  /// The XML text is not well formed.
  case malformedXML(line: Int, reason: String)
}

extension ArchiveError: CustomStringConvertible {
  public var description: String {
    switch self {
    case .notAPropertyList:
      "The bytes are neither a binary nor an XML property list. Check that the right file is given."
    case .malformed(let offset, let reason):
      "The property list is damaged at byte \(offset): \(reason). Take the file from another copy."
    case .tooLarge(let what, let limit):
      "The property list has more than \(limit) \(what), so it is refused. Check where it is from."
    case .circular:
      "The property list has a container that holds itself, so it is refused."
    case .notAKeyedArchive(let reason):
      "The property list is no keyed archive: \(reason). Check that the right file is given."
    case .malformedXML(let line, let reason):
      "The XML is not well formed at line \(line): \(reason). Repair it or take another copy."
    }
  }
}
