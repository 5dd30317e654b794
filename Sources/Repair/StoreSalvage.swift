import GodwitDurableFiles
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

/// All that can be read of a damaged store, in a sound file of its own: the same tables with the
/// same columns, and no constraints.
final class StoreSalvage {
  let image: StoreImage
  let file: DamagedFile
  var schema: SchemaSalvage
  let path: FilePath
  /// The salvaged file, read; with the model's tables under the names that the store has.
  private(set) var binding: StoreBinding
  let model: ModelChoice
  /// By name.
  var tables: [NameKey: TableSalvage] = [:]
  var evidence: [NameKey: IndexEvidence] = [:]
  /// What the schema, the control tables and the indexes were found to lack.
  var structure: [StoreFinding] = []
  /// Columns that were found under another name.
  var renamedColumns: [(table: String, from: String, to: String)] = []
  /// Tables whose pages were found without `sqlite_master` leading there.
  var foundTables: [NameKey] = []
  /// The model's tables that are not listed in `sqlite_master`, or in what is left of it.
  var unlistedTables: Set<NameKey> = []
  /// Tables that are not the model's, with those that cannot be read.
  var foreignTables: [SchemaSalvage.Entry] = []
  /// Tables without rows that are not the model's, with names like those of its own: they are not carried.
  var emptyTables: [String] = []
  /// With as many rows as lie there.
  var unreadableTables: [(name: String, rows: Int64)] = []
  /// Pages with rows that belong to no table for certain.
  var strayPages: [UInt32] = []

  /// What an application's tables with `Z_ENT` look like where their rows are not of the model's entities.
  var numberedShapes: [NameKey: TableShape] = [:]
  /// Such tables with a leaf that is there twice.
  var copiedTables: Set<NameKey> = []
  /// Leaves that such a table's root leads to and that are not the table's.
  var refusedLeaves: [UInt32: NameKey] = [:]

  /// Columns of tables whose own SQL is lost or does not give them.
  var layoutColumns: [NameKey: [SchemaSalvage.Column]] = [:]
  /// The model's tables whose columns were read from a damaged text.
  var rereadTables: [String] = []
  /// Those whose columns have their place from the model's order alone, each with its entity.
  var guessedTables: [(table: String, entity: String)] = []
  /// Those whose records have values for columns that their SQL does not name.
  var extendedTables: [(table: String, entity: String, columns: [String])] = []
  /// Columns of the model that their table did not have.
  var addedColumns: [(table: String, column: String)] = []
  /// What `sqlite_sequence` says.
  var counters = AutoincrementCounters()
  /// Keys that are the row id, which their table's SQL does not say.
  var restoredKeys: [(table: String, column: String)] = []
  /// Tables of the model whose names had letters of another case.
  var respeltTables: [(from: String, to: String)] = []
  /// Rows of `Z_METADATA` beside the one that counts.
  private(set) var furtherMetadata = FurtherMetadata()
  /// Row ids of pairs that were taken from an index.
  var pairsOfIndexes: [NameKey: KeyRanges] = [:]
  /// Generated columns of the model's tables whose values are not stored.
  var virtualColumns: [(table: String, column: String)] = []

  private let folder: FilePath
  /// By rules where `Z_PRIMARYKEY` gives numbers that the store itself does not use.
  private var numbering = StoreBinding.Numbering.store
  let values: UnsafeMutablePointer<RawValue>
  private let valueCount: Int
  var nextTree: Int32

  /// SQLite's own bound of columns.
  private static let mostColumns = 32_767

  /// Reads a store, and reads it again where several of its records lead to the same overflow pages: whose
  /// they are is known when all have been read.
  ///
  /// - Parameter folder: Belongs to the caller alone.
  static func read(
    _ store: FilePath, models: GivenModels, in folder: FilePath
  ) throws -> StoreSalvage {
    let image = try StoreImage(of: StoreFiles(store), in: folder)
    let first = try StoreSalvage(store, image, models, in: folder)
    guard let settlement = first.file.settlement() else { return first }
    let second = folder.appending("again")
    try DurableFile.makeFolder(second, surviving: .processCrash)
    return try StoreSalvage(store, image, models, in: second, settlement)
  }

