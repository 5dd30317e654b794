import GodwitMapping

/// A mapping model as it was given, before the two models have completed it.
package struct MappingFile: Sendable {
  /// As the user named it.
  package var file: String
  package var document: MappingDocument

  package init(file: String, document: MappingDocument) {
    self.file = file
    self.document = document
  }

  /// Reads a mapping model of any form.
  ///
  /// - Throws: `MappingError`.
  package init(path: String) throws {
    self.init(file: path, document: try MappingDocument(path: path))
  }

  /// Reads the mapping models of one request, in the order given.
  ///
  /// - Throws: `MappingError`; ``PlanError/repeatedMapping(file:first:)`` where two say the same, be it one
  ///   file under two names, or one in two forms: run twice, it would make every object twice.
  package static func read(_ paths: [String]) throws -> [MappingFile] {
    var files: [MappingFile] = []
    for path in paths {
      let file = try MappingFile(path: path)
      if let first = files.first(where: { $0.document == file.document }) {
        throw PlanError.repeatedMapping(file: path, first: first.file)
      }
      files.append(file)
    }
    return files
  }
}
