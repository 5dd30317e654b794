import GodwitSQLite

extension StoreSoundness {
  /// An independent piece of the check: something to ask of the store's rows.
  ///
  /// It carries its own SQL, so that a worker needs neither model nor binding to run it, and jobs
  /// can be run side by side.
  package struct Job: Codable, Sendable, Equatable {
    /// What it looks for.
    package let aspect: StoreFinding.Kind
    /// Its number among the jobs of this aspect.
    package let index: Int
    let questions: [Question]
    /// All that is asked, where every row can be looked at by itself. Rows that keep it make the SQL
    /// needless.
    package internal(set) var reference: ReferenceRule?

    /// With the rule that makes all of its questions needless, if there is one.
    func proven(by rules: [String: ReferenceRule]) -> Job {
      guard case .rows(let source, _, _) = questions.first?.form,
        questions.allSatisfy({ ReferenceRule.proves.contains($0.kind) })
      else { return self }
      var job = self
      job.reference = rules[source]
      return job
    }
  }

  /// One thing that may be wrong.
  struct Question: Codable, Sendable, Equatable {
    enum Form: Codable, Sendable, Equatable {
      /// Rows of `source` for which `condition` is true. `key` is told of some of them.
      case rows(source: String, condition: String, key: String)
      /// Groups of rows: `source` gives one row for each.
      case groups(source: String)
      /// SQLite's own check of the whole file.
      case integrity
      /// Whether the indexes of one table hold exactly its rows, in order.
      case indexes(table: String)
    }

    var kind: StoreFinding.Kind
    var entity: String?
    var property: String?
    var message: String
    var form: Form
    /// For SQL, of ``Form/rows(source:condition:key:)`` about references: where a row's leads to. The same
    /// row may break the rule by another one later.
    var reference: String?

    /// Whether it is about several rows at a time.
    var isOfGroups: Bool { if case .groups = form { true } else { false } }

    /// The part of ``Form/rows(source:condition:key:)`` that questions of one scan share.
    fileprivate var source: String? {
      if case .rows(let source, _, _) = form { source } else { nil }
    }

    func finding(_ count: Int64, _ examples: [Int64] = []) -> StoreFinding {
      StoreFinding(
        kind: kind, entity: entity, property: property, message: message, count: count,
        examples: examples)
    }
  }

  /// SQLite's own check of the file, which needs no model.
  package static func file(of store: SourceStore) throws -> [StoreFinding] {
    try answer([wholeFile], store.connection)
  }

  static var wholeFile: Question {
    Question(kind: .file, message: "SQLite's integrity check fails", form: .integrity)
  }

  /// Runs a job.
  ///
  /// - Parameter connection: The store that the job was made for, or its private clone.
  package static func run(_ job: Job, on connection: Connection) throws -> [StoreFinding] {
    try answer(job.questions, connection)
  }

  /// A finding about a store that was changed in place, of the rows alone that did not break the rule before, or
  /// not by the same reference.
  ///
  /// - Parameter earlier: The store before the change, under the same model.
  /// - Returns: Its count is 0 where no row is new; nil for a finding that is not about single rows.
  package static func newRows(
    of finding: StoreFinding, in changed: StoreBinding, since earlier: StoreBinding
  ) throws -> StoreFinding? {
    let questions = jobs(changed, aspects: Set(StoreFinding.Kind.allCases)).flatMap(\.questions)
    guard let question = questions.first(where: { $0.finding(1).isSame(as: finding) }),
      case .rows(let source, let condition, let key) = question.form
    else { return nil }
    let rows = "SELECT \(key), \(question.reference ?? "NULL") FROM \(source) WHERE \(condition)"
    let connection = changed.store.connection
    try connection.execute(
      "DROP TABLE IF EXISTS temp.godwit_earlier; CREATE TEMP TABLE godwit_earlier (key, reference)")
    let insertion = try connection.prepare("INSERT INTO temp.godwit_earlier VALUES (?1, ?2)")
    let known = try earlier.store.connection.prepare(rows)
    while try known.step() {
      try insertion.bind(1, known.value(0))
      try insertion.bind(2, known.value(1))
      try insertion.run()
    }
    let new = "\(rows) EXCEPT SELECT key, reference FROM temp.godwit_earlier"
    return question.finding(
      try connection.rows("SELECT count(*) FROM (\(new))").first?.first?.integer ?? 0,
      try connection.rows("\(new) ORDER BY 1 LIMIT \(StoreFinding.mostExamples)")
        .compactMap { $0.first?.integer })
  }

  /// Columns of a result are limited to 2 000 and terms of an expression cost time.
  private static let questionsAScan = 200

