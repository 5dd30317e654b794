import Foundation

@testable import GodwitWorker

/// Makes an author of a name that a column holds, one for each name.
final class AuthorPolicy: EntityMigrationPolicy {
  private var authors: [String: ManagedObject] = [:]

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    guard let name = source["authorName"] as String?,
      let book = try manager.destinationInstances(
        forEntityMappingName: mapping.name, sourceInstances: [source]
      ).first
    else { return }
    let author: ManagedObject
    if let known = authors[name] {
      author = known
    } else {
      author = try manager.insertNewObject(forEntityName: "Author")
      author["name"] = name
      authors[name] = author
    }
    author["works"] = ((author["works"] as Int?) ?? 0) + 1
    book["author"] = author
  }
}

/// Merges tags of one name, whatever its capitals.
final class TagPolicy: EntityMigrationPolicy {
  private var tags: [String: ManagedObject] = [:]

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    let name = (source["name"] as String? ?? "").lowercased()
    // A tag without a name is dropped.
    guard !name.isEmpty else { return }
    let tag = try tags[name] ?? manager.insertNewObject(forEntityName: "Tag")
    tag.setValue(name, forKey: "name")
    tags[name] = tag
    try manager.associate(sourceInstance: source, withDestinationInstance: tag, for: mapping)
  }
}

/// Copies all attributes of its objects, as policies of Core Data do with `attributesByName`.
final class CopyingPolicy: EntityMigrationPolicy {
  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    let copy = try manager.insertNewObject(forEntityName: mapping.destinationEntityName ?? "")
    for name in source.attributesByName.keys where copy.attributesByName[name] != nil {
      copy.setValue(source.value(forKey: name), forKey: name)
    }
    try manager.associate(sourceInstance: source, withDestinationInstance: copy, for: mapping)
  }
}

/// Links by a key that both sides have, and reads objects that other mappings made.
final class OwnerPolicy: EntityMigrationPolicy {
  private var people: [Int: ManagedObject] = [:]

  override func resumeEntityMapping(_ mapping: CurrentEntityMapping, manager: MigrationManager)
    throws
  {
    try manager.forEachSourceObject(ofEntity: "Person") { person in
      if let number = person["number"] as Int? { people[number] = person }
    }
  }

  override func createRelationships(
    forDestination destination: ManagedObject, in mapping: CurrentEntityMapping,
    manager: MigrationManager
  ) throws {
    try super.createRelationships(forDestination: destination, in: mapping, manager: manager)
    guard
      let pet = try manager.sourceInstances(
        forEntityMappingName: mapping.name, destinationInstances: [destination]
      ).first, let number = pet["ownerNumber"] as Int?, let person = people[number],
      let owner = try manager.destinationInstances(
        forEntityMappingName: "PersonToPerson", sourceInstances: [person]
      ).first
    else { return }
    destination["owner"] = owner
    destination["label"] =
      "\(owner["name"] as String? ?? "?")'s \(destination["name"] as String? ?? "?")"
  }
}

/// Says which hooks were called.
final class Recorder: EntityMigrationPolicy {
  nonisolated(unsafe) static var calls: [String] = []

  private func call(_ mapping: CurrentEntityMapping, _ what: String) {
    Self.calls.append("\(mapping.name) \(what)")
  }

  override func beginEntityMapping(_ mapping: CurrentEntityMapping, manager: MigrationManager) {
    call(mapping, "begin")
  }
  override func resumeEntityMapping(_ mapping: CurrentEntityMapping, manager: MigrationManager) {
    call(mapping, "resume")
  }
  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    call(mapping, "create \(source.uriRepresentation?.last.map(String.init) ?? "")")
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
  }
  override func endInstanceCreation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) { call(mapping, "endCreation") }
  override func createRelationships(
    forDestination destination: ManagedObject, in mapping: CurrentEntityMapping,
    manager: MigrationManager
  ) throws {
    call(mapping, "link \(destination.uriRepresentation?.last.map(String.init) ?? "")")
    try super.createRelationships(forDestination: destination, in: mapping, manager: manager)
  }
  override func endRelationshipCreation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) { call(mapping, "endLinks") }
  override func performCustomValidation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) { call(mapping, "validate") }
  override func endEntityMapping(_ mapping: CurrentEntityMapping, manager: MigrationManager) {
    call(mapping, "end")
  }
}

/// Puts everything on one shelf, and tells the later stages of it.
final class ShelfPolicy: EntityMigrationPolicy {
  private var shelf: ManagedObject?
  private var count = 0

