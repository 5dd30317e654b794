import GodwitDurableFiles
import GodwitObjectModel
import GodwitPersistentStore
import GodwitSQLite

extension Mender {
  /// Values that the rules of their attribute refuse.
  func mendAttributes() throws {
    try connection.execute(
      "CREATE TEMP TABLE replaced (name TEXT, key INTEGER, PRIMARY KEY (name, key)) WITHOUT ROWID")
    try doubtRows()
    for rule in rules where [.required, .type, .external].contains(rule.kind) {
      guard let entity = rule.entity, let property = rule.property,
        let found = column(property, of: entity), let table = binding.table(of: entity)
      else { continue }
      if rule.kind != .required { try restore(rule, found, table) }
      let keys = try keys(rule)
      guard !keys.isEmpty else { continue }
      let (value, words) = replacement(of: found)
      try connection.execute(
        """
        INSERT OR IGNORE INTO temp.replaced
        SELECT \(Self.text(table.name)), Z_PK FROM \(quoted(table.name))
         WHERE Z_PK IN (\(selection(rule)));
        UPDATE \(quoted(table.name)) SET \(quoted(found.column)) = \(value)
         WHERE Z_PK IN (\(selection(rule)))
        """)
      lost.append(
        .init(
          .value, entity: entity.rawValue, property: property, keys: keys,
          "\(rule.message); now it is \(words)"))
    }
  }

  /// Rows that have none of the values that their entity requires.
  private func doubtRows() throws {
    for entity in hierarchy.order where hierarchy[entity]?.isAbstract == false {
      guard let table = binding.table(of: entity) else { continue }
      let required = hierarchy.properties(of: entity).compactMap { declared -> String? in
        guard declared.property.isStored, let attribute = declared.property.attribute,
          !attribute.mayBeNull
        else { return nil }
        return binding.column(of: attribute.name, in: entity)
      }
      guard required.count > 1 else { continue }
      let keys = try keys(
        "SELECT Z_PK FROM \(quoted(table.name)) WHERE Z_ENT = \(binding.number(of: entity)) AND "
          + "coalesce(\(required.map(quoted).joined(separator: ", "))) IS NULL")
      guard !keys.isEmpty else { continue }
      doubtful.append(
        .init(
          .object, entity: entity.rawValue, keys: keys,
          "have none of the values that are required: they may be no objects of it"))
    }
  }

  /// Values whose external file is missing.
  func replaceLostValue(
    of property: String, _ entity: EntityName, _ keys: KeyRanges, _ table: String, _ column: String
  ) throws {
    guard let found = self.column(property, of: entity) else { return }
    let (value, words) = replacement(of: found)
    let statement = try connection.prepare(
      "UPDATE \(quoted(table)) SET \(quoted(column)) = \(value) WHERE Z_PK = ?1")
    for range in keys.ranges {
      for key in range {
        try statement.bind(1, key)
        try statement.run()
      }
    }
    lost.append(
      .init(
        .value, entity: entity.rawValue, property: property, keys: keys,
        "refers to an external data file that is missing, or no file that can be read; now it is "
          + words))
  }

  /// The column of an attribute, or of an element of a composite, `composite.element`.
  private func column(_ property: String, of entity: EntityName) -> ValueColumn? {
    for declared in hierarchy.properties(of: entity) {
      guard let attribute = declared.property.attribute else { continue }
      let found = binding.layout.valueColumns(of: attribute, in: entity).first {
        $0.keyPath(below: attribute.name) == property
      }
      if let found,
        binding.table(of: entity).map({ binding.has(found.column, in: $0.name) }) == true
      {
        return found
      }
    }
    return nil
  }

  // MARK: Values that are still there in another form

  /// Takes values back whose record says another type by a single wrong bit: texts that say blob,
  /// blobs that say text, and a wrong marker of external storage.
  private func restore(_ rule: RowRule, _ found: ValueColumn, _ table: EntityTable) throws {
    let (name, column) = (quoted(table.name), quoted(found.column))
    var keys: [Int64] = []
    if rule.kind == .external {
      let statement = try connection.prepare(
        "SELECT a.Z_PK, a.\(column) FROM \(rule.source) WHERE \(rule.condition)")
      var mended: [(Int64, [UInt8])] = []
      while try statement.step() {
        guard let blob = statement.value(1).blob, let value = Self.remarked(blob) else { continue }
        mended.append((statement.int64(0), value))
      }
      for (key, value) in mended {
        _ = try connection.rows(
          "UPDATE \(name) SET \(column) = ?1 WHERE Z_PK = ?2", [.blob(value), .integer(key)])
        keys.append(key)
      }
    } else {
      let isText = found.attribute.type.columnType == "VARCHAR"
      guard isText || found.attribute.type.columnType == "BLOB" else { return }
      let statement = try connection.prepare(
        "SELECT a.Z_PK, a.\(column) FROM \(rule.source) WHERE (\(rule.condition)) "
          + "AND typeof(a.\(column)) = '\(isText ? "blob" : "text")'")
      var usable: [Int64] = []
      while try statement.step() {
        let value = statement.value(1)
        if isText, String(validating: value.blob ?? [], as: UTF8.self) == nil { continue }
        if found.attribute.type == .uuid, value.text?.utf8.count != 16 { continue }
        usable.append(statement.int64(0))
      }
      for key in usable {
        _ = try connection.rows(
          "UPDATE \(name) SET \(column) = CAST(\(column) AS \(isText ? "TEXT" : "BLOB")) "
            + "WHERE Z_PK = ?1", [.integer(key)])
      }
      keys = usable
    }
    guard !keys.isEmpty else { return }
    doubtful.append(
      .init(
        .value, entity: rule.entity?.rawValue, property: rule.property, keys: KeyRanges(keys),
        rule.kind == .external
          ? "had a wrong external storage marker, and the rest is taken for the value"
          : "was marked as another storage class, and its bytes are taken for the value"))
  }

