import GodwitDigests
import GodwitDurableFiles
import GodwitMapping
import GodwitPersistentStore
import GodwitPlanning
import SystemPackage

/// The text form of a pipeline: `Pipelines/NAME/pipeline.yaml`.
///
///     name: recipes-2.0                  # else the folder's
///     stores:
///       roots: [/srv/recipes]
///       include: ["*/Recipes.sqlite"]    # else **/*.sqlite
///       exclude: ["*/trash/**"]
///       in-use: skip                   # or offline, snapshot, { wait: 10m }
///     models: Recipes.xcdatamodeld       # a MODEL, or a list of them
///     destination: Recipes 2             # else the current version
///     mappings: [a.xcmappingmodel, b.yaml]
///     migrate: true
///     infer: true
///     chain: direct                      # or progressive, or staged
///     losses: warn                       # or allow, refuse
///     invalid: fail                      # or default, set-aside
///     workers: 2
///     shard: { bytes: 16MiB }
///     commit: replace                    # or { beside: SUFFIX }
///     backups: { keep: 14d, max: 200GiB }
///     quarantine: { after: 3 }
///     report: { html: report.html, metrics: godwit.prom, ping: "https://…" }
///     limits: { store-timeout: 30m, failure-budget: 5%, window: "01:00-05:00", io: 80MiB/s, load: 4 }
///     canary: [1, 1%, 10%, 100%]         # waves, each within the failure budget
///     engine: local                      # or slurm, array, { slurm: { partition: … } }, see ``Engine``
///
/// `Pipelines/pipeline.schema.json` says the same to editors.
enum PipelineFile {
  /// 1 MiB; people write these.
  static let byteLimit = 1 << 20
  static let name = "pipeline.yaml"

  enum Key: String, CaseIterable {
    case name, stores, models, destination, mappings, migrate, infer, chain, losses, workers, shard
    case commit, limits, canary, invalid, backups, quarantine, report, engine
  }

  enum StoresKey: String, CaseIterable { case roots, include, exclude, inUse = "in-use" }
  enum ShardKey: String, CaseIterable { case bytes }
  enum CommitKey: String, CaseIterable { case beside }
  enum InUseKey: String, CaseIterable { case wait }
  enum LimitsKey: String, CaseIterable {
    case storeTimeout = "store-timeout"
    case failureBudget = "failure-budget"
    case window, io, load
  }

  /// YAML has many words for these; one each is enough.
  fileprivate enum Choice: String, CaseIterable { case `true`, `false` }
  fileprivate enum CommitWord: String, CaseIterable { case replace }
  enum InUseWord: String, CaseIterable { case skip, offline, snapshot }
}

extension Pipeline {
  /// The file that a path stands for: itself, or `pipeline.yaml` of a folder; nil for a path that
  /// is plainly no pipeline, such as a store's.
  ///
  /// - Throws: `DurabilityError` where the file system fails.
  package static func file(at path: String) throws -> FilePath? {
    var path = FilePath(path)
    if try FileKind(following: path) == .folder {
      path.append(PipelineFile.name)
      return try FileKind(following: path) == .none ? nil : path
    }
    return ["yaml", "yml"].contains(path.extension?.lowercased()) ? path : nil
  }

  /// The same where a path has to be one.
  ///
  /// - Throws: ``PipelineError``; `DurabilityError` where the file system fails.
  package static func requiredFile(at path: String) throws -> FilePath {
    guard let file = try file(at: path) else {
      throw PipelineError.unreadable(
        file: path,
        reason: try FileKind(following: FilePath(path)) == .none
          ? "it does not exist" : "a pipeline is a .yaml file, or a folder with a pipeline.yaml")
    }
    return file
  }

  /// Reads a pipeline file.
  ///
  /// - Throws: ``PipelineError``; `DurabilityError` where the file system fails.
  package init(file: FilePath) throws {
    // Its own path, and those that lead from its folder, are text to other processes.
    if let folder = file.folder.resolved, String(validating: folder) == nil {
      throw PipelineError.unreadable(
        file: file.string, reason: "it lies in \(folder.unambiguousText), which is not UTF-8")
    }
    let bytes: [UInt8]
    do {
      bytes = try RegularFile.bytes(of: file, limit: PipelineFile.byteLimit, links: .followed)
    } catch let error as DurabilityError where !error.isOfMachine {
      throw PipelineError.unreadable(file: file.string, reason: Self.reason(error))
    }
    try self.init(bytes: bytes, file: file)
  }

  private static func digest(of bytes: [UInt8]) -> String {
    Hexadecimal.text(of: SHA256.digest(of: bytes))
  }

  /// ``digest`` of a file, which need not be one of a pipeline; nil where there is none that could be.
  ///
  /// - Throws: `DurabilityError` where the file system fails.
  static func digest(ofFile file: FilePath) throws -> String? {
    do {
      return digest(
        of: try RegularFile.bytes(of: file, limit: PipelineFile.byteLimit, links: .followed))
    } catch let error as DurabilityError where !error.isOfMachine {
      return nil
    }
  }

  private static func reason(_ error: DurabilityError) -> String {
    switch error {
    case .notRegular(_, let kind): "it is \(kind), not a regular file"
    case .tooLarge: "it has more than \(PipelineFile.byteLimit) bytes"
    default: error.isNotFound ? "it does not exist" : "it cannot be read: \(error)"
    }
  }