  override func beginEntityMapping(
    _ mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    shelf = try manager.insertNewObject(forEntityName: "Shelf")
  }

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    for book in try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source])
    {
      shelf?.add(book, to: "books")
    }
    count += 1
  }

  override func endInstanceCreation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) {
    manager.userInfo = ["count": count, "shelf": shelf as Any]
  }

  override func createRelationships(
    forDestination destination: ManagedObject, in mapping: CurrentEntityMapping,
    manager: MigrationManager
  ) {
    destination["siblings"] = manager[userInfo: "count"] as? Int
    if let shelf = manager[userInfo: "shelf"] as? ManagedObject { shelf["width"] = 7 }
  }

  override func performCustomValidation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    var shelves: [(Int, Int?)] = []
    try manager.forEachDestinationObject(ofEntity: "Shelf") { shelf in
      shelves.append(((shelf["books"] as [ManagedObject]? ?? []).count, shelf["width"] as Int?))
    }
    guard shelves.count == 1, shelves[0] == (manager.userInfo["count"] as? Int ?? -1, 7) else {
      throw TooBad()
    }
  }
}

struct TooBad: Error, Equatable, CustomNSError {
  static let errorDomain = "Test"
  var errorCode: Int { 77 }
}

/// Ends in one way or another.
final class FailingPolicy: EntityMigrationPolicy {
  nonisolated(unsafe) static var way = ""

  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    guard source["x"] as Int? == 2 else { return }
    let made = try manager.insertNewObject(forEntityName: "A")
    switch Self.way {
    case "throw": throw TooBad()
    case "cancel": manager.cancelMigration(with: TooBad())
    case "key": _ = source.value(forKey: "nonsense")
    case "type": _ = source["x"] as String?
    case "value": made["x"] = "text"
    case "range": made["x"] = 1 << 40
    case "source": source["x"] = 3
    case "entity": _ = try manager.insertNewObject(forEntityName: "Nobody")
    default: break
    }
  }

  override func performCustomValidation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    if Self.way == "validation" { throw TooBad() }
    if Self.way == "late" { _ = try manager.insertNewObject(forEntityName: "A") }
  }
}

/// Leaves a number for expressions.
final class BeginPolicy: EntityMigrationPolicy {
  override func beginEntityMapping(_ mapping: CurrentEntityMapping, manager: MigrationManager) {
    manager.userInfo["start"] = 41
  }
}

/// The first mapping begins with a word, changes it when it links, and every mapping reads it at
/// the end; the second leaves it alone.
final class CountingPolicy: EntityMigrationPolicy {
  nonisolated(unsafe) static var seen: [String] = []

  override func beginEntityMapping(_ mapping: CurrentEntityMapping, manager: MigrationManager) {
    if mapping.name == "AToA" {
      manager.userInfo["word"] = "begun"
      manager.userInfo["gone"] = true
    }
  }

  override func endRelationshipCreation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) {
    if mapping.name == "AToA" {
      manager[userInfo: "word"] = "linked"
      manager[userInfo: "gone"] = nil
    }
  }

  override func performCustomValidation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) {
    let word = manager[userInfo: "word"] as? String ?? "nothing"
    Self.seen.append("\(mapping.name) \(word)" + (manager[userInfo: "gone"] == nil ? "" : "!"))
  }
}

/// Keeps a note with each object, in a transient attribute, until all of them are there.
final class ScratchPolicy: EntityMigrationPolicy {
  override func createDestinationInstances(
    forSource source: ManagedObject, in mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    try super.createDestinationInstances(forSource: source, in: mapping, manager: manager)
    let made = try manager.destinationInstances(
      forEntityMappingName: mapping.name, sourceInstances: [source])
    made.first?["scratch"] = "note \(source["number"] as Int? ?? 0)"
  }

  override func endInstanceCreation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    for object in try manager.destinationInstances(forEntityMappingName: mapping.name) {
      object["title"] = object["scratch"] as String?
    }
  }

  override func createRelationships(
    forDestination destination: ManagedObject, in mapping: CurrentEntityMapping,
    manager: MigrationManager
  ) throws {
    destination["seen"] = destination["scratch"] as String?
    destination["scratch"] = "seen"
  }

  override func endRelationshipCreation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    for object in try manager.destinationInstances(forEntityMappingName: mapping.name) {
      guard object["scratch"] as String? != "seen" else { continue }
      object["seen"] = "forgotten"
    }
  }
}

/// Reads transient values of objects that another mapping made.
final class ScratchReader: EntityMigrationPolicy {
  override func createRelationships(
    forDestination destination: ManagedObject, in mapping: CurrentEntityMapping,
    manager: MigrationManager
  ) throws {
    let items = try manager.destinationInstances(forEntityMappingName: "ItemToItem")
    destination["notes"] =
      items.filter { ($0["scratch"] as String?)?.hasPrefix("note ") == true }
      .count
  }
}
