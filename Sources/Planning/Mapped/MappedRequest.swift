import GodwitMapping

/// A mapping model as it was given, before the two models have completed it.
public struct MappingFile: Sendable {
  /// As the user named it.
  public var file: String
  public var document: MappingDocument

  public init(file: String, document: MappingDocument) {
    self.file = file
    self.document = document
  }

  /// Reads a mapping model of any form.
  ///
  /// - Throws: `MappingError`.
  public init(path: String) throws {
    self.init(file: path, document: try MappingDocument(path: path))
  }
}
