import CLinux
import Foundation
import SystemPackage
import Testing

@testable import GodwitDurableFiles

private typealias Entry = AccessControlList.Entry
private typealias Tag = AccessControlList.Tag

private let owner = Entry(tag: Tag.owner, permissions: 6)
private let group = Entry(tag: Tag.group, permissions: 6)
private let mask = Entry(tag: Tag.mask, permissions: 6)
private let others = Entry(tag: Tag.others, permissions: 0)

private func user(_ permissions: UInt16) -> Entry {
  Entry(tag: Tag.user, permissions: permissions, id: 1234)
}

private func named(_ permissions: UInt16) -> Entry {
  Entry(tag: Tag.namedGroup, permissions: permissions, id: 5678)
}

/// Written by hand: setfacl(1) need not be installed.
private func set(_ list: AccessControlList, _ name: String, _ path: FilePath) -> Bool {
  setxattr(path.string, name, list.bytes, list.bytes.count, 0) == 0
}

private func list(of path: FilePath, _ name: String = AccessControlList.accessAttribute)
  -> AccessControlList?
{
  var bytes = [UInt8](repeating: 0, count: 1024)
  let count = getxattr(path.string, name, &bytes, bytes.count)
  return count < 0 ? nil : AccessControlList(bytes: Array(bytes[..<count]))
}

private func mode(_ path: FilePath) throws -> UInt32 { UInt32(try Stat(path).permissions.rawValue) }

/// Whether files of temporary folders can have access control lists: not on each volume.
private let hasLists: Bool = {
  guard let folder = try? TemporaryFolder() else { return false }
  let list = AccessControlList([owner, user(6), group, mask, others])
  return set(list, AccessControlList.defaultAttribute, folder.path)
}()

/// setfsuid(2), which glibc's module does not have.
@_silgen_name("setfsuid") @discardableResult private func setFileUser(_ user: uid_t) -> CInt

@Suite struct `An access control list` {
  @Test func `is read and written as the kernel has it`() {
    let bytes: [UInt8] = [
      2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0, 210, 4, 0, 0, 4, 0, 6, 0, 255, 255,
      255, 255, 16, 0, 6, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255,
    ]
    let list = AccessControlList([owner, user(4), group, mask, others])
    #expect(AccessControlList(bytes: bytes) == list && list.bytes == bytes)
    #expect(list.mode == 0o660)
    // Cut short, of another version, and without what each list has.
    #expect(AccessControlList(bytes: Array(bytes.dropLast())) == nil)
    #expect(AccessControlList(bytes: [3] + bytes.dropFirst()) == nil)
    #expect(AccessControlList(bytes: Array(bytes.prefix(12))) == nil)
  }

  @Test(arguments: [
    // The group is lost: its entry says what others have.
    ([UInt16](), [UInt16](), UInt16(6), UInt16(6), UInt16(0), UInt16(0), UInt16(0)),
    ([6], [], 6, 6, 4, 4, 4),
    // Members of a named group may be in the new one, and had less than others.
    ([], [0], 6, 6, 4, 0, 4),
    // Whoever was in the group had less than others, and is one of them now.
    ([], [], 0, 6, 4, 0, 0),
    ([6], [], 6, 0, 4, 0, 0),
  ])
  func `gives another group no more than others had`(
    users: [UInt16], groups: [UInt16], own: UInt16, masked: UInt16, other: UInt16,
    newGroup: UInt16, newOthers: UInt16
  ) {
    func list(_ own: UInt16, _ other: UInt16) -> AccessControlList {
      AccessControlList(
        [owner] + users.map(user) + [Entry(tag: Tag.group, permissions: own)] + groups.map(named)
          + [Entry(tag: Tag.mask, permissions: masked), Entry(tag: Tag.others, permissions: other)])
    }
    #expect(list(own, other).forAnotherGroup == list(newGroup, newOthers))
  }

  @Test func `becomes a mode that gives nobody more where it cannot be kept`() {
    func mode(_ entries: Entry...) -> mode_t {
      AccessControlList([owner, group] + entries).plainMode
    }
    let read = Entry(tag: Tag.others, permissions: 4)
    #expect(mode(mask, read) == 0o664)
    // The group's bits of the mode were the mask.
    #expect(mode(Entry(tag: Tag.mask, permissions: 4), read) == 0o644)
    // A named user may be in the group, or one of the others.
    #expect(mode(mask, read, user(0)) == 0o600)
    #expect(mode(mask, read, user(4)) == 0o644)
    // A member of the group and of a named one had the rights of both.
    #expect(mode(mask, read, named(0)) == 0o660)
  }
}

@Suite(.enabled(if: hasLists, "the temporary folder's volume has no access control lists"))
struct `In a folder that gives new files an access control list` {
  private let folder: TemporaryFolder
  private let inherited = AccessControlList([
    Entry(tag: Tag.owner, permissions: 7), user(7), Entry(tag: Tag.group, permissions: 7),
    Entry(tag: Tag.mask, permissions: 7), Entry(tag: Tag.others, permissions: 5),
  ])

  init() throws {
    folder = try TemporaryFolder()
    try DurableFile.write([1], to: folder.file("source"))
    #expect(chmod(folder.file("source").string, 0o660) == 0)
    #expect(set(inherited, AccessControlList.defaultAttribute, folder.path))
  }

