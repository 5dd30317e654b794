import Foundation
import GodwitExpressions
import GodwitKeyedArchive
import GodwitObjectModel

/// Reads `xcmapping.xml`, Xcode's source form of a mapping model: a Core Data XML store.
///
/// Only what can be reached from the one `XDDEVMAPPINGMODEL` counts: most files carry objects that
/// an edit left behind. Object order is random, so mappings go by their number and rows by name.
///
/// Source: `core-data-migration.md` §3.2.
struct XcodeMappingFile {
  /// 64 MiB; the largest file seen has 2. Nearly all of it is Xcode's copies of the two models.
  static let byteLimit = 64 << 20

  private let file: String
  private var objects: [String: MarkupElement] = [:]

  static func read(_ bytes: [UInt8], file: String) throws -> MappingDocument {
    guard bytes.count <= byteLimit else {
      throw MappingError.unreadable(file: file, reason: "it is larger than \(byteLimit) bytes")
    }
    let root: MarkupElement
    do {
      root = try MarkupElement(xml: bytes)
    } catch {
      throw MappingError.unreadable(
        file: file, reason: (error as? ArchiveError)?.reason ?? "\(error)")
    }
    return try XcodeMappingFile(root, file: file).document(root)
  }

  private init(_ root: MarkupElement, file: String) throws(MappingError) {
    self.file = file
    guard root.name == "database" else {
      throw .unreadable(file: file, reason: "its first element is not <database>")
    }
    for object in root.children(named: "object") {
      guard let id = object["id"] else { continue }
      guard objects.updateValue(object, forKey: id) == nil else {
        throw .unreadable(
          file: file, reason: "two of its objects have the id \(id.debugDescription)")
      }
    }
  }

  private func document(_ root: MarkupElement) throws(MappingError) -> MappingDocument {
    let models = root.children(named: "object").filter { $0["type"] == "XDDEVMAPPINGMODEL" }
    guard models.count == 1 else {
      throw .unreadable(file: file, reason: "it holds \(models.count) mapping models, not one")
    }
    let model = models[0]
    var numbered: [(number: Int, entry: MappingDocument.Entry)] = []
    var budget = MappingBudget(file: file)
    let mappings = try targets(
      of: "entitymappings", in: model, type: "XDDEVENTITYMAPPING", &budget)
    try budget.check(entityMappings: mappings.count)
    for object in mappings {
      let number = text("mappingnumber", of: object).flatMap { Int($0) } ?? 0
      numbered.append((number, try entry(object, &budget)))
    }
    // Two mappings with one number keep the order of their names.
    numbered.sort {
      $0.number != $1.number
        ? $0.number < $1.number
        : $0.entry.effectiveName.precedesInBytes($1.entry.effectiveName)
    }
    return MappingDocument(
      entityMappings: numbered.map(\.entry), sourceModelPath: text("sourcemodelpath", of: model),
      destinationModelPath: text("destinationmodelpath", of: model))
  }