  private init(
    _ store: FilePath, _ image: StoreImage, _ models: GivenModels, in folder: FilePath,
    _ settlement: OverflowSettlement? = nil
  ) throws {
    self.folder = folder
    self.image = image
    let file = DamagedFile(
      privateCopy: image.path.string, missing: image.missing, settlement: settlement)
    guard let file else { throw RepairError.notADatabase(store) }
    if let header = file.header { try FileHeader.requireNoUTF16(store, header, at: image.path) }
    self.file = file
    valueCount = Self.mostColumns
    values = .allocate(capacity: valueCount)
    var read = try SchemaSalvage(file)
    read.findControlTables(in: file, values)
    read.leaveForeignPages(in: file, values)
    let schema = read
    self.schema = schema
    foundTables = schema.exchangedTables
    nextTree = Int32(schema.entries.count) + 1
    path = folder.appending("salvage.sqlite")
    let salvage = try Self.create(path)
    let names = try Self.makeTables(salvage, schema)
    guard !names.isEmpty || !models.versions.isEmpty || !schema.unlisted.isEmpty,
      Self.mayBeCoreData(schema)
    else {
      throw RepairError.notCoreData(store)
    }
    for name in LayoutProblem.controlTables {
      let entry = schema.table(name)
      if entry == nil, name == "Z_MODELCACHE" { continue }
      let wanted = Self.controlColumns(name)
      let reading = ColumnReading(
        name, wanted: wanted.map { ($0.name, $0.type) }, key: wanted.first { $0.isRowID }?.name,
        schema, file, values)
      let columns = reading.columns
      if reading.isChanged {
        try salvage.execute("DROP TABLE IF EXISTS \(quoted(name))")
        try salvage.execute(TableSalvage.sql(name, columns))
      }
      try salvage.execute("BEGIN")
      var table = try TableSalvage(
        name, columns: columns, tree: Self.tree(of: entry, schema), in: salvage, values: values)
      if let entry {
        try table.fill(root: entry.root, orphans: [], of: file)
        if !table.gaps.isEmpty {
          let reader = DamagedTreeReader(file, .table, tree: table.tree)
          try table.fill(
            root: nil, orphans: file.orphans(below: table.tree, of: reader), of: file)
        }
      }
      try table.settle()
      try salvage.execute("COMMIT")
      try table.end()
      tables[NameKey(name)] = table
    }
    furtherMetadata = try Self.leaveOneMetadata(in: salvage)
    try salvage.close()
    let source = try SourceStore(path: path, snapshotFolder: folder)
    let found: ModelChoice
    let isWhole = schema.isWhole
    switch try ModelChoice.among(models, for: source, isTableListWhole: isWhole) {
    case .found(let choice): found = choice
    case .none(let unknown):
      throw RepairError.noModel(
        store, givenModels: !models.versions.isEmpty, unknownEntities: unknown,
        isTableListWhole: schema.isWhole)
    }
    model = found
    binding = StoreBinding(source, found.hierarchy)
    try spellTables()
    if !isNumberedByStore() { numbering = .rules }
    try rebind()
    structure = try StoreSoundness.schema(binding) + StoreSoundness.indexes(binding)
    try bindAgain()
    structure += try judgeStructure()
    try fillTables()
  }

  /// False for a whole schema with tables none of which Core Data would make.
  private static func mayBeCoreData(_ schema: SchemaSalvage) -> Bool {
    guard schema.isWhole, !schema.entries.isEmpty else { return true }
    return schema.entries.contains { $0.name.first == "Z" || $0.name.first == "z" }
  }

  /// Whether a table that is known is none of the model's.
  func isForeign(_ table: String) -> Bool {
    foreignTables.contains { $0.name.isSameName(as: table) }
  }

  /// Tables that are not the model's whose own rows of `sqlite_master` are lost, and not those of their
  /// indexes.
  var tablesOfIndexesAlone: [String] {
    let known = Set(binding.layout.tables.map(\.name) + binding.layout.joinTables.map(\.name))
      .union(LayoutProblem.controlTables)
    let names = schema.entries.filter { entry in
      entry.kind == .index && schema.table(entry.table) == nil
        && !known.contains { $0.isSameName(as: entry.table) }
    }.map(\.table)
    return Set(names.map(NameKey.init)).map(\.name).sorted { $0.precedesInBytes($1) }
  }

  /// Reads the salvaged file again.
  func rebind() throws {
    binding = StoreBinding(
      try SourceStore(path: path, snapshotFolder: folder), binding.hierarchy, numbering: numbering)
  }

  deinit { values.deallocate() }

  static func create(_ path: FilePath) throws -> Connection {
    let connection = try Connection(path: path.string, mode: .create)
    // Nobody needs a half-made file: no journal, no waiting for the disk.
    try connection.execute(
      """
      PRAGMA page_size = 4096;
      PRAGMA auto_vacuum = 2;
      PRAGMA journal_mode = OFF;
      PRAGMA synchronous = OFF;
      PRAGMA locking_mode = EXCLUSIVE;
      PRAGMA cache_size = -32768;
      """)
    return connection
  }

  /// The columns of a control table whose own SQL is lost.
  static func controlColumns(_ name: String) -> [SchemaSalvage.Column] {
    switch name {
    case "Z_METADATA":
      [
        .init(name: "Z_VERSION", type: "INTEGER", isRowID: true),
        .init(name: "Z_UUID", type: "VARCHAR"), .init(name: "Z_PLIST", type: "BLOB"),
      ]
    case "Z_PRIMARYKEY":
      [
        .init(name: "Z_ENT", type: "INTEGER", isRowID: true),
        .init(name: "Z_NAME", type: "VARCHAR"), .init(name: "Z_SUPER", type: "INTEGER"),
        .init(name: "Z_MAX", type: "INTEGER"),
      ]
    default: [.init(name: "Z_CONTENT", type: "BLOB")]
    }
  }

  static func tree(of entry: SchemaSalvage.Entry?, _ schema: SchemaSalvage) -> Int32 {
    guard let entry,
      let place = schema.entries.firstIndex(where: {
        $0.kind == .table && $0.name.isSameName(as: entry.name)
      })
    else { return Int32.max }
    return Int32(place + 1)
  }

  /// Every table whose columns are known, without rows, and its indexes, which tell what is missing.
  private static func makeTables(
    _ salvage: Connection, _ schema: SchemaSalvage
  ) throws -> [String] {
    var names: [String] = []
    for entry in schema.tables {
      guard let columns = schema.storedColumns(of: entry.name) else { continue }
      try salvage.execute(TableSalvage.sql(entry.name, columns))
      names.append(entry.name)
    }
    for control in LayoutProblem.controlTables where !names.contains(control) {
      // Stores of old frameworks have no model cache.
      guard control != "Z_MODELCACHE" || schema.table(control) != nil else { continue }
      try salvage.execute(TableSalvage.sql(control, controlColumns(control)))
    }
    let made = Set(names.map { NameKey($0) })
    for entry in schema.entries where entry.kind == .index && made.contains(NameKey(entry.table)) {
      entry.sql.map { try? salvage.define(.index, $0) }
    }
    return names
  }
}
