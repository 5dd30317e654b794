import GodwitDurableFiles
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

/// The files of external binary data: those that rows refer to are copied, values whose file is
/// missing are lost, and files that no row refers to are named.
struct ExternalFiles {
  private let source: FilePath
  private(set) var copied = 0
  /// Of files that could not be copied whole.
  private(set) var lost: [RepairReport.Item] = []
  private(set) var doubtful: [RepairReport.Item] = []

  init(of store: FilePath) { source = StoreFiles(store).externalDataFolder }

  /// Copies the files that the rows refer to, and clears references to files that are not there.
  ///
  /// Where there is no folder at all, references stay: it may only have been left behind when the
  /// store was copied.
  mutating func carry(
    to folder: FilePath, _ connection: Connection, _ binding: StoreBinding, _ mender: Mender
  ) throws {
    let names = try names()
    // Those that can be taken, and all that rows name.
    var (used, named): (Set<NameKey>, Set<NameKey>) = ([], [])
    for entity in binding.hierarchy.order where binding.hierarchy[entity]?.isAbstract == false {
      guard let table = binding.table(of: entity) else { continue }
      for (property, column) in binding.layout.externalColumns(of: entity)
      where binding.has(column, in: table.name) {
        var missing: [Int64] = []
        let statement = try connection.prepare(
          """
          SELECT Z_PK, CAST(substr(\(quoted(column)), 2, 36) AS TEXT)
            FROM \(quoted(table.name))
           WHERE Z_ENT = \(binding.number(of: entity)) AND typeof(\(quoted(column))) = 'blob'
             AND length(\(quoted(column))) = 38 AND substr(\(quoted(column)), 1, 1) = x'02'
           ORDER BY Z_PK
          """)
        while try statement.step() {
          guard let name = statement.value(1).text else {
            missing.append(statement.int64(0))
            continue
          }
          named.insert(NameKey(name))
          guard names?.contains(NameKey(name)) == true,
            try copy(name, to: folder, isNew: !used.contains(NameKey(name)))
          else {
            missing.append(statement.int64(0))
            continue
          }
          used.insert(NameKey(name))
        }
        guard !missing.isEmpty else { continue }
        try clear(
          KeyRanges(missing), entity, property, names == nil ? nil : (table.name, column),
          mender)
      }
    }
    // No object can refer to a file whose name is no text.
    let odd = try names == nil ? [] : DurableFile.namesOutOfText(in: source)
    let orphans =
      (names ?? []).subtracting(named).map(\.name).sorted { $0.precedesInBytes($1) }
      + odd.map(\.unambiguousText)
    if !orphans.isEmpty {
      lost.append(
        .init(
          .externalData, count: Int64(orphans.count), names: orphans,
          "files that no object refers to; they stay beside the source"))
    }
  }

  /// The names of its files; nil without such a folder.
  private func names() throws -> Set<NameKey>? {
    guard try FileKind(at: source) == .folder else { return nil }
    return Set(try DurableFile.names(in: source).map { NameKey($0) })
  }

  /// - Returns: Whether the file is there now.
  private mutating func copy(_ name: String, to folder: FilePath, isNew: Bool) throws -> Bool {
    guard isNew else { return true }
    let file = source.appending(name)
    // A link may lead anywhere.
    guard try FileKind(at: file) == .regular else { return false }
    do {
      try DurableFile.makeFolder(folder)
      try DurableFile.copy(file, to: folder.appending(name))
      copied += 1
      return true
    } catch let error as DurabilityError where error.errno == .ioError {
      try DurableFile.removeIfPresent(folder.appending(name))
      return false
    }
  }

  private mutating func clear(
    _ keys: KeyRanges, _ entity: EntityName, _ property: String,
    _ place: (table: String, column: String)?, _ mender: Mender
  ) throws {
    guard let place else {
      doubtful.append(
        .init(
          .externalData, entity: entity.rawValue, property: property, keys: keys,
          "refers to files, and there is no folder \(source.lastComponent?.string ?? "") beside the "
            + "source; put it beside the output, or the values are lost"))
      return
    }
    try mender.replaceLostValue(of: property, entity, keys, place.table, place.column)
  }
}