  private func entry(
    _ object: MarkupElement, _ budget: inout MappingBudget
  ) throws(MappingError) -> MappingDocument.Entry {
    var entry = MappingDocument.Entry(
      name: text("name", of: object), source: text("sourcename", of: object).map { EntityName($0) },
      destination: text("destinationname", of: object).map { EntityName($0) },
      policy: text("migrationpolicyclassname", of: object), others: .none)
    let name = entry.effectiveName
    if let filter = text("sourcefilterpredicatestring", of: object) {
      do {
        entry.selection = .filter(try PredicateExpression(parsing: filter))
      } catch {
        throw .badExpression(mapping: name, property: nil, error)
      }
    }
    if raw("sourceexpressiondata", of: object)?.isEmpty == false {
      if text("autogenerateexpression", of: object) == "1" {
        let left = try? sourceSelection(of: object, entry)
        if left != .all, left != entry.selection {
          entry.unusedExpressions.append(
            .init(
              property: nil,
              reason: "the source expression is marked automatic (autogenerateexpression)"))
        }
      } else if let selection = try sourceSelection(of: object, entry) {
        entry.selection = selection
      }
    }
    entry.userInfo = try userInfo(of: object, &budget)
    let attributes = try targets(
      of: "attributemappings", in: object, type: "XDDEVATTRIBUTEMAPPING", &budget)
    let relationships = try targets(
      of: "relationshipmappings", in: object, type: "XDDEVRELATIONSHIPMAPPING", &budget)
    try budget.take(rows: attributes.count + relationships.count)
    for row in attributes {
      let property = try propertyName(of: row, mapping: name)
      let value = try entry.evaluated(property) { () throws(MappingError) in
        try writtenValue(of: row, mapping: name, property: property)
      }
      entry.attributes.append(
        .init(property, value ?? .automatic, userInfo: try userInfo(of: row, &budget)))
    }
    for row in relationships {
      let property = try propertyName(of: row, mapping: name)
      let value = try entry.evaluated(property) { () throws(MappingError) in
        if let written = try writtenValue(of: row, mapping: name, property: property) {
          return written
        }
        return try keyPathValue(of: row, mapping: name, property: property)
      }
      entry.relationships.append(
        .init(property, value ?? .unset, userInfo: try userInfo(of: row, &budget)))
    }
    entry.attributes.sort { $0.name.precedesInBytes($1.name) }
    entry.relationships.sort { $0.name.precedesInBytes($1.name) }
    return entry
  }

  /// - Returns: nil where the data is empty.
  private func sourceSelection(
    of object: MarkupElement, _ entry: MappingDocument.Entry
  ) throws(MappingError) -> SourceSelection? {
    guard let bytes = try bytes("sourceexpressiondata", of: object) else { return nil }
    let written = try expression(bytes, mapping: entry.effectiveName, property: nil)
    return try ArchivedSelection(file: file, mapping: entry.effectiveName).selection(
      written, source: entry.source)
  }

  /// An archived expression wins over everything else in the row, whatever its
  /// `autogenerateexpression` says (§3.3, rule 4a).
  private func writtenValue(
    of row: MarkupElement, mapping: String, property: String
  ) throws(MappingError) -> MappingDocument.Row.Value? {
    guard let bytes = try bytes("valueexpressiondata", of: row) else { return nil }
    return .expression(try expression(bytes, mapping: mapping, property: property))
  }

  private func keyPathValue(
    of row: MarkupElement, mapping: String, property: String
  ) throws(MappingError) -> MappingDocument.Row.Value {
    var path: ValueExpression?
    if let written = text("sourcekeypath", of: row) {
      do {
        path = try ValueExpression(parsing: written)
      } catch {
        throw .badExpression(mapping: mapping, property: property, error)
      }
    }
    if let maker = text("sourcemappingname", of: row) {
      return .expression(
        .destinationInstances(ofMapping: maker, from: path ?? .sourceKeyPath(property)))
    }
    return path.map { .along($0) } ?? .automatic
  }
}

extension MappingDocument.Entry {
  /// What a row's expression is read as. One that is never evaluated need not be readable.
  mutating func evaluated<Value>(
    _ property: String, _ read: () throws(MappingError) -> Value?
  ) throws(MappingError) -> Value? {
    do {
      return try read()
    } catch {
      guard evaluatesNothing else { throw error }
      unusedExpressions.append(
        .init(property: property, reason: "the mapping has no source objects, and \(error)"))
      return nil
    }
  }
}

// MARK: - Objects and their values