  /// Answers questions over one source in one scan.
  static func answer(_ questions: [Question], _ connection: Connection) throws -> [StoreFinding] {
    var findings: [StoreFinding] = []
    var waiting = questions[...]
    while let first = waiting.first {
      switch first.form {
      case .integrity:
        findings += try integrity(first, connection)
        waiting = waiting.dropFirst()
      case .indexes(let table):
        findings += try indexes(first, of: table, connection)
        waiting = waiting.dropFirst()
      case .groups(let source):
        let count =
          try connection.rows("SELECT count(*) FROM (\(source))").first?.first?.integer ?? 0
        if count > 0 { findings.append(first.finding(count)) }
        waiting = waiting.dropFirst()
      case .rows(let source, _, _):
        let scan = waiting.prefix(questionsAScan).prefix { $0.source == source }
        findings += try rows(Array(scan), source, connection)
        waiting = waiting.dropFirst(scan.count)
      }
    }
    return findings
  }

  private static func rows(_ questions: [Question], _ source: String, _ connection: Connection)
    throws -> [StoreFinding]
  {
    let conditions = questions.compactMap { question -> (condition: String, key: String)? in
      guard case .rows(_, let condition, let key) = question.form else { return nil }
      return (condition, key)
    }
    let sums = conditions.map { "sum(\($0.condition))" }.joined(separator: ", ")
    let counts = try connection.rows("SELECT \(sums) FROM \(source)").first ?? []
    var findings: [StoreFinding] = []
    for (place, question) in questions.enumerated() where place < counts.count {
      guard let count = counts[place].integer, count > 0 else { continue }
      let (condition, key) = conditions[place]
      let examples = try connection.rows(
        "SELECT \(key) FROM \(source) WHERE \(condition) LIMIT \(StoreFinding.mostExamples)"
      ).compactMap { $0.first?.integer }
      findings.append(question.finding(count, examples))
    }
    return findings
  }

  /// Messages beyond these say nothing new.
  private static let mostIntegrityMessages = 20

  private static func integrity(_ question: Question, _ connection: Connection) throws
    -> [StoreFinding]
  {
    do {
      // SQLite's full check tells what is wrong, if anything is.
      let trees = try RawTrees(connection)
      if try trees?.areWhole() == true { return [] }
      let rows = try connection.rows("PRAGMA integrity_check(\(mostIntegrityMessages))")
      let findings = try report(question, rows, connection).map { explained($0, connection) }
      guard findings.isEmpty else { return findings }
      return try oddEntries(question, trees) + surplusValues(trees)
    } catch let error as SQLiteError where error.isDamage {
      return [explained(damaged(question, error), connection)]
    } catch let error as SQLiteError where error.isRefused {
      return [unreadable("The file is not checked by SQLite as a whole", error)]
    }
  }

  /// Names the tables and keys that damaged pages hold.
  private static func explained(_ finding: StoreFinding, _ connection: Connection) -> StoreFinding {
    var finding = finding
    let pages = DamagedPages.search(connection)
    if !pages.isEmpty { finding.message += ". " + DamagedPages.text(of: pages) }
    return finding
  }

  private static func indexes(
    _ question: Question, of table: String, _ connection: Connection
  ) throws -> [StoreFinding] {
    do {
      let trees = try RawTrees(connection)
      if try trees?.isWhole(table: table) == true { return [] }
      // Source: https://sqlite.org/pragma.html#pragma_integrity_check, since 3.33.0.
      let rows = try connection.rows("PRAGMA integrity_check(\(quoted(table)))")
      let findings = try report(question, rows, connection)
      return try findings.isEmpty ? oddEntries(question, of: table, trees) : findings
    } catch let error as SQLiteError where error.isDamage {
      return [damaged(question, error)]
    } catch let error as SQLiteError where error.isRefused {
      return [unreadable("The indexes of \(table) are not compared with its rows", error)]
    }
  }

  /// An index by the application's own collation or function. Every row is read without indexes.
  private static func unreadable(_ what: String, _ error: SQLiteError) -> StoreFinding {
    StoreFinding(
      kind: .note,
      message: "\(what), since SQLite cannot read an index without the application: "
        + error.message)
  }

  /// SQLite's messages name pages, tables and indexes, never values.
  private static func report(
    _ question: Question, _ rows: [[SQLiteValue]], _ connection: Connection
  ) throws -> [StoreFinding] {
    let messages = rows.compactMap { $0.first?.text }
    if messages == ["ok"] { return [] }
    try connection.requireEveryPageRead(in: "PRAGMA integrity_check")
    var finding = question.finding(Int64(messages.count))
    finding.message += messages.first.map { ": " + $0.prefix(200) } ?? ""
    return [finding]
  }

  private static func damaged(_ question: Question, _ error: SQLiteError) -> StoreFinding {
    var finding = question.finding(1)
    finding.message += ": " + error.message
    return finding
  }
}
