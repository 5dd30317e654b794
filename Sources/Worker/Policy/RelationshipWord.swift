import GodwitPlanning
import GodwitSQLite

/// What is said of one object's relationship.
///
/// Core Data keeps the other side up at once. Here words are kept in the order in which they were
/// said, and put together when all shards have spoken: see ``HookWords``.
struct RelationshipWord {
  enum Kind: UInt32 {
    /// It has these objects and no others.
    case whole
    case added, removed
  }

  var kind: Kind
  /// A policy's hook says it; else a relationship mapping.
  var isHook = true
  /// Takes back a word about the same relationship of the same object.
  var isRevision = false
  /// How many members there are before those that are added.
  var members = 0

  var manner: Edge.Manner {
    let verb: Edge.Manner =
      switch kind {
      case .whole: []
      case .added: .addition
      case .removed: .removal
      }
    return verb.union(isHook ? .hook : [])
  }

  /// See ``Edge/emit(_:_:isToMany:key:number:_:manner:after:_:)``.
  var first: Int? { kind == .whole ? nil : members }

  /// What there is to know of a group when the word has been said on one side of it.
  func hookWords(side: Int) -> HookWords {
    (isHook ? HookWords(side: side) : []).union(isRevision || kind == .removed ? .revised : [])
  }
}

extension RelationshipWord {
  /// Kind and revision, members; four bytes each, little-endian. Hooks alone speak in the copy stage.
  func encode(into buffer: inout RawBuffer) {
    buffer.append(number: (kind.rawValue | (isRevision ? 1 << 8 : 0)).littleEndian)
    buffer.append(number: UInt32(clamping: members).littleEndian)
  }

  static let byteCount = 8

  init?(_ bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= Self.byteCount else { return nil }
    let first = UInt32(littleEndian: bytes.loadUnaligned(as: UInt32.self))
    guard let kind = Kind(rawValue: first & 0xff) else { return nil }
    self.init(
      kind: kind, isRevision: first >> 8 == 1,
      members: Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt32.self))))
  }
}
