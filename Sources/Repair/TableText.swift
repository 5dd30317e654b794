import GodwitDurableFiles

/// The columns that the damaged text of a `CREATE TABLE` statement still gives, word by word.
///
/// What is looked for are names of the model: each that is still there fixes its place among the values
/// of a record. The model's own order proves nothing, for Core Data appends columns where it migrates a
/// store in place.
struct TableText {
  typealias Wanted = (name: String, type: String)

  private(set) var columns: [SchemaSalvage.Column] = []
  /// How many of the model's columns have a place that the text gives.
  private(set) var foundCount = 0
  /// Names that are damaged, and whose they must be.
  private(set) var renamings: [(from: String, to: String)] = []
  /// Whether columns have their place from the model's order alone.
  private(set) var isGuessed = false
  /// Whether a column that the text seems to give is none: the records have no value for it.
  private(set) var hasFalseColumns = false

  private static let constraints: Set<String> = [
    "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "CONSTRAINT",
  ]

  /// - Parameters:
  ///   - text: nil where nothing of it is left.
  ///   - wanted: The model's columns, in its order.
  ///   - fields: The values that a record has; 0 where there is none.
  ///   - isStatement: Whether SQLite can read it all the same: what it lacks may never have been there.
  init(
    _ text: String?, table: String, wanted: [Wanted], fields: Int, isStatement: Bool = false
  ) {
    let names = Set(wanted.map(\.name))
    var found: Set<String> = []
    for (number, part) in (text ?? "").parts(between: ",").filter({ !$0.isEmpty }).enumerated() {
      var words = Self.joined(Self.words(part[...]), names)
      if number == 0 { words = Self.afterHead(words, table: table, names) }
      guard let first = words.first else { continue }
      if Self.constraints.contains(first.uppercased()) { break }
      let upper = Set(words.map { $0.uppercased() })
      if upper.contains("GENERATED") || upper.contains("AS") {
        // A virtual column has no value in a record.
        if upper.contains("STORED") { columns.append(Self.column(words)) }
        continue
      }
      let known = words.indices.filter { names.contains(words[$0]) }
      let new = known.filter { found.insert(words[$0]).inserted }
      guard let start = new.first else {
        if known.isEmpty { columns.append(Self.column(words)) }
        continue
      }
      if start > 1 { columns.append(Self.column(words)) }
      for place in new { columns.append(Self.column(Array(words[place...]))) }
    }
    match(wanted, found, fields: fields, isStatement: isStatement)
    // What is left of a type may be anything, a keyword of SQL's included.
    let types = Dictionary(
      wanted.map { ($0.name, $0.type) }, uniquingKeysWith: { first, _ in first })
    let known = Set(types.values)
    for place in columns.indices {
      columns[place].type =
        types[columns[place].name]
        ?? (known.contains(columns[place].type) ? columns[place].type : "")
    }
  }

  /// Only what stands between words divides them, and Core Data writes spaces and parentheses: one bit makes any
  /// other byte of a letter.
  static func words(_ part: Substring) -> [String] {
    part.utf8.split { " \t\n\r()".utf8.contains($0) }.map { String(decoding: $0, as: UTF8.self) }
  }

  /// Puts the two parts of a name together of which one byte has become what divides words.
  private static func joined(_ words: [String], _ names: Set<String>) -> [String] {
    var words = words
    for place in words.indices.dropLast().reversed() {
      let name = words[place] + "\t" + words[place + 1]
      if names.contains(where: { isNear(name, $0) && $0.utf8.count == name.utf8.count }) {
        words.replaceSubrange(place...place + 1, with: [name])
      }
    }
    return words
  }

  /// What follows on `CREATE TABLE name (`, however damaged.
  private static func afterHead(
    _ words: [String], table: String, _ names: Set<String>
  ) -> [String] {
    if let place = words.prefix(4).firstIndex(of: table) {
      return Array(words[(place + 1)...])
    }
    if let place = words.firstIndex(where: names.contains) { return Array(words[place...]) }
    return Array(words.dropFirst(3))
  }

  private static func column(_ words: [String]) -> SchemaSalvage.Column {
    .init(name: words[0], type: words.count > 1 ? words[1] : "")
  }

  // MARK: Names that are damaged

  private mutating func match(
    _ wanted: [Wanted], _ found: Set<String>, fields: Int, isStatement: Bool
  ) {
    // The text ends within a word.
    if fields > columns.count, let last = columns.last, last.type.isEmpty,
      !found.contains(last.name), !wanted.contains(where: { Self.isNear(last.name, $0.name) })
    {
      columns.removeLast()
    }
    var missing = wanted.filter { !found.contains($0.name) }
    var strange = columns.indices.filter { !found.contains(columns[$0].name) }
    foundCount = found.count
    for (number, column) in missing.enumerated().reversed() {
      let near = strange.filter { Self.isNear(columns[$0].name, column.name) }
      guard near.count == 1, let place = near.first else { continue }
      rename(place, column)
      missing.remove(at: number)
      strange.removeAll { $0 == place }
    }
    if fields > 0, columns.count > fields {
      let last = columns.indices.last { !strange.contains($0) } ?? -1
      let false_ = strange.filter { $0 < last && columns[$0].type.isEmpty }
        .prefix(columns.count - fields)
      for place in false_.reversed() {
        columns.remove(at: place)
        strange = strange.filter { $0 != place }.map { $0 > place ? $0 - 1 : $0 }
        hasFalseColumns = true
      }
    }
    if missing.count == 1, strange.count == 1,
      missing[0].type == columns[strange[0]].type
        || columns[strange[0]].type.isEmpty && !isStatement
    {
      rename(strange[0], missing[0])
      return
    }
    // What follows takes places by the model's order, which is certain where there is only one.
    for place in strange {
      let number = missing.firstIndex { column in
        column.type == columns[place].type
          && (!isStatement || place < wanted.count && wanted[place].name == column.name)
      }
      guard let number else { continue }
      rename(place, missing.remove(at: number))
      isGuessed = true
    }
    let room = fields > 0 ? fields - columns.count : isStatement ? 0 : missing.count
    guard room > 0 else { return }
    if missing.count != 1 || room != 1 { isGuessed = true }
    for column in missing.prefix(room) {
      columns.append(.init(name: column.name, type: column.type))
    }
    for number in 0..<max(0, room - missing.count) {
      // Without a name, its values are lost; the rows are not.
      columns.append(.init(name: "Z_UNNAMED\(number + 1)", type: ""))
    }
  }

  private mutating func rename(_ place: Int, _ column: Wanted) {
    renamings.append((columns[place].name, column.name))
    columns[place] = .init(name: column.name, type: column.type)
    foundCount += 1
  }

  /// Whether one byte tells the names apart, or the space behind the name is damaged.
  private static func isNear(_ name: String, _ wanted: String) -> Bool {
    let (a, b) = (Array(name.utf8), Array(wanted.utf8))
    if a.count > b.count { return a.starts(with: b) }
    return a.count == b.count && zip(a, b).count { $0 != $1 } == 1
  }
}