  /// The value behind a marker that a single bit makes wrong.
  private static func remarked(_ blob: [UInt8]) -> [UInt8]? {
    guard let marker = blob.first, blob.count > 1 else { return nil }
    var value = blob
    value[0] = 2
    if value.withUnsafeBytes({ RowRules.isFileName($0) }) { return value }
    value[0] = 1
    return (marker ^ 1).nonzeroBitCount == 1 && marker != 2 ? value : nil
  }

  // MARK: Values for what is lost

  /// What takes the place of a lost value, as SQL and in words.
  private func replacement(of found: ValueColumn) -> (sql: String, words: String) {
    let attribute = found.attribute
    // A composite may be absent, and its elements with it.
    if !found.path.isEmpty || attribute.mayBeNull {
      return ("NULL", "absent")
    }
    if let value = attribute.storedDefault, let sql = Self.literal(value) {
      return (sql, "the default value")
    }
    // Distinct where they have to be.
    let isUnique = hierarchy.order.contains { name in
      (hierarchy[name]?.uniquenessConstraints ?? []).contains { $0.contains(attribute.name) }
    }
    let sql = placeholder(attribute, isUnique: isUnique)
    let reason =
      attribute.hasUnstorableDefault
      ? "only the application can store its default value" : "has no default value"
    return (sql, "a placeholder, since it is required and \(reason)")
  }

  /// As SQL. A value that somebody else has already is not taken: the next attempt has another.
  private func placeholder(
    _ attribute: AttributeDescription, isUnique: Bool, attempt: Int = 0
  ) -> String {
    let key = attempt == 0 ? "Z_PK" : "(Z_PK + \(attempt * 1_009))"
    let mark = attempt == 0 ? "" : " || ' \(attempt)'"
    switch attribute.type {
    case .boolean: return "0"
    case .integer16: return isUnique ? "\(key) % 32768" : "0"
    case .integer32: return isUnique ? "\(key) % 2147483648" : "0"
    case .integer64, .decimal, .date: return isUnique ? key : "0"
    case .double, .float: return isUnique ? "CAST(\(key) AS REAL)" : "0.0"
    case .string: return isUnique ? "'repaired ' || Z_PK\(mark)" : "''"
    case .uri: return isUnique ? "'x-repaired:' || \(key)" : "''"
    case .uuid: return "CAST(substr(printf('%016d', \(key)), -16) AS BLOB)"
    case .binary: return attribute.isExternal ? "x'01'" : "x''"
    case .transformable, .objectID, .undefined, .composite: return "x''"
    }
  }

  /// A text as SQL.
  static func text(_ text: String) -> String {
    "'" + text.replacing("'", by: "''") + "'"
  }

