import GodwitObjectModel
import GodwitPersistentStore
import Testing

@testable import GodwitPlanning

@Suite struct `A finding about the destination` {
  private static func relationship(
    _ name: String, _ to: EntityName, inverse: String? = nil, isToMany: Bool = false,
    id: String? = nil
  ) -> PropertyDescription {
    .relationship(
      RelationshipDescription(
        traits: PropertyTraits(name: name, renamingIdentifier: id), destinationEntity: to,
        inverseName: inverse, maxCount: isToMany ? 0 : 1))
  }

  private static func attribute(_ name: String, id: String? = nil) -> PropertyDescription {
    .attribute(
      AttributeDescription(
        traits: PropertyTraits(name: name, renamingIdentifier: id), type: .string))
  }

  /// Note, with Draft below, becomes Page, with Draft below; tags are shared.
  private static func origins() throws -> FindingOrigins {
    FindingOrigins(
      source: try EntityHierarchy(
        ManagedObjectModel(entities: [
          EntityDescription(
            name: "Note",
            properties: [
              attribute("text"), relationship("folder", "Tag"),
              relationship("tags", "Tag", inverse: "notes", isToMany: true),
              relationship("links", "Tag", inverse: "linked", isToMany: true),
              relationship("parts", "Tag", isToMany: true), relationship("whole", "Tag"),
            ]),
          EntityDescription(name: "Draft", superentity: "Note"),
          EntityDescription(
            name: "Tag",
            properties: [
              relationship("notes", "Note", inverse: "tags", isToMany: true),
              relationship("linked", "Note", inverse: "links", isToMany: true),
            ]),
        ])),
      destination: try EntityHierarchy(
        ManagedObjectModel(entities: [
          EntityDescription(
            name: "Page", renamingIdentifier: "Note",
            properties: [
              attribute("body", id: "text"), attribute("new"),
              relationship("place", "Tag", id: "folder"),
              relationship("tags", "Tag", inverse: "pages", isToMany: true),
              relationship("links", "Tag", inverse: "referrers", isToMany: true),
              relationship("parts", "Tag", inverse: "partOf", isToMany: true),
              relationship("wholes", "Tag", inverse: "whole", isToMany: true, id: "whole"),
            ]),
          EntityDescription(name: "Draft", superentity: "Page"),
          EntityDescription(
            name: "Tag",
            properties: [
              relationship("pages", "Page", inverse: "tags", isToMany: true, id: "notes"),
              relationship("referrers", "Page", inverse: "links", isToMany: true),
              relationship("partOf", "Page", inverse: "parts"),
              relationship("whole", "Page", inverse: "wholes", isToMany: true),
            ]),
        ])), mapped: nil)
  }

  private static func finding(
    _ kind: StoreFinding.Kind, _ entity: String?, _ property: String?, _ count: Int64
  ) -> StoreFinding {
    StoreFinding(kind: kind, entity: entity, property: property, message: "", count: count)
  }

  private static let cases: [(StoreFinding, StoreFinding, Int64)] = [
    // Under other names.
    (finding(.dangling, "Page", "place", 3), finding(.dangling, "Note", "folder", 3), 0),
    (finding(.type, "Draft", "body", 2), finding(.type, "Draft", "text", 2), 0),
    (finding(.unique, "Page", "body, place", 1), finding(.unique, "Note", "text, folder", 1), 0),
    // Pairs, told of the other side.
    (finding(.dangling, "Tag", "pages", 1), finding(.dangling, "Note", "tags", 1), 0),
    // Pairs of a relationship that is new, or was renamed without an identifier, are its inverse's.
    (finding(.dangling, "Tag", "referrers", 2), finding(.dangling, "Note", "links", 2), 0),
    (finding(.dangling, "Tag", "referrers", 2), finding(.dangling, "Tag", "linked", 2), 0),
    (finding(.dangling, "Page", "links", 2), finding(.dangling, "Tag", "linked", 2), 0),
    (finding(.targetEntity, "Tag", "partOf", 1), finding(.targetEntity, "Note", "parts", 1), 0),
    (finding(.targetEntity, "Tag", "whole", 1), finding(.targetEntity, "Draft", "whole", 1), 0),
    (finding(.dangling, "Tag", "referrers", 2), finding(.dangling, "Note", "parts", 2), 2),
    // More rows than before.
    (finding(.dangling, "Page", "place", 5), finding(.dangling, "Note", "folder", 3), 2),
    // Of another kind, property or entity.
    (finding(.dangling, "Page", "place", 3), finding(.inverse, "Note", "folder", 3), 3),
    (finding(.type, "Page", "new", 3), finding(.type, "Note", "text", 3), 3),
    (finding(.dangling, "Tag", "pages", 1), finding(.dangling, "Note", "folder", 1), 1),
    // Of the whole store.
    (finding(.metadata, nil, nil, 1), finding(.metadata, nil, nil, 1), 0),
    (finding(.index, nil, nil, 2), finding(.metadata, nil, nil, 2), 2),
  ]

  @Test(arguments: cases)
  func `is new as far as the source has fewer rows of it`(
    found: StoreFinding, before: StoreFinding, new: Int64
  ) throws {
    let origins = try Self.origins()
    #expect(origins.newRows(found, beside: [before]) == new)
    #expect(origins.newRows(found, beside: []) == found.count)
  }
}
