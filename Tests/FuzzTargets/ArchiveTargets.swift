import GodwitKeyedArchive

enum ArchiveTargets {
  static func propertyList(_ bytes: [UInt8]) throws {
    let list = try PropertyList(bytes: bytes)
    // What is written reads back as the same. Bytes are compared, since no NaN equals itself.
    let written = list.binary()
    let again = certain("a written property list reads") { try PropertyList(bytes: written) }
    hold("a property list stays as it is when it is written", again.binary() == written)
  }

  static func keyedArchive(_ bytes: [UInt8]) throws {
    let archive = try KeyedArchive(bytes: bytes)
    var budget = 10_000
    walk(try archive.root(), depth: 0, &budget)
  }

  /// Goes through a graph, which may be a circle, as its readers do: by keys that they know.
  private static func walk(_ object: ArchivedObject, depth: Int, _ budget: inout Int) {
    guard depth < 64, budget > 0 else { return }
    budget -= 1
    _ = object.className
    for key in ["NS.objects", "NS.keys", "NSEntities", "NSProperties", "values"] {
      _ = object.string(key)
      for value in object.elements(key) {
        _ = value.string
        if let next = value.object { walk(next, depth: depth + 1, &budget) }
      }
    }
  }
}
