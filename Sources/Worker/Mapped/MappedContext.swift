import FoundationEssentials
import GodwitCheckpoints
import GodwitExpressions
import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// What the stages of entity mappings share: offsets, associations, the evaluator.
final class MappedContext {
  let plan: MigrationPlan
  let run: RunDirectory
  let source: Connection
  let targets: TargetFinder
  private var known: MappedOffsets?
  private var associations: [Int: any Association] = [:]
  private var gathered: Connection?

  init(plan: MigrationPlan, run: RunDirectory, source: Connection, targets: TargetFinder) {
    self.plan = plan
    self.targets = targets
    self.run = run
    self.source = source
    mappings = plan.mapped?.mappings ?? []
  }

  let mappings: [EntityMappingPlan]
  /// `Z_ENT` and names of the source's entities, where expressions or policies may need them.
  private(set) lazy var sourceNumbers = Dictionary(
    (plan.mapped?.sourceEntities ?? []).map { ($0.entity, $0.number) },
    uniquingKeysWith: { a, _ in a })
  private(set) lazy var sourceNames = Dictionary(
    sourceNumbers.map { ($1, $0) }, uniquingKeysWith: { a, _ in a })
  /// Likewise of the destination's, where policies may need them.
  private(set) lazy var destinationNumbers = Dictionary(
    (plan.mapped?.destinationEntities ?? []).map { ($0.entity, $0.number) },
    uniquingKeysWith: { a, _ in a })
  private(set) lazy var destinationNames = Dictionary(
    destinationNumbers.map { ($1, $0) }, uniquingKeysWith: { a, _ in a })
  private(set) lazy var policyModels = PolicyModels(plan)
  private var policyAssociations: [Int: PolicyAssociation] = [:]

  /// `now()` of every expression, in seconds since 2001-01-01 UTC. A plan without it has nothing that asks.
  var runDate: Double { plan.mapped?.runDate ?? 0 }

  /// The entity mappings of a name: those of the pass at hand, else of the passes before, whose
  /// objects a later pass finds again by them.
  func mappings(named name: String, pass: Int) -> [Int] {
    let named = mappings.indices.filter { mappings[$0].name == name }
    let own = named.filter { mappings[$0].pass == pass }
    return own.isEmpty ? named.filter { mappings[$0].pass < pass } : own
  }

  func mapping(_ index: Int) throws -> EntityMappingPlan {
    guard mappings.indices.contains(index) else {
      throw StageError.outOfOrder("entity mapping \(index) of \(mappings.count)")
    }
    return mappings[index]
  }

  /// The table that an entity mapping fills.
  func table(of mapping: EntityMappingPlan) throws -> TablePlan {
    guard let index = mapping.table, plan.tables.indices.contains(index) else {
      throw StageError.outOfOrder("rows of \(mapping.name), which makes none")
    }
    return plan.tables[index]
  }

  /// The source rows of a shard of an entity mapping, by ascending key: `Z_PK` and some columns.
  func rows(
    of mapping: EntityMappingPlan, _ columns: [String], _ keys: ClosedRange<Int64>
  ) throws -> Statement {
    let statement = try source.prepare(
      """
      SELECT \((["Z_PK"] + columns.map(quoted)).joined(separator: ", "))
        FROM \(quoted(mapping.sourceTable ?? ""))
       WHERE Z_PK BETWEEN ?1 AND ?2 AND Z_ENT = ?3
       ORDER BY Z_PK
      """)
    try statement.bind(1, keys.lowerBound)
    try statement.bind(2, keys.upperBound)
    try statement.bind(3, mapping.sourceNumber)
    return statement
  }

  func offsets() throws -> MappedOffsets {
    if let known { return known }
    guard let found = try MappedOffsets.read(in: run, of: plan) else {
      throw StageError.outOfOrder("links before every shard was copied")
    }
    known = found
    return found
  }

  /// What became of an entity mapping's source objects.
  func association(_ index: Int) throws -> any Association {
    if let known = associations[index] { return known }
    let mapping = try mapping(index)
    let made: any Association
    if mapping.table == nil {
      made = NoAssociation()
    } else if mapping.keepsEveryKey {
      made = KeptKeys(
        number: mapping.sourceNumber, table: mapping.sourceTable ?? "", source: source,
        finder: targets)
    } else {
      made = try AssociationFile(run.association(of: index))
    }
    associations[index] = made
    return made
  }

  /// What a policy's mapping associated.
  func policyAssociation(_ index: Int) throws -> PolicyAssociation {
    if let known = policyAssociations[index] { return known }
    let made = try PolicyAssociation(index, run)
    policyAssociations[index] = made
    return made
  }

  /// What the policies of the stage before left in the manager's `userInfo`.
  func userInfo(before stage: GodwitCheckpoints.Stage) throws -> [String: ExpressionValue] {
    try CarriedUserInfo(run: run).read(before: stage)
  }

  /// The pairs that all link shards have given, sorted.
  func edges() throws -> Connection {
    if let gathered { return gathered }
    let connection = try Connection(path: run.edges.string, mode: .immutable)
    try connection.execute("PRAGMA cache_size = -4096")
    gathered = connection
    return connection
  }
}

/// Source keys to destination keys and back.
protocol Association: AnyObject {
  func destination(of source: Int64) throws -> Int64?
  func source(of destination: Int64) throws -> Int64?
  /// Every pair, ascending.
  func forEach(_ body: (_ source: Int64, _ destination: Int64) throws -> Void) throws
}

extension AssociationFile: Association {
  func forEach(_ body: (Int64, Int64) throws -> Void) throws {
    for place in 0..<count {
      let pair = try pair(at: place)
      try body(pair.source, pair.destination)
    }
  }
}

/// A mapping that makes no rows.
final class NoAssociation: Association {
  func destination(of source: Int64) -> Int64? { nil }
  func source(of destination: Int64) -> Int64? { nil }
  func forEach(_ body: (Int64, Int64) throws -> Void) {}
}

/// A mapping that takes every object and keeps its key: the source's own table says who is there.
final class KeptKeys: Association {
  private let number: Int64
  private let table: String
  private let connection: Connection
  private let finder: TargetFinder
  private var place: Int?

  init(number: Int64, table: String, source: Connection, finder: TargetFinder) {
    self.number = number
    self.table = table
    connection = source
    self.finder = finder
  }

  func destination(of source: Int64) throws -> Int64? {
    let place = try place ?? finder.table(table)
    self.place = place
    return try finder.entity(of: source, inTable: place) == number ? source : nil
  }

  func source(of destination: Int64) throws -> Int64? { try self.destination(of: destination) }

  func forEach(_ body: (Int64, Int64) throws -> Void) throws {
    let statement = try connection.prepare(
      "SELECT Z_PK FROM \(quoted(table)) WHERE Z_ENT = ?1 ORDER BY Z_PK")
    try statement.bind(1, number)
    while try statement.step() { try body(statement.int64(0), statement.int64(0)) }
  }
}

extension EntityMappingPlan {
  /// True when source and destination keys are the same and no object is left out.
  package var keepsEveryKey: Bool { !assignsKeys && takesAll && policy == nil }
}
