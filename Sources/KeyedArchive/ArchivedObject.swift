/// An object of a ``KeyedArchive``: a place in the graph, not a copy of it.
///
/// Two are equal when they are the same object of the same archive.
package struct ArchivedObject: Sendable {
  /// The object's place in `$objects`; one number for one object, so cycles can be noticed.
  /// Nil-like −1 for an object that stands inside another one.
  package let reference: Int
  private let content: PropertyListDictionary
  private let storage: KeyedArchive.Storage

  init(reference: Int, content: PropertyListDictionary, storage: KeyedArchive.Storage) {
    self.reference = reference
    self.content = content
    self.storage = storage
  }

  private var classDescription: PropertyList? {
    content["$class"]?.uid.map { storage.objects[Int($0)] }
  }

  /// The class that was archived, such as `NSEntityDescription`.
  package var className: String { classDescription?["$classname"]?.string ?? "" }

  /// The class and its superclasses, nearest first, as far as the archive lists them.
  package var classNames: [String] {
    classDescription?["$classes"]?.array?.compactMap(\.string) ?? [className]
  }

  package func isKind(of name: String) -> Bool {
    className == name || classNames.contains(name)
  }

  /// The value under a key; nil where the key is absent or its value is nil.
  package subscript(key: String) -> ArchivedValue? {
    guard let raw = content[key] else { return nil }
    return ArchivedValue(raw, in: storage).unlessNull
  }

  package func string(_ key: String) -> String? { self[key]?.string }
  package func integer(_ key: String) -> Int64? { self[key]?.integer }
  /// Archivers leave false out, so an absent key is false.
  package func boolean(_ key: String) -> Bool { self[key]?.boolean ?? false }
  package func object(_ key: String) -> ArchivedObject? { self[key]?.object }
  /// The elements of an array or a set; empty where there is none.
  package func elements(_ key: String) -> [ArchivedValue] { self[key]?.elements ?? [] }
  /// The pairs of a dictionary whose keys are strings; empty where there is none.
  package func entries(_ key: String) -> [(key: String, value: ArchivedValue)] {
    self[key]?.stringEntries ?? []
  }

  /// What is under a key, with all that it leads to, as an archive of its own; nil where the value is.
  package func archive(of key: String) -> [UInt8]? {
    guard let raw = content[key], self[key] != nil else { return nil }
    var writer = KeyedArchiveWriter()
    let root = writer.copy(raw, of: storage)
    return writer.bytes(root: root)
  }
}

extension ArchivedObject: Hashable {
  package static func == (a: Self, b: Self) -> Bool {
    a.storage === b.storage && a.reference == b.reference
      && (a.reference >= 0 || a.content == b.content)
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(storage))
    hasher.combine(reference)
  }
}
