package import GodwitDurableFiles
package import SystemPackage

/// What a checkpoint is the result of.
///
/// A stage is a folder of the run directory, and its raw value the folder's name.
package enum Stage: String, Codable, Sendable, CaseIterable {
  /// Copy, link and validate of one unit in one pass.
  case rows
  case copy, link, validate, audit, verify, soundness

  /// Whether its units are the plan's shards, and not questions to a store.
  package var isOfShards: Bool { self != .audit && self != .soundness }
}

/// The name of a checkpoint: `copy/000012.ckpt` is that of unit 12 of the copy stage.
package struct CheckpointName: Hashable, Sendable, Codable {
  package let stage: Stage
  /// The unit's place in the plan, from 0.
  package let unit: Int

  package init(stage: Stage, unit: Int) {
    precondition(unit >= 0 && unit <= UInt32.max, "units are counted from 0, in 32 bits")
    self.stage = stage
    self.unit = unit
  }

  /// The name of the checkpoint at a path; nil when the path is not one of a checkpoint.
  package init?(path: FilePath) {
    guard let file = path.lastComponent?.string, let unit = Self.unit(ofFileName: file),
      let folder = path.removingLastComponent().lastComponent?.string,
      let stage = Stage(rawValue: folder)
    else { return nil }
    self.init(stage: stage, unit: unit)
  }

  private enum CodingKeys: String, CodingKey { case stage, unit }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    stage = try container.decode(Stage.self, forKey: .stage)
    unit = try container.decode(Int.self, forKey: .unit)
    guard unit >= 0, unit <= UInt32.max else {
      throw DecodingError.dataCorruptedError(
        forKey: .unit, in: container, debugDescription: "Units are counted from 0.")
    }
  }
}

extension CheckpointName: CustomStringConvertible {
  package var description: String { "\(stage.rawValue)/\(fileName)" }

  /// Six digits, more where they are needed.
  var fileName: String {
    let digits = String(unit)
    return String(repeating: "0", count: max(0, 6 - digits.utf8.count)) + digits + ".ckpt"
  }

  /// The unit of a file name, or `nil` for a name that is not spelled as ``fileName`` does.
  static func unit(ofFileName name: String) -> Int? {
    guard name.hasSuffix(".ckpt"), let unit = Int(name.dropLast(5)), unit >= 0,
      unit <= UInt32.max,
      CheckpointName(stage: .copy, unit: unit).fileName == name
    else { return nil }
    return unit
  }
}

/// The folder that holds everything one store's run has done so far.
///
///     lock             held by the coordinator as long as it lives
///     plan.json        what is to be done; its fingerprint is in every checkpoint
///     journal.json     how far the commit has come; absent before it begins
///     events.jsonl     what happened, a line each; for people
///     external/        files of external binary data that the destination gets in addition
///     snapshot/        a private copy of the source store, if one was needed
///     offsets.json     keys that each shard gives out; with mapping models only, as the next two
///     associations/    what source objects became, a file an entity mapping
///     edges.sqlite     pairs of relationships that are set from their other side
///     rows/            finished checkpoints of passes over rows, 000000.ckpt …
///     copy/            those of the copy stage, where stages wait for other units
///     link/ …          and so on, a folder a stage
///
/// A finished checkpoint is the only record of progress: a unit is done when its file is there.
///
/// The directory of a small store holds neither plan nor checkpoints, see ``inMemory``: only what a
/// commit under way needs.
package struct RunDirectory: Sendable {
  package let path: FilePath
  /// Where checkpoints are kept instead of in files; nil for in files.
  package let memory: CheckpointMemory?
  let summaries = KnownSummaries()

  package init(_ path: FilePath) {
    self.path = path
    memory = nil
  }

  private init(_ path: FilePath, memory: CheckpointMemory) {
    self.path = path
    self.memory = memory
  }

  /// The same directory with all checkpoints in memory, none so far.
  package var inMemory: RunDirectory { RunDirectory(path, memory: CheckpointMemory()) }

  /// What the names and files in the directory survive, a commit's own apart.
  package var durability: Durability { memory == nil ? .powerCut : .processCrash }
}

extension RunDirectory {
  /// 256 MiB: more than any file of a run directory that is read whole. The plan of 100 000 shards
  /// has 50 MB.
  package static let largestFileBytes = 256 << 20

  package var plan: FilePath { path.appending("plan.json") }
  package var journal: FilePath { path.appending("journal.json") }
  package var events: FilePath { path.appending("events.jsonl") }
  package var lock: FilePath { path.appending("lock") }
  package var snapshot: FilePath { path.appending("snapshot") }
  package var external: FilePath { path.appending("external") }

  package var offsets: FilePath { path.appending("offsets.json") }
  package var associations: FilePath { path.appending("associations") }
  /// What the source objects of an entity mapping became.
  package func association(of mapping: Int) -> FilePath {
    associations.appending("\(mapping).pairs")
  }
  package var edges: FilePath { path.appending("edges.sqlite") }

  /// Removes the private clones of the source, and says whether there were any: a directory without
  /// checkpoints on the disk has no folder for them until one is made.
  package func discardClones() throws -> Bool {
    guard try DurableFile.isFolder(snapshot), try !DurableFile.names(in: snapshot).isEmpty else {
      return false
    }
    try DurableFile.removeTree(snapshot, surviving: durability)
    try create()
    return true
  }

