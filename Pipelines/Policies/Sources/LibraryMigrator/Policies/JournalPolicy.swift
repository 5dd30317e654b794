import Foundation
import Godwit

/// Writes down every hook that is called, in the file that `LIBRARY_JOURNAL` names, else on
/// standard error: for whoever wants to see the order of events. Everything is left to `super`.
final class JournalPolicy: EntityMigrationPolicy {
  override func beginEntityMapping(
    _ mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try note("beginEntityMapping", mapping)
    try super.beginEntityMapping(mapping, manager: manager)
  }

  override func resumeEntityMapping(
    _ mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try note("resumeEntityMapping", mapping)
    try super.resumeEntityMapping(mapping, manager: manager)
  }

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try note("createDestinationInstances", mapping, source)
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
  }

  override func endInstanceCreation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.endInstanceCreation(forMapping: mapping, manager: manager)
    try note("endInstanceCreation", mapping)
  }

  override func createRelationships(
    forDestination destination: ManagedObject, in mapping: CurrentEntityMapping,
    manager: MigrationManager
  ) throws {
    try note("createRelationships", mapping, destination)
    try super.createRelationships(forDestination: destination, in: mapping, manager: manager)
  }

  override func endRelationshipCreation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.endRelationshipCreation(forMapping: mapping, manager: manager)
    try note("endRelationshipCreation", mapping)
  }

  override func performCustomValidation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try note("performCustomValidation", mapping)
    try super.performCustomValidation(forMapping: mapping, manager: manager)
  }

  override func endEntityMapping(
    _ mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.endEntityMapping(mapping, manager: manager)
    try note("endEntityMapping", mapping)
  }

  /// One line a hook: the entity mapping, the hook, the object's name where it has one.
  private func note(
    _ hook: String, _ mapping: CurrentEntityMapping, _ object: ManagedObject? = nil
  ) throws {
    let name: String? = object?["name"]
    let line = [mapping.name, hook, name].compactMap(\.self).joined(separator: " ") + "\n"
    guard let path = ProcessInfo.processInfo.environment["LIBRARY_JOURNAL"] else {
      print(line, terminator: "")
      return
    }
    // Appended in one write: lines of several worker processes do not mix.
    let file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0o644)
    guard file >= 0 else { throw POSIXError(.EACCES) }
    defer { close(file) }
    guard write(file, line, line.utf8.count) == line.utf8.count else { throw POSIXError(.EIO) }
  }
}