  /// - Parameter file: Where the bytes come from; relative paths lead from its folder.
  /// - Throws: ``PipelineError``.
  package init(bytes: [UInt8], file: FilePath) throws {
    do {
      let root = try YAMLValue(bytes: bytes, byteLimit: PipelineFile.byteLimit)
      try self.init(root, file: file)
      digest = Self.digest(of: bytes)
    } catch let problem as YAMLProblem {
      guard let line = problem.line else {
        throw PipelineError.unreadable(file: file.string, reason: problem.problem)
      }
      throw PipelineError.badText(
        file: file.string, line: line, problem: problem.problem, suggestion: problem.suggestion)
    }
  }

  private init(_ root: YAMLValue, file: FilePath) throws {
    let fields = try root.fields(PipelineFile.Key.self, of: "a pipeline")
    guard let stores = fields[.stores], let models = fields[.models] else {
      throw root.problem("a pipeline needs the keys stores and models")
    }
    self.init(
      file: file, name: "", stores: try Self.stores(stores), models: try Self.texts(models))
    name = try fields[.name].map(Self.visibleName) ?? Self.folderName(of: file)
    for place in self.stores.roots.indices {
      self.stores.roots[place] = FilePath(resolve(self.stores.roots[place].string))
    }
    self.models = self.models.map(resolve)
    destination = try fields[.destination]?.text()
    mappings = try fields[.mappings].map(Self.texts)?.map(resolve) ?? []
    migrates = try fields[.migrate]?.word(PipelineFile.Choice.self) != .false
    infersMapping = try fields[.infer]?.word(PipelineFile.Choice.self) != .false
    chain = try fields[.chain]?.word(Chain.self)
    losses = try fields[.losses]?.word(LossPolicy.self) ?? losses
    invalid = try fields[.invalid]?.word(InvalidPolicy.self) ?? invalid
    workers = try fields[.workers].map(Self.workers)
    shardBytes = try fields[.shard].map(Self.shardBytes) ?? shardBytes
    commit = try fields[.commit].map(Self.commit) ?? .replace
    backups = try fields[.backups].map(BackupRetention.init) ?? backups
    report = try fields[.report].map { try ReportSettings($0, resolve: resolve) } ?? report
    quarantineAfter = try fields[.quarantine].map(Self.quarantineAfter) ?? quarantineAfter
    limits = try fields[.limits].map(RunLimits.init) ?? limits
    canary = try fields[.canary].map(Self.canary) ?? []
    if let value = fields[.engine] { (engine, cluster) = try ClusterSettings.engine(value) }
    if let value = fields[.canary], limits.failureBudget == nil {
      throw value.problem("canary needs the key failure-budget of limits, such as 5%")
    }
  }

  private static func folderName(of file: FilePath) -> String {
    file.folder.named.lastComponent?.string ?? "pipeline"
  }

  /// Pages, metrics and terminals show the name.
  private static func visibleName(_ value: YAMLValue) throws -> String {
    let name = try value.text()
    let isShown = name.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    guard isShown else { throw value.problem("the name has control characters in it") }
    return name
  }

  private static func stores(_ value: YAMLValue) throws -> Stores {
    let fields = try value.fields(PipelineFile.StoresKey.self, of: "stores")
    guard let roots = fields[.roots] else { throw value.problem("stores need the key roots") }
    return Stores(
      roots: try texts(roots).map { FilePath($0) },
      include: try fields[.include].map(patterns) ?? [PathPattern("**/*.sqlite")].compactMap { $0 },
      exclude: try fields[.exclude].map(patterns) ?? [],
      inUse: try fields[.inUse].map(Self.inUse) ?? .skip)
  }

  private static func patterns(_ value: YAMLValue) throws -> [PathPattern] {
    try (value.list ?? [value]).map { item in
      let text = try item.text()
      guard let pattern = PathPattern(text) else {
        throw item.problem("\(text) is not a path below a root, such as */Recipes.sqlite")
      }
      return pattern
    }
  }

  /// One text, or a list of at least one.
  private static func texts(_ value: YAMLValue) throws -> [String] {
    let texts = try (value.list ?? [value]).map { item in
      let text = try item.text()
      guard !text.utf8.contains(0) else { throw item.problem("a path holds no zero byte") }
      return text
    }
    guard !texts.isEmpty else { throw value.problem("at least one is needed here") }
    return texts
  }

  private static func workers(_ value: YAMLValue) throws -> Int {
    guard let count = Int(try value.text()), RunControl.workerCounts.contains(count) else {
      throw value.problem("workers is a number from 1 to 256")
    }
    return count
  }

  private static func shardBytes(_ value: YAMLValue) throws -> Int64 {
    guard let bytes = try value.fields(PipelineFile.ShardKey.self, of: "shard")[.bytes] else {
      throw value.problem("shard needs the key bytes")
    }
    guard let size = ByteSize(try bytes.text()) else {
      throw bytes.problem("the bytes of a shard are a number such as 16MiB")
    }
    return size.bytes
  }

  private static func commit(_ value: YAMLValue) throws -> Commit {
    guard value.pairs != nil else {
      do {
        _ = try value.word(PipelineFile.CommitWord.self)
        return .replace
      } catch let problem as YAMLProblem {
        throw value.problem("commit is replace, or { beside: SUFFIX }", problem.suggestion)
      }
    }
    let fields = try value.fields(PipelineFile.CommitKey.self, of: "commit")
    guard let beside = fields[.beside] else { throw value.problem("commit is empty") }
    let suffix = try beside.text()
    // A dot first could give the source's own support folder to the destination.
    guard !suffix.begins(with: "."), suffix.utf8.count <= 100,
      suffix.utf8.allSatisfy({ $0 > 0x20 && $0 != UInt8(ascii: "/") && $0 != 0x7F })
    else {
      throw beside.problem(
        "the suffix is a part of a file name, such as -2.0, and begins with no dot")
    }
    return .beside(suffix: suffix)
  }
}