  /// Removes what was made of an earlier plan's checkpoints.
  package func discardDerived() throws {
    try DurableFile.removeIfPresent(offsets, surviving: durability)
    try DurableFile.removeIfPresent(edges, surviving: durability)
    if try DurableFile.isFolder(associations) {
      try DurableFile.removeTree(associations, surviving: durability)
    }
  }

  /// The folder of a stage's checkpoints.
  package func folder(of stage: Stage) -> FilePath { path.appending(stage.rawValue) }

  package func path(of checkpoint: CheckpointName) -> FilePath {
    folder(of: checkpoint.stage).appending(checkpoint.fileName)
  }

  /// Opens a checkpoint of this run and checks its header.
  package func reader(
    _ stage: Stage, _ unit: Int, fingerprint: [UInt8]
  ) throws -> CheckpointReader {
    let name = CheckpointName(stage: stage, unit: unit)
    let path = path(of: name)
    if let memory { return try CheckpointReader(name, in: memory, path: path) }
    return try CheckpointReader(
      path: path, name: name, fingerprint: fingerprint, summaries: summaries)
  }

  /// Begins a checkpoint of this run.
  package func writer(
    _ stage: Stage, _ unit: Int, fingerprint: [UInt8]
  ) throws -> CheckpointWriter {
    let name = CheckpointName(stage: stage, unit: unit)
    if let memory {
      return CheckpointWriter(path: path(of: name), name: name, memory: memory)
    }
    summaries.forget(name, fingerprint)
    return try CheckpointWriter(path: path(of: name), name: name, fingerprint: fingerprint)
  }

  package var exists: Bool { get throws { try DurableFile.isFolder(path) } }

  /// Makes the folder and those in it. What is there stays as it is.
  package func create() throws {
    guard memory == nil else {
      return try DurableFile.makeFolder(path, surviving: durability)
    }
    try DurableFile.makeFolder(snapshot)
    for stage in Stage.allCases { try DurableFile.makeFolder(folder(of: stage)) }
  }

  /// Checks that nobody else can have put anything here: the folder and those in it belong to this
  /// user and are writable by nobody else.
  ///
  /// - Throws: `DurabilityError`.
  package func checkPrivate() throws {
    try Folder(path).checkPrivate()
    for name in try DurableFile.names(in: path) {
      let member = path.appending(name)
      switch try FileKind(at: member) {
      case .folder: try Folder(member).checkPrivate()
      case .symbolicLink: throw DurabilityError.symbolicLink(member)
      case .special: throw DurabilityError.notRegular(member, .special)
      case .regular, .none: continue
      }
    }
  }

  /// The units of a stage that have a checkpoint. Whether it is whole, reading it tells.
  package func finished(_ stage: Stage) throws -> Set<Int> {
    if let memory { return memory.units(of: stage) }
    let folder = folder(of: stage)
    guard try DurableFile.isFolder(folder) else { return [] }
    return Set(try DurableFile.names(in: folder).compactMap(CheckpointName.unit(ofFileName:)))
  }

  /// Discards a checkpoint that has proven unusable. Its unit must be done again.
  package func discard(_ checkpoint: CheckpointName) throws {
    if let memory { return memory[checkpoint] = nil }
    let path = path(of: checkpoint)
    // Whatever lies there: a redo must find the name free.
    if try FileKind(at: path) == .folder { return try DurableFile.removeTree(path) }
    try DurableFile.removeIfPresent(path)
  }

  /// Whether a file is one that SQLite sorts in. It has no name for longer than a moment, unless the
  /// process was killed in that moment. Source: `SQLITE_TEMP_FILE_PREFIX` in SQLite's `os.h`.
  package static func isSQLiteTemporary(_ name: String) -> Bool { name.hasPrefix("etilqs_") }

  /// Removes the temporary files that crashed processes left. For the holder of the lock, while no
  /// worker of the run is alive.
  package func removeLeftovers() throws {
    let stages = memory == nil ? Stage.allCases.map(folder(of:)) : []
    for folder in [path] + stages where try DurableFile.isFolder(folder) {
      for name in try DurableFile.names(in: folder)
      where PendingFile.isTemporaryName(name) || Self.isSQLiteTemporary(name) {
        try DurableFile.remove(folder.appending(name))
      }
    }
  }

  /// Removes the folder and all that is in it. After a crash a part may be left: the journal goes first, since
  /// a commit is told with what lies beside it, and then the plan, so that what is left is never taken for a
  /// run. The lock goes last, after a power cut, too: by it what is left is known for a run's.
  package func remove() throws {
    try DurableFile.removeIfPresent(journal, surviving: durability)
    try DurableFile.removeIfPresent(plan, surviving: durability)
    if try FileKind(at: path) == .folder {
      // Other programs give these names, too.
      var needsLock = durability == .powerCut
      for name in try DurableFile.names(in: path) where name != lock.lastComponent?.string {
        needsLock = needsLock || [offsets, edges].contains(path.appending(name))
        try DurableFile.removeTree(path.appending(name), surviving: .processCrash)
      }
      if needsLock { try DurableFile.syncFolder(path) }
    }
    try DurableFile.removeTree(path, surviving: durability)
  }
}
