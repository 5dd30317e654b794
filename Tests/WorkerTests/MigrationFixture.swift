import Foundation
import GodwitBarriers
import GodwitCheckpoints
import GodwitCommit
import GodwitMapping
import GodwitObjectModel
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite
import StoreFixtures
import SystemPackage

@testable import GodwitWorker

/// A migration, inferred or by a mapping model, from the first row to the checked destination, in one process.
final class MigrationFixture {
  enum Failure: Error { case noPlan(PlanOutcome) }

  let folder: FilePath
  private let source: ManagedObjectModel
  private let destination: ManagedObjectModel
  private var runs = 0
  private(set) var findings: [StoreFinding] = []
  /// What the link stage of a mapping model dropped.
  private(set) var droppedByMapping: [Loss] = []
  /// What goes across the rows of the destination.
  private(set) var destinationFindings: [StoreFinding] = []
  var policies = PolicyRegistry()
  /// Where a call does not say another one.
  var losses = LossPolicy.warn
  var acceptsDamage = false
  /// What the last migration was and where it lies.
  private(set) var latest: (plan: MigrationPlan, run: RunDirectory, store: FilePath)?

  /// - Parameter rows: SQL that fills the empty store.
  init(from source: [EntityDescription], to destination: [EntityDescription], rows: String) throws {
    folder = FilePath(FileManager.default.temporaryDirectory.path)
      .appending("godwit-migration-\(UUID().uuidString)")
    try FileManager.default.createDirectory(
      atPath: folder.string, withIntermediateDirectories: true)
    self.source = ManagedObjectModel(entities: source)
    self.destination = ManagedObjectModel(entities: destination)
    let path = folder.appending("source.sqlite").string
    try StoreGenerator(self.source, options: StoreOptions(rows: 0)).write(to: path)
    let store = try Connection(path: path, mode: .readWrite)
    try store.execute(rows)
    try store.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = 1000 WHERE Z_SUPER = 0")
    try store.close()
  }

  deinit { try? FileManager.default.removeItem(atPath: folder.string) }

  /// Puts a file of external data beside the source.
  func putExternalData(_ content: String, inFile name: String) throws {
    let external = folder.appending(".source_SUPPORT/_EXTERNAL_DATA")
    try FileManager.default.createDirectory(
      atPath: external.string, withIntermediateDirectories: true)
    try Data(content.utf8).write(to: URL(filePath: external.appending(name).string))
  }

  /// Lets a file of external data end in a hole.
  func enlargeExternalData(_ name: String, to bytes: Int) throws {
    let file = folder.appending(".source_SUPPORT/_EXTERNAL_DATA").appending(name)
    let handle = try FileHandle(forUpdating: URL(filePath: file.string))
    try handle.truncate(atOffset: UInt64(bytes))
    try handle.close()
  }

  /// - Parameter mapping: A mapping model as text; nil to have it inferred.
  func plan(_ mapping: String? = nil, renumbers: Bool = false, shardBytes: Int64 = 1 << 24) throws
    -> MigrationPlan
  {
    try plan(passes: mapping.map { [$0] } ?? [], renumbers: renumbers, shardBytes: shardBytes)
  }

  /// - Parameter passes: Mapping models as text, run in order; none to have it inferred.
  func plan(passes: [String], renumbers: Bool = false, shardBytes: Int64 = 1 << 24) throws
    -> MigrationPlan
  {
    let outcome = try outcome(passes: passes, renumbers: renumbers, shardBytes: shardBytes)
    guard case .migrate(let plan) = outcome else { throw Failure.noPlan(outcome) }
    return plan
  }

  func outcome(
    _ mapping: String? = nil, renumbers: Bool = false, shardBytes: Int64 = 1 << 24,
    losses: LossPolicy? = nil, givesSource: Bool = true
  ) throws -> PlanOutcome {
    try outcome(
      passes: mapping.map { [$0] } ?? [], renumbers: renumbers, shardBytes: shardBytes,
      losses: losses, givesSource: givesSource)
  }

  /// - Parameter givesSource: The store's own version is among the models given.
  func outcome(
    passes: [String], renumbers: Bool = false, shardBytes: Int64 = 1 << 24,
    losses: LossPolicy? = nil, givesSource: Bool = true
  ) throws -> PlanOutcome {
    let files = try passes.map { text in
      MappingFile(
        file: "test.yaml",
        document: try MappingDocument(bytes: Array(text.utf8), name: "test.yaml"))
    }
    let versions = [("1", source), ("2", destination)].map {
      ModelVersion(name: $0.0, model: $0.1, isCurrent: $0.0 == "2", path: $0.0)
    }
    var request = MigrationRequest(
      store: folder.appending("source.sqlite"),
      models: givesSource ? versions : [versions[1]], destination: versions[1],
      output: folder.appending("destination.sqlite"), snapshotFolder: folder.appending("snapshot"),
      shardBytes: shardBytes, mappings: files, renumbersKeys: renumbers)
    request.losses = losses ?? self.losses
    request.acceptsDamage = acceptsDamage
    request.policies = policies.registered { "code" }
    return try Planner().plan(request)
  }

