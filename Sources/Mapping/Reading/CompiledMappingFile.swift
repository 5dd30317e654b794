import GodwitExpressions
import GodwitKeyedArchive
import GodwitObjectModel

/// Reads a `.cdm`: a keyed archive of an `NSMappingModel`.
///
/// Source: `core-data-migration.md` §3.4.
enum CompiledMappingFile {
  static func read(_ bytes: [UInt8], file: String) throws -> MappingDocument {
    let root: ArchivedObject
    do {
      root = try KeyedArchive(bytes: bytes).root()
    } catch {
      throw MappingError.unreadable(
        file: file, reason: (error as? ArchiveError)?.reason ?? "\(error)")
    }
    guard root.className == "NSMappingModel" else {
      throw MappingError.unreadable(
        file: file, reason: "it archives an object of class \(root.className)")
    }
    var entries: [MappingDocument.Entry] = []
    let mappings =
      try value(root, "NSEntityMappings", of: "the mapping model", file, \.elements) ?? []
    var budget = MappingBudget(file: file)
    try budget.check(entityMappings: mappings.count)
    for value in mappings {
      guard let object = value.object, object.className == "NSEntityMapping" else {
        throw MappingError.unreadable(file: file, reason: "an entity mapping is of another class")
      }
      entries.append(try entry(object, file: file, &budget))
    }
    return MappingDocument(entityMappings: entries)
  }

  private static func entry(
    _ object: ArchivedObject, file: String, _ budget: inout MappingBudget
  ) throws(MappingError) -> MappingDocument.Entry {
    let name = try text(object, "NSMappingName", of: "an entity mapping", file)
    let place = name ?? "an entity mapping without a name"
    func hash(_ key: String) throws(MappingError) -> VersionHash? {
      try value(object, key, of: place, file) { $0.data.flatMap { VersionHash(bytes: $0) } }
    }
    var entry = MappingDocument.Entry(
      name: name,
      kind: try kind(
        try value(object, "NSMappingType", of: place, file, \.integer) ?? 0, file: file),
      source: try text(object, "NSSourceEntityName", of: place, file).map { EntityName($0) },
      destination: try text(object, "NSDestinationEntityName", of: place, file)
        .map { EntityName($0) },
      policy: try text(object, "NSEntityMigrationPolicyClassName", of: place, file),
      sourceHash: try hash("NSSourceEntityVersionHash"),
      destinationHash: try hash("NSDestinationEntityVersionHash"), others: .none,
      userInfo: try UserInfo.read(object["NSUserInfo"], file: file, &budget))
    // Custom without a class of its own is Core Data's own policy.
    if entry.kind != .custom, let problem = entry.kindProblem {
      throw .unreadable(file: file, reason: "\(entry.effectiveName): \(problem)")
    }
    let archived = ArchivedSelection(file: file, mapping: entry.effectiveName)
    if let source = try value(object, "NSSourceExpression", of: place, file, \.object) {
      entry.selection = try archived.selection(
        try archived.expression(source, property: nil), source: entry.source)
    }
    func elements(_ key: String) throws(MappingError) -> [ArchivedValue] {
      try value(object, key, of: place, file, \.elements) ?? []
    }
    entry.attributes = try rows(elements("NSAttributeMappings"), of: &entry, archived, &budget)
    entry.relationships = try rows(
      elements("NSRelationshipMappings"), of: &entry, archived, &budget)
    return entry
  }

  /// What an object has under a key; nil where it has nothing.
  ///
  /// - Parameters:
  ///   - place: Where the object stands, for a message.
  ///   - read: Nil for a value of another kind: an edit, or a damaged file.
  private static func value<Value>(
    _ object: ArchivedObject, _ key: String, of place: String, _ file: String,
    _ read: (ArchivedValue) -> Value?
  ) throws(MappingError) -> Value? {
    guard let found = object[key] else { return nil }
    guard let value = read(found) else {
      throw .unreadable(file: file, reason: "\(place): \(key) holds no such value")
    }
    return value
  }

  private static func text(
    _ object: ArchivedObject, _ key: String, of place: String, _ file: String
  ) throws(MappingError) -> String? {
    nonEmpty(try value(object, key, of: place, file, \.string))
  }

  private static func nonEmpty(_ text: String?) -> String? { text == "" ? nil : text }

