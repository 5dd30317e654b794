/// A graph of objects as `NSKeyedArchiver` writes it, read as data.
///
/// No class is ever instantiated: an object is the name of its class and its coded keys, and one
/// of an unknown class is no different from the others. Access is by reference and lazy, so
/// graphs that go in circles (entity ↔ property ↔ model) are harmless. All references are
/// checked once, when the archive is opened; following them afterwards cannot fail.
///
/// Source: `core-data-models.md` §4. An archive is a property list with the keys `$archiver`,
/// `$version`, `$top` (name → reference) and `$objects` (an array, in which object 0 is nil).
package struct KeyedArchive: Sendable {
  let storage: Storage

  /// What all objects of one archive share.
  final class Storage: Sendable {
    let objects: [PropertyList]
    let top: PropertyListDictionary

    init(objects: [PropertyList], top: PropertyListDictionary) {
      self.objects = objects
      self.top = top
    }
  }

  /// - Throws: ``ArchiveError``.
  package init(bytes: [UInt8]) throws { try self.init(PropertyList(bytes: bytes)) }

  /// - Throws: ``ArchiveError``.
  package init(_ list: PropertyList) throws {
    guard case .array(let objects)? = list["$objects"], let top = list["$top"]?.dictionary,
      !objects.isEmpty
    else { throw ArchiveError.notAKeyedArchive(reason: "it has no $objects or no $top") }
    for object in objects { try Self.check(object, in: objects) }
    for (_, value) in top { try Self.check(value, in: objects) }
    storage = Storage(objects: objects, top: top)
  }

  private static func check(_ object: PropertyList, in objects: [PropertyList]) throws {
    if case .uid(let reference) = object, let target = place(reference, in: objects),
      case .uid = objects[target]
    {
      throw ArchiveError.notAKeyedArchive(reason: "a reference leads to a reference")
    }
    // An explicit stack; the tree's depth is bounded, and so is its size.
    var waiting = [object]
    while let value = waiting.popLast() {
      switch value {
      case .uid(let reference):
        guard place(reference, in: objects) != nil else {
          throw ArchiveError.notAKeyedArchive(reason: "a reference goes past the last object")
        }
      case .array(let values), .set(let values): waiting += values
      case .dictionary(let dictionary):
        waiting += dictionary.values
        guard let described = dictionary["$class"] else { continue }
        guard case .uid(let reference) = described, let target = place(reference, in: objects),
          case .string? = objects[target]["$classname"]
        else { throw ArchiveError.notAKeyedArchive(reason: "an object has no class") }
      default: break
      }
    }
  }

  private static func place(_ reference: UInt32, in objects: [PropertyList]) -> Int? {
    Int(reference) < objects.count ? Int(reference) : nil
  }

  /// A value of `$top`, or nil.
  package subscript(top name: String) -> ArchivedValue? {
    guard let raw = storage.top[name] else { return nil }
    return ArchivedValue(raw, in: storage).unlessNull
  }

  /// The object under the usual name.
  ///
  /// - Throws: ``ArchiveError/notAKeyedArchive(reason:)`` where there is no such object.
  package func root() throws -> ArchivedObject {
    guard let root = self[top: "root"]?.object else {
      throw ArchiveError.notAKeyedArchive(reason: "it has no root object")
    }
    return root
  }
}