extension XcodeMappingFile {
  /// What a merge has torn is no mapping model: a row that is left out would take its values along.
  private func targets(
    of relationship: String, in object: MarkupElement, type: String, _ budget: inout MappingBudget
  ) throws(MappingError) -> [MarkupElement] {
    guard
      let references = object.children(named: "relationship").first(where: {
        $0["name"] == relationship
      })?["idrefs"]
    else { return [] }
    var targets: [MarkupElement] = []
    for id in references.split(whereSeparator: \.isWhitespace).map(String.init) {
      guard let found = objects[id], found["type"] == type else {
        throw .unreadable(
          file: file,
          reason: "\(relationship) of \((object["id"] ?? "").debugDescription) refers to "
            + "\(id.debugDescription), and no object of the type \(type) has that id")
      }
      guard budget.claim(id) else {
        throw .unreadable(
          file: file, reason: "two of its objects have the object \(id.debugDescription)")
      }
      targets.append(found)
    }
    return targets
  }

  private func raw(_ name: String, of object: MarkupElement) -> String? {
    object.children(named: "attribute").first { $0["name"] == name }?.text
  }

  /// The property of the destination that a row is about.
  private func propertyName(
    of row: MarkupElement, mapping: String
  ) throws(MappingError) -> String {
    guard let name = text("name", of: row) else {
      throw .unreadable(file: file, reason: "\(mapping): a property mapping names no property")
    }
    return name
  }

  /// A string attribute; an empty one counts as absent.
  private func text(_ name: String, of object: MarkupElement) -> String? {
    guard let raw = raw(name, of: object), !raw.isEmpty else { return nil }
    return Self.unescaped(raw)
  }

  /// Xcode writes `<`, `>` and `&` as `\uXXXX` with the two bytes of the code unit swapped:
  /// `\u3c00` is U+003C.
  static func unescaped(_ text: String) -> String {
    guard text.utf8.contains(UInt8(ascii: "\\")) else { return text }
    var units: [UInt16] = []
    let bytes = Array(text.utf16)
    var place = 0
    while place < bytes.count {
      if bytes[place] == 0x5C, place + 5 < bytes.count, bytes[place + 1] == 0x75,
        let unit = hexadecimal(bytes[(place + 2)..<(place + 6)])
      {
        units.append(unit.byteSwapped)
        place += 6
      } else {
        units.append(bytes[place])
        place += 1
      }
    }
    return String(decoding: units, as: UTF16.self)
  }

  private static func hexadecimal(_ digits: ArraySlice<UInt16>) -> UInt16? {
    var value: UInt16 = 0
    for digit in digits {
      switch digit {
      case 0x30...0x39: value = value << 4 | (digit - 0x30)
      case 0x41...0x46: value = value << 4 | (digit - 0x37)
      case 0x61...0x66: value = value << 4 | (digit - 0x57)
      default: return nil
      }
    }
    return value
  }

  private func bytes(
    _ name: String, of object: MarkupElement
  ) throws(MappingError) -> [UInt8]? {
    guard let raw = raw(name, of: object), !raw.isEmpty else { return nil }
    guard let data = Data(base64Encoded: raw, options: .ignoreUnknownCharacters) else {
      throw .unreadable(file: file, reason: "\(name) is not Base64")
    }
    return data.isEmpty ? nil : Array(data)
  }

  private func expression(
    _ bytes: [UInt8], mapping: String, property: String?
  ) throws(MappingError) -> ValueExpression {
    let root: ArchivedObject
    do {
      root = try KeyedArchive(bytes: bytes).root()
    } catch {
      throw .unreadable(file: file, reason: "\(mapping), \(property ?? "source"): \(error)")
    }
    return try ArchivedSelection(file: file, mapping: mapping).expression(root, property: property)
  }

  private func userInfo(
    of object: MarkupElement, _ budget: inout MappingBudget
  ) throws(MappingError) -> [String: String] {
    guard let bytes = try bytes("userinfodata", of: object) else { return [:] }
    let archive: KeyedArchive
    do {
      archive = try KeyedArchive(bytes: bytes)
    } catch {
      throw .unreadable(file: file, reason: "user info: \(error)")
    }
    return try UserInfo.read(archive[top: "root"], file: file, &budget)
  }
}
