#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// A name of a model as a key: compared by its Unicode scalars.
///
/// Swift takes canonically equal texts for one: `é` as one scalar and as `e` with an accent. Core
/// Data does not: `NSString` compares code units, and the version hash is made of bytes. Keys of
/// dictionaries and sets are therefore of this type wherever names of two models, or of a model and
/// a file beside it, meet. Within one model there are no two such names: see ``ModelRules``.
package struct NameKey: Hashable, Sendable {
  /// The name as the model spells it.
  package let name: String

  /// Makes a key of a name.
  package init(_ name: String) { self.name = name }

  /// Equal where they have the same Unicode scalars.
  package static func == (a: NameKey, b: NameKey) -> Bool { a.name.isSameName(as: b.name) }

  /// Equal names have equal hashes.
  package func hash(into hasher: inout Hasher) { name.hashScalars(into: &hasher) }
}

extension String {
  /// Whether two names have the same Unicode scalars.
  package func isSameName(as other: String) -> Bool {
    // Equal words are equal names: a short name lies in them, a long one is where they point.
    if unsafeBitCast(self, to: (UInt, UInt).self) == unsafeBitCast(other, to: (UInt, UInt).self) {
      return true
    }
    let isSame = utf8.withContiguousStorageIfAvailable { own in
      other.utf8.withContiguousStorageIfAvailable { other in
        guard own.count == other.count else { return false }
        guard let one = own.baseAddress, let two = other.baseAddress else { return own.isEmpty }
        return memcmp(one, two, own.count) == 0
      }
    }
    return (isSame ?? nil) ?? utf8.elementsEqual(other.utf8)
  }

  /// Feeds the scalars to a hasher. `String.hash(into:)` feeds those of the normal form.
  func hashScalars(into hasher: inout Hasher) {
    var text = self
    text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    hasher.combine(0xFF as UInt8)
  }
}

extension String {
  /// The names between the dots of a key path. By scalars: to Swift a dot before a combining mark is
  /// another character.
  package var keyPathParts: [String] {
    unicodeScalars.split(separator: ".", omittingEmptySubsequences: false).map { String($0) }
  }
}

extension [String] {
  /// For a person who gave a name that is not among these: a sentence after a space where one of them looks the same,
  /// else nothing.
  package func noteOfLookalike(of name: String) -> String {
    guard let other = first(where: { $0 == name && !$0.isSameName(as: name) }) else { return "" }
    return
      " The name \(other) there looks the same, and has other Unicode scalars: copy it from there."
  }
}

extension String? {
  /// Whether both are missing, or have the same Unicode scalars.
  package func isSameName(as other: String?) -> Bool {
    switch (self, other) {
    case (nil, nil): true
    case (let a?, let b?): a.isSameName(as: b)
    default: false
    }
  }
}