  @Test func `a copy has the source's rights alone`() throws {
    try DurableFile.copy(folder.file("source"), to: folder.file("copy"))
    #expect(list(of: folder.file("copy")) == nil)
    #expect(try mode(folder.file("copy")) == 0o660)
    #expect(try DurableFile.haveSameRights(folder.file("source"), folder.file("copy")))
  }

  @Test func `a file that takes the source's place has the source's rights alone`() throws {
    try DurableFile.write([2], to: folder.file("new"))
    #expect(chmod(folder.file("new").string, 0o644) == 0 && list(of: folder.file("new")) != nil)
    #expect(try !DurableFile.haveSameRights(folder.file("source"), folder.file("new")))
    let lost = try DurableFile.copyAttributes(
      from: folder.file("source"), to: folder.file("new"))
    #expect(lost == LostRights())
    #expect(list(of: folder.file("new")) == nil)
    #expect(try mode(folder.file("new")) == 0o660)
  }

  @Test func `a copy is its owner's alone until it has the source's rights`() throws {
    // Until then it has the mode that it was made with, whose group bits are the list's mask.
    let pending = try PendingFile(for: folder.file("copy"))
    #expect(try mode(pending.temporaryPath) == 0o600)
    let found = try #require(list(of: pending.temporaryPath))
    #expect(found.entries.contains(Entry(tag: Tag.mask, permissions: 0)))
  }

  @Test func `a copy has the source's list, and the model's where it has one`() throws {
    let own = AccessControlList([owner, user(4), group, mask, others])
    #expect(set(own, AccessControlList.accessAttribute, folder.file("source")))
    try DurableFile.copy(folder.file("source"), to: folder.file("copy"))
    #expect(list(of: folder.file("copy")) == own)
    try DurableFile.write([3], to: folder.file("private"))
    try DurableFile.copy(
      folder.file("private"), to: folder.file("shared"), rightsOf: folder.file("source"))
    #expect(list(of: folder.file("shared")) == own)
    #expect(removexattr(folder.file("source").string, AccessControlList.accessAttribute) == 0)
    try DurableFile.copy(
      folder.file("shared"), to: folder.file("plain"), rightsOf: folder.file("source"))
    #expect(list(of: folder.file("plain")) == nil)
  }

  @Test func `a folder has the rights of the one that it is like`() throws {
    let original = folder.file("original")
    try DurableFile.makeFolder(original)
    for name in [AccessControlList.accessAttribute, AccessControlList.defaultAttribute] {
      #expect(removexattr(original.string, name) == 0)
    }
    #expect(chmod(original.string, 0o750) == 0)
    try DurableFile.makeFolder(folder.file("made"))
    #expect(list(of: folder.file("made")) != nil)
    try DurableFile.copyRights(
      ofFolder: original, orFile: folder.file("source"), to: folder.file("made"))
    #expect(list(of: folder.file("made")) == nil)
    #expect(list(of: folder.file("made"), AccessControlList.defaultAttribute) == nil)
    #expect(try mode(folder.file("made")) == 0o750)
  }

  @Test func `a folder without another is searched by whoever may read the file`() throws {
    let own = AccessControlList([owner, user(4), group, mask, others])
    #expect(set(own, AccessControlList.accessAttribute, folder.file("source")))
    try DurableFile.makeFolder(folder.file("made"))
    try DurableFile.copyRights(
      ofFolder: nil, orFile: folder.file("source"), to: folder.file("made"))
    let full = Entry(tag: Tag.owner, permissions: 7)
    #expect(
      list(of: folder.file("made"))
        == AccessControlList([
          full, user(5), Entry(tag: Tag.group, permissions: 7),
          Entry(tag: Tag.mask, permissions: 7), others,
        ]))
  }

  /// Another user's files need a privileged one.
  @Test(.enabled(if: geteuid() == 0, "not run as root"))
  func `a copy that belongs to another group has a list that gives it no more than others`()
    throws
  {
    let own = AccessControlList([owner, user(6), group, mask, others])
    #expect(set(own, AccessControlList.accessAttribute, folder.file("source")))
    #expect(chown(folder.file("source").string, 12_346, 12_345) == 0)
    #expect(chown(folder.path.string, 12_346, 0) == 0)
    // Of this thread alone.
    setFileUser(12_346)
    defer { setFileUser(0) }
    let lost = try DurableFile.copy(folder.file("source"), to: folder.file("copy"))
    #expect(lost == LostRights(group: 12_345))
    let narrowed = Entry(tag: Tag.group, permissions: 0)
    #expect(
      list(of: folder.file("copy")) == AccessControlList([owner, user(6), narrowed, mask, others]))
  }
}

@Suite(.enabled(if: geteuid() == 0, "not run as root")) struct `What a copy could not have` {
  @Test func `is told, and nobody has more rights for it`() throws {
    let folder = try TemporaryFolder()
    let source = folder.file("source")
    try DurableFile.write([1], to: source)
    #expect(chown(source.string, 12_345, 12_345) == 0 && chmod(source.string, 0o6604) == 0)
    #expect(chown(folder.path.string, 12_346, 0) == 0)
    setFileUser(12_346)
    defer { setFileUser(0) }
    let lost = try DurableFile.copy(source, to: folder.file("copy"))
    #expect(lost == LostRights(owner: 12_345, group: 12_345))
    // Neither bit is another's, and members of the lost group had no rights that others have.
    #expect(try mode(folder.file("copy")) == 0o600)
  }
}
