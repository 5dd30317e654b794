import GodwitDurableFiles
import SystemPackage

extension MappingDocument {
  /// The forms in which a mapping model may lie on disk.
  package enum Form: Sendable {
    /// `xcmapping.xml`, Xcode's source form.
    case xcode
    /// `.cdm`, the compiled form.
    case compiled
    /// YAML.
    case text
  }

  /// Reads a mapping model of any form from bytes; the first of them tell which it is.
  ///
  /// - Parameter name: The file's name, for messages.
  /// - Throws: ``MappingError``.
  package init(bytes: [UInt8], name: String) throws {
    switch Self.form(of: bytes) {
    case .compiled: self = try CompiledMappingFile.read(bytes, file: name)
    case .xcode: self = try XcodeMappingFile.read(bytes, file: name)
    case .text: self = try MappingText.read(bytes, file: name)
    }
  }

  /// Reads an `.xcmappingmodel` folder, an `xcmapping.xml`, a `.cdm` or a text file.
  ///
  /// - Throws: ``MappingError``; another error where the file system fails.
  package init(path: String) throws {
    var file = FilePath(path)
    if try FileKind(following: file) == .folder { file.append("xcmapping.xml") }
    let bytes: [UInt8]
    do {
      bytes = try RegularFile.bytes(
        of: file, limit: XcodeMappingFile.byteLimit, links: .followed)
    } catch let error as DurabilityError where !error.isOfMachine {
      throw MappingError.unreadable(file: path, reason: Self.reason(error))
    }
    do {
      try self.init(bytes: bytes, name: path)
    } catch let error as MappingError {
      if case .unreadable = error { throw error }
      throw MappingError.inFile(path, error)
    }
  }

  private static func reason(_ error: DurabilityError) -> String {
    switch error {
    case .notRegular(_, let kind): "it is \(kind), not a regular file"
    case .tooLarge: "it is larger than \(XcodeMappingFile.byteLimit) bytes"
    default:
      if !error.isNotFound {
        "it cannot be read: \(error)"
      } else if error.path.lastComponent == "xcmapping.xml" {
        "it is a folder without the xcmapping.xml of a mapping model"
      } else {
        "it cannot be found"
      }
    }
  }

  /// What form the bytes have, by their beginning: `bplist` is a compiled mapping model, `<` after
  /// white space and a byte order mark is Xcode's XML. Anything else is taken for the text form.
  package static func form(of bytes: [UInt8]) -> Form {
    if bytes.starts(with: Array("bplist".utf8)) { return .compiled }
    let start = bytes.first { $0 > 0x20 && $0 != 0xEF && $0 != 0xBB && $0 != 0xBF }
    return start == UInt8(ascii: "<") ? .xcode : .text
  }

  /// The text form. Reading it back gives an equal document.
  ///
  /// - Throws: An error of the YAML emitter, for text that no YAML can hold.
  package func text() throws -> String { try MappingText.text(self) }
}
