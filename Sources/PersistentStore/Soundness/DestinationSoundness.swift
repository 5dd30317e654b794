import GodwitObjectModel
import GodwitSQLite
import SystemPackage

/// An assembled destination, opened as the store that it will be once it is published.
package final class AssembledStore {
  package let binding: StoreBinding
  /// ``StoreSoundness/destinationJobs(_:)``.
  package private(set) lazy var jobs = StoreSoundness.destinationJobs(binding)
  private var ownTrees: RawTrees?

  /// - Parameters:
  ///   - model: The destination's.
  ///   - snapshotFolder: Not used: nothing of an assembled file waits in a WAL.
  package init(at path: FilePath, model: EntityHierarchy, snapshotFolder: FilePath) throws {
    binding = StoreBinding(
      try SourceStore(
        path: path, snapshotFolder: snapshotFolder, identity: StoreFiles(path).privateIdentity()),
      model)
  }

  /// Nil where its pages are not to be read past SQLite.
  package func trees() throws -> RawTrees? {
    ownTrees = try ownTrees ?? RawTrees(binding.store.connection)
    return ownTrees
  }
}

extension StoreSoundness {
  /// What remains to be asked of a destination's rows before it is published.
  ///
  /// Every row was judged by itself when it was validated, and the digests say that these are the
  /// rows of the file; SQLite's check of the pages is a matter of the whole file. What is left
  /// needs more than one row: references, inverses, places, uniqueness, derived counts, and every
  /// index against its table.
  ///
  /// Workers that read the file to take those digests answer most of it on the way. A job is for
  /// what they did not answer, or found amiss: its SQL says what is wrong, how often, and where.
  ///
  /// - Returns: The same jobs in the same order for the same store and model.
  package static func destinationJobs(_ binding: StoreBinding) -> [DestinationJob] {
    recentDestinationJobs.output(for: binding.form) { makeDestinationJobs(binding) }
  }

  private static let recentDestinationJobs =
    RecentResults<StoreBinding.Form, [DestinationJob]>(limit: 4)

  private static func makeDestinationJobs(_ binding: StoreBinding) -> [DestinationJob] {
    let questions = RowQuestions(binding)
    var scans: [[Question]] = [indexQuestions(binding)]
    var rules = memberRules(binding, questions)
    for (entity, relationship) in binding.relationships where !relationship.isToMany {
      scans.append(questions.toOne(relationship, of: entity).filter { $0.kind != .note })
      // What the other side of a pair says is a matter of two rows.
      guard binding.hierarchy.inverse(of: relationship)?.relationship.isToMany != false else {
        continue
      }
      if let rule = questions.toOneRule(relationship, of: entity) { rules.append(rule) }
    }
    scans += pairScans(binding, questions)
    let bySource = bySource(rules)
    return number(scans.flatMap { $0 }).map { job in
      switch job.questions.first?.form {
      case .indexes(let table):
        let names = binding.store.schemaObjects.filter {
          $0.kind == .index && $0.table.isSameName(as: table)
        }
        return DestinationJob(job: job, answeredBy: .indexes(of: table, names.map(\.name)))
      case .rows(let source, _, _):
        return DestinationJob(job: job, answeredBy: bySource[source].map { .references($0) })
      case .groups, .integrity, nil:
        return DestinationJob(job: job, answeredBy: nil)
      }
    }
  }

  /// Something to ask of a destination's rows.
  package struct DestinationJob: Sendable {
    package let job: Job
    /// What makes it needless; nil where only the job itself can say.
    package let answeredBy: Answer?

    package enum Answer: Sendable {
      /// Digests of all indexes of a table agree with those of its rows.
      case indexes(of: String, [String])
      case references(ReferenceRule)
    }
  }

  private static func indexQuestions(_ binding: StoreBinding) -> [Question] {
    var seen: Set<NameKey> = []
    return binding.store.schemaObjects.filter { $0.kind == .index }.compactMap { index in
      guard seen.insert(NameKey(index.table)).inserted else { return nil }
      return Question(
        kind: .index, message: "an index of \(index.table) disagrees with its table",
        form: .indexes(table: index.table))
    }
  }
}
