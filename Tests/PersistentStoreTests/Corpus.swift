import Foundation
import GodwitObjectModel
import GodwitPersistentStore
import SystemPackage

/// Real stores beside the repository; tests that need them are skipped where they are not there.
enum Corpus {
  static let root = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().appending(path: "shared").resolvingSymlinksInPath()

  static let isPresent = FileManager.default.fileExists(
    atPath: root.appending(path: "corpus/CATALOG.md").path)

  /// Paths below the corpus of every file that begins as an SQLite database.
  static let stores: [String] = {
    let folder = root.appending(path: "corpus").path
    let paths = FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String } ?? []
    return paths.filter { path in
      guard let handle = FileHandle(forReadingAtPath: folder + "/" + path) else { return false }
      defer { try? handle.close() }
      return (try? handle.read(upToCount: 16)) == Data("SQLite format 3\0".utf8)
    }.sorted()
  }()

  static func path(_ store: String) -> FilePath {
    FilePath(root.appending(path: "corpus").path + "/" + store)
  }

  /// What the judge says, as JSON. It knows nothing of this code.
  static func oracle(_ arguments: [String]) throws -> [String: Any] {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["python3", root.appending(path: "oracle/oracle").path] + arguments
    let output = Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
  }
}

/// A folder that goes away with the value.
final class TemporaryFolder {
  let path: FilePath

  init() throws {
    let url = FileManager.default.temporaryDirectory.appending(path: "godwit-\(UUID())")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    path = FilePath(url.path)
  }

  deinit { try? FileManager.default.removeItem(atPath: path.string) }

  /// Paths below the folder with the bytes of each file.
  func contents() throws -> [String: Data] {
    var result: [String: Data] = [:]
    let names = FileManager.default.enumerator(atPath: path.string)?.compactMap { $0 as? String }
    for name in names ?? [] {
      result[name] = FileManager.default.contents(atPath: path.appending(name).string) ?? Data()
    }
    return result
  }
}

extension EntityHierarchy {
  /// A model of these entities; properties as `.attribute` and `.relationship` below make them.
  init(_ entities: EntityDescription...) throws {
    try self.init(ManagedObjectModel(entities: entities))
  }
}

extension PropertyDescription {
  static func attribute(
    _ name: String, _ type: AttributeType, isOptional: Bool = true, isTransient: Bool = false,
    isExternal: Bool = false, elements: [AttributeDescription]? = nil, derivation: String? = nil,
    validation: [ValidationRule] = []
  ) -> PropertyDescription {
    .attribute(
      AttributeDescription(
        traits: PropertyTraits(name: name, isOptional: isOptional, isTransient: isTransient),
        type: type, allowsExternalBinaryDataStorage: isExternal, derivationExpression: derivation,
        compositeElements: elements, validation: validation))
  }

  static func relationship(
    _ name: String, _ destination: EntityName, inverse: String? = nil, isToMany: Bool = false,
    isOrdered: Bool = false, isOptional: Bool = true
  ) -> PropertyDescription {
    .relationship(
      RelationshipDescription(
        traits: PropertyTraits(name: name, isOptional: isOptional), destinationEntity: destination,
        inverseName: inverse, maxCount: isToMany ? 0 : 1, isOrdered: isOrdered))
  }
}
