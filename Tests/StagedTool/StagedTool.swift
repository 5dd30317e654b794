import Foundation
import Godwit

// An executable of a team's own, with stages: what crash trials drive. The folder of its models is
// in STAGED_TOOL_MODELS; see Tests/Harness/stages.py for what they look like.
//
// No handler does the same twice: one that ran a second time on its own result would show.

/// What a handler throws when it is told to.
struct Stopped: Error, CustomStringConvertible {
  var description: String { "stopped where the trial asked for it" }
}

let environment = ProcessInfo.processInfo.environment

/// Ends the process, prints, or throws, in the middle of the handler that the trial names.
@Sendable func disturb(_ handler: String) throws {
  if environment["STAGED_TOOL_DIE"] == handler { kill(getpid(), SIGKILL) }
  if environment["STAGED_TOOL_THROW"] == handler { throw Stopped() }
  if environment["STAGED_TOOL_EXIT"] == handler { exit(0) }
  if environment["STAGED_TOOL_SAY"] == handler {
    print(#"{"event": "result"}"#, "said by \(handler)")
  }
}

func stages() throws -> StagedMigration {
  guard let folder = environment["STAGED_TOOL_MODELS"] else {
    throw ModelError.unreadable(path: "", reason: "STAGED_TOOL_MODELS is not set")
  }
  var references: [String: ModelReference] = [:]
  for version in try ModelFile.read(folder) {
    references[version.name] = ModelReference(
      name: version.name,
      versionChecksum: try version.hierarchy().versionChecksum)
  }
  func version(_ name: String) throws -> ModelReference {
    guard let found = references[name] else {
      throw ModelError.noSuchVersion(
        path: folder, version: name, known: references.keys.sorted())
    }
    return found
  }
  return try StagedMigration([
    .lightweight(LightweightMigrationStage([try version("Shop").versionChecksum])),
    .custom(
      CustomMigrationStage(
        from: try version("Shop"), to: try version("Shop 2"), label: "titles",
        willMigrate: markNotes, didMigrate: fillTitles)),
    .custom(
      CustomMigrationStage(
        from: try version("Shop 2"), to: try version("Shop 3"), label: "shelves",
        didMigrate: makeShelves)),
    .lightweight(LightweightMigrationStage([try version("Shop 4").versionChecksum])),
  ])
}

/// Under the first version: every note gets a mark, and items without parts go.
@Sendable func markNotes(_ context: StageContext) throws {
  try context.forEach("Item") { item in
    let note = try item.value(String.self, forKey: "note") ?? ""
    try item.setValue(note + "!", forKey: "note")
  }
  if environment["STAGED_TOOL_SHUFFLE"] != nil {
    let names = Set((0..<100).map { "name \($0)" })
    let kept = try context.fetch("Item", where: "parts.@count > 0").first
    try kept?.setValue(names.joined(separator: " "), forKey: "note")
  }
  try disturb("markNotes")
  for item in try context.fetch("Item", where: "parts.@count == 0") {
    try context.delete(item)
  }
}

/// Under the second: the title, which the third requires, out of name and note.
@Sendable func fillTitles(_ context: StageContext) throws {
  var last: StageObject?
  try context.forEach("Item") { item in
    let name = try item.value(String.self, forKey: "name") ?? ""
    let note = try item.value(String.self, forKey: "note") ?? ""
    let title = try item.value(String.self, forKey: "title") ?? ""
    try item.setValue(title + "\(name) \(note)", forKey: "title")
    // A large value goes to a file of its own; the small one before it goes.
    if item.primaryKey % 3 == 0 {
      let size = 100_001 + Int(item.primaryKey)
      try item.setValue(Data(repeating: 7, count: size), forKey: "photo")
    }
    try item.setObject(last, forKey: "previous")
    last = item
  }
  try disturb("fillTitles")
}

/// Under the third: a shelf for every four items, ordered, and one object for each run.
@Sendable func makeShelves(_ context: StageContext) throws {
  let items = try context.fetch("Item")
  for start in stride(from: 0, to: items.count, by: 4) {
    let shelf = try context.insert("Shelf")
    try shelf.setValue("shelf \(start / 4)", forKey: "name")
    try shelf.setObjects(items[start..<min(start + 4, items.count)].reversed(), forKey: "items")
    if start % 8 == 0 { try disturb("makeShelves") }
  }
  let all = try context.fetch("Shelf")
  for item in items.prefix(3) { try item.setObjects(all, forKey: "seenOn") }
}

do {
  await GodwitTool.main(stages: try stages())
} catch {
  FileHandle.standardError.write(Data("staged-tool: \(error)\n".utf8))
  exit(1)
}
