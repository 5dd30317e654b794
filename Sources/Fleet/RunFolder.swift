import Foundation
import GodwitCheckpoints
import GodwitCommit
import GodwitDurableFiles
import GodwitPlanning
import SystemPackage

/// The run directory as the fleet keeps it: taken, named, cleared away.
struct RunFolder {
  let directory: RunDirectory

  /// Makes the folder, or takes the one of an earlier run.
  ///
  /// - Throws: ``FleetError/runDirectory(path:message:)`` for a folder that is somebody else's: it
  ///   will be removed one day, and what is in it with it.
  func take() throws {
    try check()
    try directory.create()
  }

  /// What ``take()`` would say, without making anything.
  func check() throws {
    switch try FileKind(at: directory.path) {
    case .none: break
    case .folder:
      if let stranger = try self.stranger() {
        throw FleetError.runDirectory(
          path: directory.path.string, message: "it holds other files, such as \(stranger)")
      }
      try directory.checkPrivate()
    case .regular, .symbolicLink, .special:
      throw FleetError.runDirectory(path: directory.path.string, message: "it is not a folder")
    }
  }

  /// The run's name, a part of the names of its backups: given at the first start and kept, so
  /// that a rerun finds what an earlier one left beside the store.
  ///
  /// Asked before a commit begins. A backup of that name is one that stayed when a commit was taken back: it is not
  /// overwritten, and the next one gets another name.
  ///
  /// - Parameters:
  ///   - now: Seconds since 1970-01-01 UTC.
  ///   - store: What is to be replaced; nil for an output beside it.
  func name(now: Double, replacing store: FilePath?) throws -> String {
    let isTaken = { name in try store.map { try StoreSwap.hasBackup(of: $0, named: name) } ?? false
    }
    if let name = try earlierName(), try !isTaken(name) { return name }
    let name = try Self.timestamp(now, unless: isTaken)
    // What it names beside the store is named by the commit's journal, too, but for rejects.
    if directory.memory == nil { try keep(name: name) }
    return name
  }

  private var nameFile: FilePath { directory.path.appending("name") }

  func keep(name: String) throws {
    if try earlierName() != name { try DurableFile.write(Array(name.utf8), to: nameFile) }
  }

  func forgetName() throws { try DurableFile.removeIfPresent(nameFile) }

  /// Removes what was assembled beside the destination where that is on another volume, and nothing else
  /// would find.
  ///
  /// - Parameter name: The run's, where it is not kept in the folder.
  func removeAssembled(for request: MigrationRequest, name: String? = nil) throws {
    guard let name = try name ?? earlierName() else { return }
    try StoreSwap.removeAssembled(
      by: directory, for: request.destinationPath, name: name)
  }

  /// The name that an earlier run of this work has kept; nil where there is none that can be used.
  func earlierName() throws -> String? {
    do {
      let bytes = try RegularFile.bytesIfPresent(of: nameFile, limit: 64, isPrivate: true)
      guard let bytes, let name = String(validating: bytes, as: UTF8.self), !name.isEmpty,
        name.utf8.count <= 32,
        name.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == 0x54 || $0 == 0x2D })
      else { return nil }
      return name
    } catch DurabilityError.tooLarge {
      return nil
    }
  }

  /// A name that no other has: the moment, or the next thousandth of a second that is free.
  ///
  /// For the holder of the lock under which names are taken. Two names of one instant would be one, and
  /// so would those of a clock that was set back.
  static func timestamp(
    _ seconds: Double, unless isTaken: (String) throws -> Bool
  ) rethrows -> String {
    var seconds = seconds
    while true {
      let name = timestamp(seconds)
      if try !isTaken(name) { return name }
      seconds += 0.001
    }
  }

  /// `20261121T010203`, in UTC, with thousandths.
  static func timestamp(_ seconds: Double) -> String {
    var whole = time_t(seconds)
    var parts = tm()
    gmtime_r(&whole, &parts)
    func digits(_ number: Int, _ count: Int) -> String {
      let text = String(number)
      return String(repeating: "0", count: max(0, count - text.count)) + text
    }
    let thousandths = Int((seconds - seconds.rounded(.down)) * 1000)
    return digits(Int(parts.tm_year) + 1900, 4) + digits(Int(parts.tm_mon) + 1, 2)
      + digits(Int(parts.tm_mday), 2) + "T" + digits(Int(parts.tm_hour), 2)
      + digits(Int(parts.tm_min), 2) + digits(Int(parts.tm_sec), 2) + "-" + digits(thousandths, 3)
  }

  var resultFile: FilePath { directory.path.appending("result.json") }

  /// Keeps what is known of a store that is about to be committed: plan and checkpoints would not tell all
  /// of it again, such as what was set aside. Of a small store no power cut is survived: the commit is finished
  /// without it, and a note says so.
  func keep(_ result: MigrationResult) throws {
    try DurableFile.write(
      SealedJSON.bytes(of: StoreEnd(result)), to: resultFile, surviving: directory.durability)
  }

  /// What an earlier run kept; nil where there is nothing.
  ///
  /// - Throws: `SealedJSONError` or `DecodingError` where nothing of it can be used.
  func keptResult() throws -> MigrationResult? {
    let bytes = try RegularFile.bytesIfPresent(
      of: resultFile, limit: RunDirectory.largestFileBytes, isPrivate: true)
    return try bytes.map { try SealedJSON.value(StoreEnd.self, of: $0).whole }
  }

  /// Removes the checkpoints of a stage, so that all of it is done again.
  func discard(_ stage: Stage) throws {
    for unit in try directory.finished(stage) {
      try directory.discard(CheckpointName(stage: stage, unit: unit))
    }
  }

  /// Removes everything that belongs to a plan, the plan first. Lock and events stay.
  func discardPlan() throws {
    try DurableFile.removeIfPresent(directory.plan)
    try DurableFile.removeIfPresent(directory.journal)
    try forgetName()
    for stage in Stage.allCases { try discard(stage) }
  }
}
