internal import Glibc

/// A POSIX access control list, as the attributes `system.posix_acl_access` and `system.posix_acl_default`
/// have it: a version and entries, in little-endian order.
///
/// | bytes | what |
/// | --- | --- |
/// | 4 | the version, 2 |
/// | 8 for each entry | tag (2), permissions (2), number of the user or group (4) |
///
/// Sources: acl(5), `linux/posix_acl_xattr.h`.
struct AccessControlList: Equatable, Sendable {
  enum Tag {
    static let owner: UInt16 = 1
    static let user: UInt16 = 2
    static let group: UInt16 = 4
    static let namedGroup: UInt16 = 8
    static let mask: UInt16 = 16
    static let others: UInt16 = 32
  }

  struct Entry: Equatable, Sendable {
    var tag: UInt16
    /// As in a mode: 4 to read, 2 to write, 1 to execute or to search.
    var permissions: UInt16
    /// Of a named user or group; all ones elsewhere.
    var id: UInt32 = .max
  }

  static let accessAttribute = "system.posix_acl_access"
  static let defaultAttribute = "system.posix_acl_default"
  private static let version: UInt32 = 2

  var entries: [Entry]

  init(_ entries: [Entry]) { self.entries = entries }

  /// - Returns: Nil for bytes of another version, and for those that are no whole list.
  init?(bytes: [UInt8]) {
    func number(_ offset: Int, _ count: Int) -> UInt32 {
      bytes[offset..<offset + count].reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }
    guard bytes.count >= 4, bytes.count % 8 == 4, number(0, 4) == Self.version else { return nil }
    entries = stride(from: 4, to: bytes.count, by: 8).map { offset in
      Entry(
        tag: UInt16(truncatingIfNeeded: number(offset, 2)),
        permissions: UInt16(truncatingIfNeeded: number(offset + 2, 2)), id: number(offset + 4, 4))
    }
    guard [Tag.owner, Tag.group, Tag.others].allSatisfy({ tag in has(tag) }) else { return nil }
  }

  var bytes: [UInt8] {
    func bytes(_ number: UInt32, _ count: Int) -> [UInt8] {
      (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * UInt32($0))) }
    }
    return bytes(Self.version, 4)
      + entries.flatMap {
        bytes(UInt32($0.tag), 2) + bytes(UInt32($0.permissions), 2) + bytes($0.id, 4)
      }
  }

  /// The list of a file that belongs to another group than the one that it was written for.
  ///
  /// Nobody has more rights by it than before. Members of the other group, who were others, have those of others,
  /// as far as each named group has them, too: whoever is in both was kept to the latter's. Members of the group
  /// that is lost are others now, who have no more than it had.
  var forAnotherGroup: AccessControlList {
    var list = self
    let others = permissions(Tag.others) & permissions(Tag.group) & mask
    list.set(Tag.others, others)
    list.set(Tag.group, others & common(Tag.namedGroup))
    return list
  }

  /// The list of a folder in which whoever may read the file may search, and its owner may do everything.
  var forFolder: AccessControlList {
    var list = self
    for place in entries.indices {
      list.entries[place].permissions |= (entries[place].permissions & 4) >> 2
    }
    list.set(Tag.owner, 7)
    return list
  }

  mutating func letOwnerWrite() { set(Tag.owner, permissions(Tag.owner) | 6) }

  /// The nine bits of a mode for a file that cannot have the list, by which nobody has more rights: a named user
  /// has those of the group, or of others, there.
  var plainMode: mode_t {
    let users = common(Tag.user) & (has(Tag.user) ? mask : 7)
    let groups = common(Tag.namedGroup) & (has(Tag.namedGroup) ? mask : 7)
    let group = permissions(Tag.group) & mask & users
    let others = permissions(Tag.others) & users & groups
    return mode_t(permissions(Tag.owner) & 7) << 6 | mode_t(group & 7) << 3 | mode_t(others & 7)
  }

  /// The nine bits that the mode of a file with the list has: the mask's are those of the group.
  var mode: mode_t {
    let group = has(Tag.mask) ? mask : permissions(Tag.group)
    return mode_t(permissions(Tag.owner) & 7) << 6 | mode_t(group & 7) << 3
      | mode_t(permissions(Tag.others) & 7)
  }

  private var mask: UInt16 { has(Tag.mask) ? permissions(Tag.mask) : 7 }

  private func has(_ tag: UInt16) -> Bool { entries.contains { $0.tag == tag } }

  /// The permissions that all entries of a kind have; every one where there is none.
  private func common(_ tag: UInt16) -> UInt16 {
    entries.filter { $0.tag == tag }.reduce(7) { $0 & $1.permissions }
  }

  private func permissions(_ tag: UInt16) -> UInt16 {
    entries.first { $0.tag == tag }?.permissions ?? 0
  }

  private mutating func set(_ tag: UInt16, _ permissions: UInt16) {
    for place in entries.indices where entries[place].tag == tag {
      entries[place].permissions = permissions
    }
  }
}
