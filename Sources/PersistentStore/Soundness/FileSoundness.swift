import GodwitObjectModel
import GodwitSQLite
import SystemPackage

extension StoreSoundness {
  /// What a finding of ``externalFiles(of:in:needsFolder:)`` says.
  package static let missingFile = "refers to an external data file that is missing"

  /// Files of external binary data that rows refer to and that are not there.
  ///
  /// Where the store has no such folder at all it is a note: such stores are found.
  /// Source: `core-data-sqlite-format.md` §5.1.
  ///
  /// - Parameters:
  ///   - folders: Where the files may lie; nil for the store's own folder.
  ///   - needsFolder: The store is known to have had the folder: that it is missing is no note.
  package static func externalFiles(
    of binding: StoreBinding, in folders: [FilePath]? = nil, needsFolder: Bool = false
  ) throws -> [StoreFinding] {
    let folders = try (folders ?? [binding.store.files.externalDataFolder])
      .filter { try StoreFiles.kind(at: $0) == .folder }
    let isThere = !folders.isEmpty
    var findings: [StoreFinding] = []
    for entity in binding.hierarchy.order where binding.hierarchy[entity]?.isAbstract == false {
      guard let table = binding.table(of: entity) else { continue }
      for external in binding.layout.externalColumns(of: entity)
      where binding.has(external.column, in: table.name) {
        let column = quoted(external.column)
        let statement = try binding.store.connection.prepare(
          """
          SELECT Z_PK, CAST(substr(\(column), 2, 36) AS TEXT)
            FROM \(quoted(table.name))
           WHERE Z_ENT = \(binding.number(of: entity)) AND length(\(column)) = 38
             AND typeof(\(column)) = 'blob' AND substr(\(column), 1, 1) = x'02'
           ORDER BY Z_PK
          """)
        var missing: Int64 = 0
        var examples: [Int64] = []
        while try statement.step() {
          // Anything but a UUID could lead out of the folder, and is a finding of its own.
          guard let name = statement.value(1).text, StoreMetadata.isUUID(name) else { continue }
          if try folders.contains(where: {
            try StoreFiles.markIfThere($0.appending(name)) != nil
          }) {
            continue
          }
          missing += 1
          if examples.count < StoreFinding.mostExamples { examples.append(statement.int64(0)) }
        }
        guard missing > 0 else { continue }
        findings.append(
          StoreFinding(
            kind: isThere || needsFolder ? .external : .note, entity: entity.rawValue,
            property: external.property,
            message: Self.missingFile
              + (isThere ? "" : "; there is no such folder"),
            count: missing, examples: examples))
      }
    }
    return findings
  }
}
