import Foundation
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

/// Writes a store of any model, laid out as Core Data would, full of seeded objects.
///
/// Memory does not grow with the number of rows: keys and relationships follow from arithmetic.
/// Source of the order of things: `core-data-sqlite-format.md` §8 and §13.
package struct StoreGenerator {
  package let hierarchy: EntityHierarchy
  package let layout: StoreLayout
  package let options: StoreOptions
  /// The layout with the rules that values keep: the model's own, and those of ``StoreOptions/validFor``.
  private let ruled: StoreLayout

  package init(_ model: ManagedObjectModel, options: StoreOptions = StoreOptions()) throws {
    try self.init(EntityHierarchy(model), options: options)
  }

  package init(_ hierarchy: EntityHierarchy, options: StoreOptions = StoreOptions()) throws {
    self.hierarchy = hierarchy
    layout = StoreLayout(hierarchy, frameworkVersion: options.frameworkVersion)
    self.options = options
    ruled =
      try options.validFor.map {
        StoreLayout(
          try hierarchy.keepingRules(of: $0), frameworkVersion: options.frameworkVersion)
      } ?? layout
    if let problem = layout.problems.first(where: \.isFatal) { throw problem }
  }

  /// Writes the store, its write-ahead log where wished, and its external data.
  ///
  /// - Parameter path: The file must not exist; its folder must.
  @discardableResult
  package func write(to path: String) throws -> StoreReport {
    let files = FileManager.default
    guard !files.fileExists(atPath: path) else { throw FixtureError.alreadyThere(path: path) }
    let tools = ValueTools(
      options: options,
      externalFolder: URL(
        fileURLWithPath: StoreFiles(FilePath(path)).externalDataFolder.string))
    let spaces = try KeySpaces(ruled.hierarchy, options: options)
    try UniqueProperties(ruled.hierarchy).requireEnoughValues(in: spaces, options)
    let draft = options.leavesWAL ? path + ".draft" : path
    let connection = try Connection(path: draft, mode: .create)
    // Nobody needs a half-written fixture: no journal, no waiting for the disk.
    try connection.execute(
      """
      PRAGMA page_size = 4096;
      PRAGMA auto_vacuum = 2;
      PRAGMA journal_mode = OFF;
      PRAGMA synchronous = OFF;
      PRAGMA locking_mode = EXCLUSIVE;
      PRAGMA cache_size = -65536;
      """)
    let joinRows = try fill(connection, spaces: spaces, tools: tools)
    if options.leavesWAL {
      // A store without rows has no log.
      for suffix in ["", "-wal"] where files.fileExists(atPath: draft + suffix) {
        try files.copyItem(atPath: draft + suffix, toPath: path + suffix)
      }
    }
    try connection.close()
    if options.leavesWAL {
      for suffix in ["", "-wal", "-shm"] where files.fileExists(atPath: draft + suffix) {
        try files.removeItem(atPath: draft + suffix)
      }
      if files.fileExists(atPath: path + "-wal") {
        try SealedLog.seal(path + "-wal", seed: options.seed)
      }
    }
    var objects: [EntityName: Int] = [:]
    for space in spaces.spaces.values {
      for share in space.shares { objects[share.entity] = share.count }
    }
    let bytes = try ["", "-wal"].map { path + $0 }.filter { files.fileExists(atPath: $0) }
      .reduce(0) {
        $0 + (try files.attributesOfItem(atPath: $1)[.size] as? Int ?? 0)
      }
    return StoreReport(
      path: path, objects: objects, joinRows: joinRows, externalFiles: tools.externalFiles,
      bytes: bytes, notes: spaces.notes)
  }

  /// The model with the rules that values keep.
  var rules: EntityHierarchy { ruled.hierarchy }

  /// Attributes, and elements of composite ones, with a rule that no value is made by.
  func unknownRules() -> [String] {
    let unique = UniqueProperties(rules)
    return rules.order.flatMap { entity -> [String] in
      (rules[entity]?.properties ?? []).flatMap { property -> [String] in
        guard property.isStored, let attribute = property.attribute,
          attribute.derivationExpression == nil
        else { return [] }
        let isUnique = unique.contains(property.name, of: entity)
        return attribute.leaves.filter {
          ValueSource($0.attribute, isUnique: isUnique, options: options).mayBreakRules
        }.map { "\(entity)." + ([property.name] + $0.path).joined(separator: ".") }
      }
    }
  }

  /// How many of `count` rows go into the main file; the rest stays in the write-ahead log.
  private func mainShare(_ count: Int) -> Int { options.leavesWAL ? count * 7 / 10 : count }

  private func fill(_ connection: Connection, spaces: KeySpaces, tools: ValueTools) throws -> Int {
    let statements = layout.statements
    try connection.execute("BEGIN")
    for statement in statements where statement.kind == .table {
      try connection.execute(statement.sql)
    }
    // Rows before indexes: several times faster, and indexes come later in the schema anyway.
    let tables = try layout.tables.map {
      (
        spaces.spaces[$0.root]?.count ?? 0,
        try TableWriter(
          $0, layout: ruled, spaces: spaces, connection: connection, tools: tools,
          options: options)
      )
    }
    let joins = try layout.joinTables.compactMap {
      try JoinWriter($0, spaces: spaces, connection: connection, options: options)
    }
    for (count, table) in tables { try table.write(slots: 0..<mainShare(count)) }
    var joinRows = 0
    for join in joins { joinRows += try join.write(members: 0..<mainShare(join.memberCount)) }
    for statement in statements where statement.kind == .index {
      try connection.execute(statement.sql)
    }
    if !options.leavesWAL { try DerivedCounts(layout).update(connection) }
    try StoreStamp(hierarchy: hierarchy, frameworkVersion: options.frameworkVersion).write(
      to: connection, layout: layout, highestKeys: spaces.spaces.mapValues(\.highestKey),
      uuid: tools.uuidText(), metadata: options.metadata)
    if options.history {
      try HistoryTables.write(spaces, connection: connection, seed: options.seed)
    }
    try connection.execute("COMMIT")
    guard options.leavesWAL else {
      // Core Data's stores say "WAL" in their header, even when no log is there.
      try connection.execute("PRAGMA journal_mode = WAL")
      return joinRows
    }
    try connection.execute("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; BEGIN")
    for (count, table) in tables { try table.write(slots: mainShare(count)..<count) }
    for join in joins {
      joinRows += try join.write(members: mainShare(join.memberCount)..<join.memberCount)
    }
    try DerivedCounts(layout).update(connection)
    try connection.execute("COMMIT")
    return joinRows
  }
}