  /// Runs every stage and gives the destination, opened.
  func migrate(
    _ mapping: String? = nil, renumbers: Bool = false, shardBytes: Int64 = 1 << 24
  ) throws -> Connection {
    try migrate(
      passes: mapping.map { [$0] } ?? [], renumbers: renumbers, shardBytes: shardBytes)
  }

  /// Likewise, by several mapping models one after the other.
  func migrate(passes: [String], renumbers: Bool = false, shardBytes: Int64 = 1 << 24) throws
    -> Connection
  {
    let plan = try plan(passes: passes, renumbers: renumbers, shardBytes: shardBytes)
    runs += 1
    let run = RunDirectory(folder.appending("run\(runs)"))
    try FileManager.default.createDirectory(
      atPath: run.path.string, withIntermediateDirectories: true)
    try run.create()
    try Data(plan.stored()).write(to: URL(filePath: run.plan.string))
    let context = try ShardContext(run: run, policies: policies)
    let barrier = MappedBarrier(plan: plan, run: run)
    findings = []
    droppedByMapping = []
    if plan.isOnePass {
      for unit in plan.units(in: .validate) {
        let (summary, _) = try RowPass(context: context).run(unit)
        for part in summary.parts() { findings.merge(part.findings ?? []) }
      }
    } else {
      for unit in plan.units(in: .copy) {
        findings.merge(try MappedCopyStage(context: context).run(unit).findings)
      }
      try barrier.associate()
      for unit in plan.units(in: .link) {
        let summary = try MappedLinkStage(context: context).run(unit)
        findings.merge(summary.findings)
        droppedByMapping += summary.losses ?? []
      }
      droppedByMapping += try barrier.gather()
      for unit in plan.units(in: .validate) {
        findings.merge(try MappedValidateStage(context: context).run(unit).findings)
      }
    }
    let path = run.path.appending("assembled.sqlite")
    latest = (plan, run, path)
    try StoreAssembly(plan: plan, run: run).assemble(at: path)
    try context.openAssembled(path.string)
    for unit in plan.units(in: .verify) {
      findings.merge(try VerifyStage(context: context).run(unit).findings)
    }
    _ = try StoreVerification(plan: plan, run: run).check(path)
    destinationFindings = try soundness(of: path, context)
    return try Connection(path: path.string, mode: .immutable)
  }
}

extension MigrationFixture {
  /// What the soundness stage finds in an assembled file where the verify stage left a question open.
  func soundness(of path: FilePath, _ context: ShardContext) throws -> [StoreFinding] {
    try openJobs(of: context).flatMap { try SoundnessStage(context: context).run($0).findings }
  }

  /// Numbers of the jobs that the verify stage did not make needless.
  func openJobs(of context: ShardContext) throws -> [Int] {
    try StoreVerification(plan: context.plan, run: context.run)
      .remaining(context.destinationJobs())
  }
}

extension Connection {
  /// Rows as a small text table: values by spaces, rows by line.
  func table(_ sql: String) throws -> [String] { try drawn(sql) }
}

func entity(
  _ name: EntityName, _ properties: PropertyDescription..., parent: EntityName? = nil
) -> EntityDescription {
  EntityDescription(name: name, superentity: parent, properties: properties)
}

func attribute(
  _ name: String, _ type: AttributeType = .string, optional: Bool = true,
  default value: StoredDefault? = nil, _ validation: ValidationRule...
) -> PropertyDescription {
  .attribute(
    AttributeDescription(
      traits: PropertyTraits(name: name, isOptional: optional), type: type, defaultValue: value,
      validation: validation))
}

func toOne(_ name: String, _ destination: EntityName, inverse: String? = nil, optional: Bool = true)
  -> PropertyDescription
{
  .relationship(
    RelationshipDescription(
      traits: PropertyTraits(name: name, isOptional: optional), destinationEntity: destination,
      inverseName: inverse))
}

func toMany(
  _ name: String, _ destination: EntityName, inverse: String? = nil, ordered: Bool = false,
  minimum: Int = 0, maximum: Int = 0
) -> PropertyDescription {
  .relationship(
    RelationshipDescription(
      traits: PropertyTraits(name: name), destinationEntity: destination, inverseName: inverse,
      minCount: minimum, maxCount: maximum, isOrdered: ordered))
}
