import ArgumentParser
import GodwitDurableFiles
import GodwitFixtures
import GodwitFleet
import GodwitObjectModel
import GodwitPersistentStore

struct FixtureCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "fixture",
    abstract: "Writes a seeded store of any model, in Core Data's layout, for tests.",
    discussion: """
      Every concrete entity gets objects whose values and relationships keep the model's rules; what \
      cannot be kept is a note. The same model, options and seed give the same bytes. An existing file \
      is never overwritten: exit code 73.
      """)

  @Argument(
    help: ArgumentHelp("The MODEL; of a bundle, its current version.", valueName: "model"),
    completion: .file())
  var model: String

  @Option(
    name: .shortAndLong,
    help: ArgumentHelp("The store to write; it must be new.", valueName: "store"),
    completion: .file())
  var output: String

  @Option(help: "Objects of each concrete entity.")
  var rows = 100

  @Option(
    help: ArgumentHelp("Objects of one entity; may repeat.", valueName: "entity=count"))
  var entityRows: [String] = []

  @Option(help: "Equal seeds give equal stores.")
  var seed: UInt64 = 1

  @Option(help: "How many optional values are null, from 0 to 1.")
  var nulls = 0.15

  @Option(
    help: "How many values that may be stored externally lie in files of their own, from 0 to 1.")
  var external = 0.0

  @Option(
    help: ArgumentHelp(
      "A second MODEL whose validation rules values and relationships keep, too: a migration's destination.",
      valueName: "model"), completion: .file())
  var validFor: String?

  @Flag(help: "ASCII text only.")
  var ascii = false

  @Flag(
    help: "Leaves the last rows in the write-ahead log, as an application that was killed does.")
  var wal = false

  @Flag(help: "Adds the tables of persistent history.")
  var history = false

  @Flag(help: "One JSON object.")
  var json = false

  func validate() throws {
    if output.isEmpty || output.utf8.contains(0) {
      throw ValidationError("--output is the path of a file.")
    }
    guard rows >= 0 else { throw ValidationError("--rows is a number from 0.") }
    for (name, share) in [("--nulls", nulls), ("--external", external)]
    where !(0...1).contains(share) {
      throw ValidationError("\(name) is a number from 0 to 1.")
    }
    _ = try rowsByEntity()
  }

  func run() throws {
    let version = try ModelCatalog.version(at: model)
    var options = StoreOptions(seed: seed, rows: rows)
    options.rowsByEntity = try rowsByEntity()
    options.nullFraction = nulls
    options.externalFraction = external
    options.validFor = try validFor.map { try ModelCatalog.version(at: $0).hierarchy() }
    options.unicodeText = !ascii
    options.leavesWAL = wal
    options.history = history
    let generator: StoreGenerator
    do {
      generator = try StoreGenerator(version.hierarchy(), options: options)
    } catch let problem as LayoutProblem {
      throw StoreError.layout(problem)
    }
    let concrete = generator.hierarchy.roots.flatMap { generator.hierarchy.concrete(of: $0) }
    if let unknown = options.rowsByEntity.keys.sorted(by: { $0.rawValue < $1.rawValue })
      .first(where: { !concrete.contains($0) })
    {
      let known = concrete.map(\.rawValue).sorted().joined(separator: ", ")
      throw ValidationError(
        "--entity-rows: the model has no concrete entity \(unknown.rawValue). It has \(known).")
    }
    let report = try FixtureFile(generator).write(to: output)
    guard json else {
      for note in report.notes { Output.say("\(report.path): note: \(note)") }
      return Output.result(
        "\(report.path): \(grouped(Int64(report.totalObjects))) "
          + (report.totalObjects == 1 ? "object" : "objects")
          + " of \(version.name), \(ByteSize.text(Int64(report.bytes)))")
    }
    Output.result(json: FixtureLine(report, version: version.name))
  }

  private func rowsByEntity() throws -> [EntityName: Int] {
    var rows: [EntityName: Int] = [:]
    for text in entityRows {
      let parts = text.parts(between: "=")
      guard parts.count == 2, !parts[0].isEmpty, let count = Int(parts[1]), count >= 0 else {
        throw ValidationError("--entity-rows is ENTITY=COUNT, not \(text).")
      }
      rows[EntityName(parts[0])] = count
    }
    return rows
  }
}

/// What was written, as a line of JSON.
private struct FixtureLine: Encodable {
  var event = "result"
  var store: String
  var version: String
  /// Objects of each concrete entity.
  var objects: [String: Int]
  /// Rows of many-to-many tables.
  var joinRows: Int
  var externalFiles: Int
  /// Bytes of the store file and its write-ahead log.
  var bytes: Int
  /// What is kept neither of the model's rules nor of the numbers of objects that were asked for.
  var notes: [String]

  init(_ report: StoreReport, version: String) {
    store = report.path
    self.version = version
    objects = Dictionary(
      report.objects.map { ($0.key.rawValue, $0.value) }, uniquingKeysWith: { first, _ in first })
    joinRows = report.joinRows
    externalFiles = report.externalFiles
    bytes = report.bytes
    notes = report.notes
  }
}

extension FixtureError {
  /// How a command ends that could not make one.
  var ending: CommandError {
    switch self {
    case .alreadyThere, .notWritable: CommandError(.cannotCreateOutput, "output", "\(self)")
    case .tooManyRows, .tooFewValues, .tooManyMembers: CommandError(.usage, "usage", "\(self)")
    case .notExpressible: CommandError(.badInput, "model", "\(self)")
    }
  }
}
