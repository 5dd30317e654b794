import GodwitDigests
import GodwitDurableFiles
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage

/// Puts the report together out of what was found where.
struct RepairAccount {
  let salvage: StoreSalvage
  var report: RepairReport
  /// `Z_MAX` of each root entity.
  private(set) var highestKeys: [EntityName: Int64] = [:]
  private let mender: Mender

  init(_ salvage: StoreSalvage, _ mender: Mender, store: String, output: String) {
    self.salvage = salvage
    self.mender = mender
    report = RepairReport(store: store, output: output, version: salvage.model.version)
    report.rebuilt = mender.rebuilt
    report.lost = mender.lost
    report.doubtful = mender.doubtful
    addFile()
    addStructure()
  }

  /// No object is left, and some were lost; nor is there a row of an application's own table.
  var isNothingLeft: Bool {
    let history = PrimaryKeyRow.historyNames.values.map { "A" + $0 }
    let hasRows = salvage.foreignTables.contains { entry in
      !history.contains(entry.name) && salvage.tables[NameKey(entry.name)]?.rowCount ?? 0 > 0
    }
    return report.keptObjects == 0 && !hasRows && report.lost.contains { $0.subject == .object }
  }

  // MARK: The file and its structure

  /// The source's header, where its numbers can be believed.
  var soundHeader: DatabaseHeader? {
    guard let header = salvage.file.header, salvage.file.headerProblems.isEmpty,
      header.hasEmptyReserve
    else { return nil }
    return header
  }

  private mutating func addFile() {
    let (image, file) = (salvage.image, salvage.file)
    for problem in file.headerProblems {
      report.rebuilt.append(.init(.file, "has a damaged header: \(problem)"))
    }
    if let header = file.header, soundHeader == nil,
      header.userVersion != 0 || header.applicationID != 0
    {
      report.lost.append(
        .init(
          .file,
          "has numbers of the application in its header (user_version, application_id) that cannot be believed"
        ))
    }
    if image.unreadableBytes > 0 {
      report.lost.append(
        .init(.file, count: image.unreadableBytes, "bytes that the disk does not give"))
    }
    if image.unusedLogBytes > 0 {
      report.lost.append(
        .init(
          .file, count: image.unusedLogBytes,
          image.unknownLogVersion.map {
            "bytes of the WAL, whose format version \($0) SQLite does not read"
          } ?? "bytes at the end of the WAL that no valid transaction covers"))
    }
    if image.isJournalPlayedBack == false {
      report.doubtful.append(
        .init(
          .file,
          "has a rollback journal that cannot be played back: a transaction may be there in part"))
    } else if let damage = image.journalDamage {
      report.doubtful.append(
        .init(.file, "has a damaged rollback journal (\(damage)): a transaction is there in part"))
    }
    if !salvage.schema.isWhole {
      report.doubtful.append(
        .init(
          .schema,
          "pages of sqlite_master are damaged: tables that are not the model's may be "
            + "missing"))
    }
  }

  private mutating func addStructure() {
    for finding in salvage.structure {
      let subject: RepairReport.Subject =
        switch finding.kind {
        case .control: .primaryKey
        case .metadata: .metadata
        case .modelcache: .modelCache
        case .index: .index
        default: .schema
        }
      guard finding.kind.isFailure else { continue }
      report.rebuilt.append(.init(subject, entity: finding.entity, finding.message))
    }
    for column in salvage.renamedColumns {
      report.rebuilt.append(
        .init(
          .schema, "the column \(column.table).\(column.to) was called \(column.from)"))
    }
    for (from, to) in salvage.respeltTables {
      report.rebuilt.append(.init(.schema, "the table \(to) was called \(from)"))
    }
    for (name, from, to) in salvage.schema.movedRoots {
      report.rebuilt.append(
        .init(
          .schema,
          "sqlite_master led to page \(from) for \(name), which lies below page \(to), the root of its tree"
        ))
    }
    for name in salvage.foundTables.map(\.name) where !salvage.isForeign(name) {
      report.rebuilt.append(
        .init(.schema, "pages of the table \(name) were found by what their rows look like"))
    }
    let damaged = salvage.evidence.values.flatMap(\.damaged).sorted()
    if !damaged.isEmpty {
      report.rebuilt.append(
        .init(
          .index, count: Int64(damaged.count), names: damaged, "indexes that were damaged"))
    }
    if !salvage.strayPages.isEmpty {
      report.lost.append(
        .init(
          .file, count: Int64(salvage.strayPages.count), isCertain: false,
          "pages with rows to which no table leads, and which are no table's for certain: "
            + KeyRanges(salvage.strayPages.map { Int64($0) }).description))
    }
    if !salvage.model.isProven {
      let lacks = salvage.model.missing
      report.doubtful.append(
        .init(
          .metadata,
          "version hashes do not tell the store's model; \(salvage.model.version) "
            + (lacks.isEmpty
              ? "has its tables and columns"
              : "comes closest: the store lacks \(lacks.prefix(10).joined(separator: ", "))"
                + (lacks.count > 10 ? " and \(lacks.count - 10) more" : ""))))
    }
    let metadata = salvage.binding.store.metadata
    if metadata.plist.isEmpty {
      report.lost.append(.init(.metadata, "the application's metadata"))
    }
    let further = salvage.furtherMetadata
    if further.same > 0 {
      report.rebuilt.append(
        .init(.metadata, count: further.same, "further rows of Z_METADATA with the same content"))
    }
    if further.others > 0 {
      report.lost.append(
        .init(
          .metadata, count: further.others,
          "further rows of Z_METADATA, with other content: the one with the fewest faults is kept"))
    }
    if metadata.uuid == nil || metadata.problems.contains(.oddUUID) {
      report.lost.append(.init(.metadata, "the store's UUID; the output has a new one"))
    }
  }