  /// Source: `core-data-migration.md` §3.1.
  private static func kind(
    _ number: Int64, file: String
  ) throws(MappingError) -> MappingDocument.Kind? {
    switch number {
    case 0: nil
    case 1: .custom
    case 2: .add
    case 3: .remove
    case 4: .copy
    case 5: .transform
    default: throw .unreadable(file: file, reason: "there is no mapping type \(number)")
    }
  }

  private static func rows(
    _ mappings: [ArchivedValue], of entry: inout MappingDocument.Entry,
    _ archived: ArchivedSelection, _ budget: inout MappingBudget
  ) throws(MappingError) -> [MappingDocument.Row] {
    try budget.take(rows: mappings.count)
    var rows: [MappingDocument.Row] = []
    for mapping in mappings {
      let (place, file) = (archived.mapping, archived.file)
      guard let object = mapping.object,
        let name = try text(object, "NSDestinationPropertyName", of: place, file)
      else {
        throw .unreadable(file: file, reason: "\(place): a property mapping names no property")
      }
      var value = MappingDocument.Row.Value.unset
      if let expression = try Self.value(
        object, "NSValueExpression", of: "\(place), \(name)", file, \.object)
      {
        let read = try entry.evaluated(name) { () throws(MappingError) in
          try archived.expression(expression, property: name)
        }
        if let read { value = .expression(read) }
      }
      rows.append(
        .init(
          name, value,
          userInfo: try UserInfo.read(object["NSUserInfo"], file: archived.file, &budget)))
    }
    return rows
  }
}

/// Reads archived expressions of one entity mapping and says where a bad one stands.
struct ArchivedSelection {
  let file: String
  let mapping: String

  func expression(
    _ object: ArchivedObject, property: String?
  ) throws(MappingError) -> ValueExpression {
    do {
      return try ExpressionArchive.value(object)
    } catch {
      switch error {
      case .unknownClass(let name):
        throw .unknownExpressionClass(mapping: mapping, property: property, className: name)
      case .malformed(let reason):
        throw .unreadable(file: file, reason: "\(mapping), \(property ?? "source"): \(reason)")
      }
    }
  }

  /// The usual fetch of all objects, or of those under a filter, is not kept as an expression.
  /// Source: `core-data-migration.md` §3.1, §3.3 rule 5.
  func selection(
    _ expression: ValueExpression, source: EntityName?
  ) throws(MappingError) -> SourceSelection {
    guard case .fetch(let request, let context, countOnly: false) = expression,
      context == .keyPath(base: .variable("manager"), keys: [.key("sourceContext")]),
      case .function(.variable("manager"), ManagerSelector.fetchRequest, let arguments) = request,
      arguments.count == 2, arguments[0] == .constant(.string(source?.rawValue ?? "")),
      case .constant(.string(let predicate)) = arguments[1]
    else { return .expression(expression) }
    do {
      let filter = try PredicateExpression(parsing: predicate)
      return filter == .constant(true) ? .all : .filter(filter)
    } catch {
      throw .badExpression(mapping: mapping, property: nil, error)
    }
  }
}

/// User info of mappings: texts by name.
enum UserInfo {
  static func read(
    _ value: ArchivedValue?, file: String, _ budget: inout MappingBudget
  ) throws(MappingError) -> [String: String] {
    guard let value, value != .null else { return [:] }
    guard let entries = value.entries else {
      throw .unreadable(file: file, reason: "a user info is not a dictionary")
    }
    try budget.take(rows: entries.count)
    var result: [String: String] = [:]
    for (key, value) in entries {
      guard let name = key.string else {
        throw .unreadable(file: file, reason: "a user info has a key that is not a string")
      }
      guard result[name] == nil else {
        throw .unreadable(
          file: file,
          reason:
            "a user info has two keys \(name), or keys that differ only in Unicode normalisation")
      }
      if let text = value.string {
        result[name] = text
      } else if case .boolean(let boolean) = value {
        result[name] = boolean ? "YES" : "NO"
      } else if let integer = value.integer {
        result[name] = String(integer)
      } else if let real = value.real {
        result[name] = real.description
      } else {
        throw .unreadable(file: file, reason: "the user info \(name) is neither text nor number")
      }
    }
    return result
  }
}
