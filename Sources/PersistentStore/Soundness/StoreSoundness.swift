import GodwitObjectModel
import GodwitSQLite

/// Whether a store keeps the rules that Core Data's own stores keep.
///
/// Aspects are ``StoreFinding/Kind``s. What is in the control tables and the schema is asked at
/// once, through ``structure(of:)``; what is in the rows through jobs, each independent of the
/// others. Rules that every row keeps by itself are ``RowRules``, too.
///
/// Source: `core-data-sqlite-format.md`, and what real stores break of it.
package enum StoreSoundness {
  /// Everything, in the order of aspects.
  ///
  /// - Parameters:
  ///   - pattern: The engine for regular expressions of validation rules.
  ///   - needsExternalFolder: As in ``externalFiles(of:in:needsFolder:)``.
  package static func check(
    _ binding: StoreBinding, pattern: PatternCompiler? = nil, needsExternalFolder: Bool = false
  ) throws -> [StoreFinding] {
    var findings = try structure(of: binding)
    for job in jobs(binding, aspects: Set(StoreFinding.Kind.allCases)) {
      findings += try run(job, on: binding.store.connection)
    }
    findings += try externalFiles(of: binding, needsFolder: needsExternalFolder)
    findings += try validation(of: binding, pattern: pattern)
    let places = Dictionary(
      uniqueKeysWithValues: StoreFinding.Kind.allCases.enumerated().map { ($1, $0) })
    return findings.enumerated().sorted { a, b in
      (places[a.element.kind] ?? 0, a.offset) < (places[b.element.kind] ?? 0, b.offset)
    }.map(\.element)
  }

  /// Jobs over the rows.
  ///
  /// - Parameters:
  ///   - aspects: What is asked, of single rows too; by default what more than one row decides, and what
  ///     concerns the pairs of join tables.
  ///   - findsKeys: False where keys that are no integers, entity columns that disagree and members of
  ///     ordered relationships without a place are found elsewhere, so that each is counted once.
  /// - Returns: The same jobs in the same order for the same store and model.
  package static func jobs(
    _ binding: StoreBinding, aspects: Set<StoreFinding.Kind>? = nil, findsKeys: Bool = true
  ) -> [Job] {
    let input = JobInput(form: binding.form, aspects: aspects, findsKeys: findsKeys)
    return recentJobs.output(for: input) {
      makeJobs(binding, aspects: aspects, findsKeys: findsKeys)
    }
  }

  private struct JobInput: Equatable, Sendable {
    let form: StoreBinding.Form
    let aspects: Set<StoreFinding.Kind>?
    let findsKeys: Bool
  }

  private static let recentJobs = RecentResults<JobInput, [Job]>(limit: 4)

  private static func makeJobs(
    _ binding: StoreBinding, aspects: Set<StoreFinding.Kind>?, findsKeys: Bool
  ) -> [Job] {
    var scans: [[Question]] = []
    let questions = RowQuestions(binding)
    scans.append([wholeFile])
    if let aspects {
      for table in binding.layout.tables where binding.table(of: table.root) != nil {
        scans.append(questions.unknownEntityRows(table))
        for entity in binding.hierarchy.concrete(of: table.root) {
          scans.append(questions.ofEntity(entity, in: table))
        }
      }
      for (entity, relationship) in binding.relationships where !relationship.isToMany {
        scans.append(questions.toOne(relationship, of: entity))
      }
      scans += pairScans(binding, questions)
      return number(scans.flatMap { $0 }.filter { aspects.contains($0.kind) })
    }
    var rules = memberRules(binding, questions)
    var keys: [[Question]] = []
    for (entity, relationship) in binding.relationships where !relationship.isToMany {
      let asked = questions.toOne(relationship, of: entity)
      scans.append(asked.filter { [.inverse, .note].contains($0.kind) || $0.isOfGroups })
      guard findsKeys else { continue }
      rules += [questions.toOneRule(relationship, of: entity)].compactMap(\.self)
      keys.append(
        asked.filter { [.type, .entityColumn, .order].contains($0.kind) && !$0.isOfGroups })
    }
    scans += pairScans(binding, questions)
    let sources = bySource(rules)
    // What a look at each row answers, and then what takes SQL.
    return number(keys.flatMap { $0 }, scans.flatMap { $0 }).map { $0.proven(by: sources) }
  }

  /// The references of members of to-many relationships without inverse, and of pairs.
  static func memberRules(_ binding: StoreBinding, _ questions: RowQuestions) -> [ReferenceRule] {
    let owned = binding.relationships.filter {
      $0.relationship.isToMany && $0.relationship.inverseName == nil
    }
    let pairs = binding.joinTables.flatMap { join in
      [
        questions.pairRule(join, join.firstColumn, of: join.entity),
        questions.pairRule(join, join.secondColumn, of: join.inverseEntity),
      ]
    }
    return (owned.map { questions.ownerRule($0.relationship, of: $0.entity) } + pairs)
      .compactMap { $0 }
  }

  /// Rules by the source of their questions.
  static func bySource(_ rules: [ReferenceRule]) -> [String: ReferenceRule] {
    Dictionary(rules.map { ($0.source, $0) }, uniquingKeysWith: { first, _ in first })
  }

  /// What lies in join tables, in columns of owners, in constraints and in derived attributes.
  static func pairScans(_ binding: StoreBinding, _ questions: RowQuestions) -> [[Question]] {
    var scans: [[Question]] = []
    for (entity, relationship) in binding.relationships
    where relationship.isToMany && relationship.inverseName == nil {
      scans.append(questions.withoutInverse(relationship, of: entity))
    }
    for join in binding.joinTables { scans.append(questions.join(join)) }
    for entity in binding.hierarchy.order {
      scans.append(questions.uniqueness(of: entity))
      scans.append(questions.derived(of: entity))
    }
    return scans
  }

  /// One job for questions of one aspect over one source, so that each is one scan; none for questions of
  /// two lists.
  static func number(_ lists: [Question]...) -> [Job] {
    var jobs: [Job] = []
    var next: [StoreFinding.Kind: Int] = [:]
    for list in lists { add(list, to: &jobs, &next) }
    return jobs
  }

  private static func add(
    _ questions: [Question], to jobs: inout [Job], _ next: inout [StoreFinding.Kind: Int]
  ) {
    var waiting = questions[...]
    while let first = waiting.first {
      var group = [first]
      if case .rows(let source, _, _) = first.form {
        group = waiting.prefix { question in
          guard case .rows(let other, _, _) = question.form else { return false }
          return other == source
        }.map { $0 }
      }
      let index = next[first.kind, default: 0]
      next[first.kind] = index + 1
      jobs.append(Job(aspect: first.kind, index: index, questions: group))
      waiting = waiting.dropFirst(group.count)
    }
  }
}

extension StoreBinding {
  /// Own stored relationships of every entity whose destination is in the model, in number order.
  var relationships: [(entity: EntityName, relationship: RelationshipDescription)] {
    hierarchy.order.flatMap { name in
      (hierarchy[name]?.properties ?? []).compactMap { property in
        guard property.isStored, let relationship = property.relationship,
          hierarchy.contains(relationship.destinationEntity)
        else { return nil }
        return (name, relationship)
      }
    }
  }

  /// `1, 2, 5`: numbers of entities for an SQL list; `NULL` for none.
  func numbers(of entities: [EntityName]) -> String {
    entities.isEmpty ? "NULL" : entities.map { String(number(of: $0)) }.joined(separator: ", ")
  }
}