  // MARK: Objects

  /// Counts what the output has, and names what it lacks.
  mutating func count(in store: OutputStore) throws {
    let stored = try storedHighestKeys()
    for (own, source) in zip(store.layout.tables, salvage.binding.layout.tables) {
      var keys: [Int64: KeyRanges] = [:]
      let statement = try store.connection.prepare(
        "SELECT Z_ENT, Z_PK FROM \(quoted(own.name)) ORDER BY Z_ENT, Z_PK")
      while try statement.step() {
        keys[statement.int64(0), default: KeyRanges()].insert(statement.int64(1))
      }
      for entity in own.entities {
        guard let found = keys[Int64(store.layout.entityNumbers[entity] ?? 0)] else { continue }
        report.kept.append(.init(entity: entity.rawValue, count: found.count, primaryKeys: found))
      }
      let highest = keys.values.compactMap { $0.ranges.last?.upperBound }.max() ?? 0
      addLost(own, source.name, stored[own.root], highest: highest)
    }
    for (own, source) in zip(store.layout.joinTables, salvage.binding.layout.joinTables) {
      report.keptPairs +=
        try store.connection.rows("SELECT count(*) FROM \(quoted(own.name))").first?.first?.integer
        ?? 0
      try addLostPairs(own, source.name, in: store)
    }
  }

  /// `Z_MAX` of each root entity as the source has it, where that can be.
  ///
  /// A row is an entity's by its name or by its number, either of which may be damaged; the name may be the one before
  /// an in-place migration, too. Of several rows the highest counts: no key may be given out twice. -1 stands for what
  /// is none.
  private func storedHighestKeys() throws -> [EntityName: Int64] {
    let (binding, connection) = (salvage.binding, salvage.binding.store.connection)
    var found: [EntityName: Int64] = [:]
    guard try connection.holds(["Z_ENT", "Z_NAME", "Z_MAX"], in: "Z_PRIMARYKEY") else {
      return found
    }
    let roots = Dictionary(
      salvage.model.hierarchy.roots.map { (binding.number(of: $0), $0) },
      uniquingKeysWith: { first, _ in first })
    let rows = try connection.prepare("SELECT Z_ENT, Z_NAME, Z_MAX FROM Z_PRIMARYKEY")
    while try rows.step() {
      // An entity of the model may have the name of one of history's.
      guard let number = rows.value(0).integer, PrimaryKeyRow.historyNames[number] == nil
      else { continue }
      let highest = max(rows.value(2).integer ?? -1, -1)
      let named = rows.value(1).text.map { EntityName($0) }
      for name in Set([named, roots[number]].compactMap(\.self)) {
        found[name] = max(found[name] ?? -1, highest)
      }
    }
    return found
  }

