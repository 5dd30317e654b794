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
}