  private static func literal(_ value: StoredDefault) -> String? {
    switch value {
    case .integer(let number): return String(number)
    case .real(let number): return number.isFinite ? "\(number)" : nil
    case .text(let text): return Self.text(text)
    case .blob(let bytes):
      let digits = bytes.map { byte in
        (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
      return "x'\(digits.joined())'"
    }
  }

  // MARK: Uniqueness

  /// Leaves each value of a constraint to the row with the lowest key among those of which nothing is doubtful,
  /// or else among all. What mends one constraint may break another
  /// that has the same attribute.
  ///
  /// - Returns: Whether rows were changed.
  func mendUniqueness() throws -> Bool {
    for pass in 0..<Self.mostPasses {
      guard try mendUniqueness(usesPlaceholders: pass < Self.mostPasses - 1) else {
        return pass > 0
      }
    }
    return true
  }

  /// - Returns: Whether rows were changed.
  private func mendUniqueness(usesPlaceholders: Bool) throws -> Bool {
    var isChanged = false
    for entity in hierarchy.order {
      for names in hierarchy[entity]?.uniquenessConstraints ?? [] {
        let columns = names.compactMap { binding.column(of: $0, in: entity) }
        guard let table = binding.table(of: entity), columns.count == names.count,
          !columns.isEmpty
        else { continue }
        let listed = columns.map(quoted).joined(separator: ", ")
        let present = columns.map { "\(quoted($0)) IS NOT NULL" }.joined(separator: " AND ")
        // The index is over the whole table, other entities' rows included. A value that was lost gives way.
        let replaced = "SELECT key FROM temp.replaced WHERE name = \(Self.text(table.name))"
        let doubted = DoubtedRows.condition(table.name, key: "Z_PK")
        let repeated = """
          SELECT Z_PK FROM (
            SELECT Z_PK, row_number() OVER (
                     PARTITION BY \(listed) ORDER BY Z_PK IN (\(replaced)), \(doubted), Z_PK) AS n
              FROM \(quoted(table.name)) WHERE \(present))
           WHERE n > 1
          """
        var keys = try keys(repeated)
        guard !keys.isEmpty else { continue }
        isChanged = true
        let properties = names.map { hierarchy.property($0, of: entity)?.property }
        if let optional = properties.lastIndex(where: { $0?.traits.isOptional == true }) {
          try clear(names[optional], of: entity, repeated, keys, in: table.name)
        } else {
          var unplaced: String?
          if usesPlaceholders, let last = properties.lastIndex(where: { $0?.attribute != nil }),
            let attribute = properties[last]?.attribute
          {
            let (name, before) = (names[last], keys)
            unplaced = Self.unplaced
            keys = try place(repeated, attribute, columns[last], unique: listed, in: table.name)
            let placed = before.subtracting(keys)
            if !placed.isEmpty {
              lost.append(
                .init(
                  .value, entity: entity.rawValue, property: name, keys: placed,
                  "breaks a uniqueness constraint; it is a placeholder in all but one object, "
                    + "since it is required"))
            }
            if keys.isEmpty { continue }
          }
          // As where its object is lost.
          if let reference = properties.lastIndex(where: { $0?.relationship != nil }) {
            try clear(names[reference], of: entity, unplaced ?? repeated, keys, in: table.name)
            continue
          }
          try connection.execute(
            "DELETE FROM \(quoted(table.name)) WHERE Z_PK IN (\(unplaced ?? repeated))")
          lost.append(
            .init(
              .object, entity: table.root.rawValue, keys: keys,
              "break the uniqueness constraint of \(names.joined(separator: ", ")) of \(entity), "
                + "none of which may be absent; one object is kept"))
        }
      }
    }
    return isChanged
  }

  /// Takes away what breaks a constraint.
  ///
  /// - Parameter rows: A query for `keys`.
  private func clear(
    _ name: String, of entity: EntityName, _ rows: String, _ keys: KeyRanges, in table: String
  ) throws {
    guard let column = binding.column(of: name, in: entity) else { return }
    let columns = [column, binding.orderColumn(of: name, in: entity)].compactMap { $0 }
    try connection.execute(
      "UPDATE \(quoted(table)) SET \(columns.map { "\(quoted($0)) = NULL" }.joined(separator: ", ")) "
        + "WHERE Z_PK IN (\(rows))")
    let isReference = hierarchy.property(name, of: entity)?.property.relationship != nil
    if isReference { noteCleared(keys, table, column) }
    lost.append(
      .init(
        isReference ? .reference : .value, entity: entity.rawValue, property: name, keys: keys,
        "breaks a uniqueness constraint; it is absent in all but one object"))
  }

  /// Gives rows placeholders that no other row has, where there is room for them.
  ///
  /// - Parameter rows: A query for their keys.
  /// - Returns: Those for which there is no room; so does ``unplaced``.
  private func place(
    _ rows: String, _ attribute: AttributeDescription, _ column: String, unique columns: String,
    in table: String
  ) throws -> KeyRanges {
    try connection.execute(
      """
      CREATE TEMP TABLE IF NOT EXISTS unplaced (key INTEGER PRIMARY KEY);
      DELETE FROM temp.unplaced;
      INSERT INTO temp.unplaced \(rows)
      """)
    for attempt in 0..<Self.mostAttempts {
      let value = placeholder(attribute, isUnique: true, attempt: attempt)
      try connection.execute(
        """
        UPDATE \(quoted(table)) SET \(quoted(column)) = \(value)
         WHERE Z_PK IN (\(Self.unplaced));
        DELETE FROM temp.unplaced WHERE key NOT IN (
          SELECT Z_PK FROM (
            SELECT Z_PK, row_number() OVER (
                     PARTITION BY \(columns) ORDER BY Z_PK IN (\(Self.unplaced)), Z_PK) AS n
              FROM \(quoted(table)))
           WHERE n > 1)
        """)
      if try keys(Self.unplaced).isEmpty { break }
    }
    return try keys(Self.unplaced)
  }

  private static let unplaced = "SELECT key FROM temp.unplaced"
  private static let mostAttempts = 16
  private static let mostPasses = 4
}