  private mutating func addLost(
    _ table: EntityTable, _ name: String, _ stored: Int64?, highest: Int64
  ) {
    let root = table.root
    guard let salvaged = salvage.tables[NameKey(name)] else { return }
    let evidence = salvage.evidence[NameKey(name)]
    let kept = KeyRanges(
      union: report.kept.filter { table.entities.contains(EntityName($0.entity)) }
        .map(\.primaryKeys))
    var lost = salvaged.lostKeys
    lost.formUnion(evidence?.lostKeys ?? KeyRanges())
    if let targets = mender.missingTargets[table.name] {
      for range in targets.ranges where range.count < 1 << 20 {
        for key in range where salvaged.gaps.contains(where: { $0.contains(key) }) {
          lost.insert(key)
        }
      }
    }
    lost = lost.subtracting(kept)
    // Core Data gives keys from 1 on: another one may be damage itself.
    let odd = lost.subtracting(KeyRanges(1...(.max)))
    if !odd.isEmpty {
      report.lost.append(
        .init(
          .object, entity: root.rawValue, keys: odd, isCertain: false,
          "objects with these keys are lost, if there were any: Core Data gives none that is lower than 1"
        ))
    }
    lost = lost.subtracting(KeyRanges(.min...0))
    let known = max(highest, lost.ranges.last?.upperBound ?? 0)
    highestKeys[root] = max(stored ?? 0, known)
    if let stored, stored < known {
      report.rebuilt.append(
        .init(
          .primaryKey, entity: root.rawValue,
          stored < 0
            ? "had no number in Z_MAX; it has \(known) now, and higher keys may have been given out"
            : "had Z_MAX \(stored), lower than its highest Z_PK \(known)"))
    }
    addKnown(lost, of: table, evidence)
    let named = (evidence?.possibleKeys ?? KeyRanges()).subtracting(kept).subtracting(lost)
      .subtracting(odd)
    if !named.isEmpty {
      report.lost.append(
        .init(
          .object, entity: root.rawValue, keys: named, isCertain: false,
          "objects with these keys are lost, if there were any: an index of \(name) names them, and "
            + "no page of the table has them"))
    }
    guard evidence?.isComplete != true else { return }
    var possible = KeyRanges()
    // A counter that is too low says nothing.
    let end = stored.flatMap { $0 >= known ? $0 : nil } ?? .max
    for gap in salvaged.gaps {
      let low = max(gap.after.map { $0 == .max ? .max : $0 + 1 } ?? 1, 1)
      let high = min(gap.upTo ?? end, end)
      if low <= high { possible.insert(low...high) }
    }
    possible = possible.subtracting(kept).subtracting(lost)
    guard !possible.isEmpty else { return }
    let pages = salvaged.gaps.map(\.page).filter { $0 > 0 }
    let place =
      pages.isEmpty
      ? "the table \(name) is missing"
      : "\(pages.count == 1 ? "page" : "pages") "
        + pages.prefix(10).map { String($0) }.joined(separator: ", ") + " of \(name) cannot be read"
    report.lost.append(
      .init(
        .object, entity: root.rawValue, keys: possible, isCertain: false,
        "objects with these keys are lost, if there were any: \(place)"))
  }

  /// Lost rows that something names, each under its entity where that is known, else the root.
  private mutating func addKnown(
    _ lost: KeyRanges, of table: EntityTable, _ evidence: IndexEvidence?
  ) {
    guard !lost.isEmpty else { return }
    var byEntity: [EntityName: KeyRanges] = [:]
    let names = Dictionary(
      table.entities.map { (salvage.binding.number(of: $0), $0) },
      uniquingKeysWith: { first, _ in first })
    for range in lost.ranges {
      guard evidence?.entityNumbers.isEmpty == false else {
        byEntity[table.root, default: KeyRanges()].insert(range)
        continue
      }
      for key in range {
        let entity = evidence?.entityNumbers[key].flatMap { names[$0] } ?? table.root
        byEntity[entity, default: KeyRanges()].insert(key)
      }
    }
    for (entity, keys) in byEntity.sorted(by: { $0.key < $1.key }) {
      report.lost.append(
        .init(.object, entity: entity.rawValue, keys: keys, "objects whose rows cannot be read"))
    }
  }

  /// The store's UUID; where it is lost, one that follows from the file.
  func uuid(of metadata: StoreMetadata, image: FilePath) throws -> String {
    if let uuid = metadata.uuid, !metadata.problems.contains(.oddUUID) { return uuid }
    var digest = SHA256()
    let file = try RegularFile.open(image)
    defer { try? file.close() }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
    defer { buffer.deallocate() }
    while case let count = try file.read(into: buffer), count > 0 {
      digest.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
    var bytes = Array(digest.finish().prefix(16))
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    let digits = Array(Hexadecimal.text(of: bytes).uppercased())
    return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(digits[$0]) }
      .joined(separator: "-")
  }
}
