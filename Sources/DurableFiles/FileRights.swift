private import CLinux
internal import Glibc
internal import SystemPackage

/// Who may do what with a file: its mode, owner, group and access control list.
struct FileRights: Equatable {
  var mode: mode_t
  var owner: UInt32
  var group: UInt32
  /// Nil for a file that has none: the mode says it all.
  var list: AccessControlList?
  var isFolder: Bool

  private init(_ status: stat, _ list: AccessControlList?) {
    isFolder = FileKind(mode: status.st_mode) == .folder
    mode = status.st_mode & 0o7777
    owner = status.st_uid
    group = status.st_gid
    self.list = list
  }

  /// Of an open file or folder.
  init(of file: FileDescriptor, _ path: FilePath) throws {
    var status = stat()
    try calling("fstat", path) { fstat(file.rawValue, &status) }
    self.init(
      status,
      try AccessControlList(AccessControlList.accessAttribute, path) {
        fgetxattr(file.rawValue, $0, $1, $2)
      })
  }

  /// Of what lies at a path, which is not opened; nil where nothing is there.
  init?(at path: FilePath) throws {
    guard let status = try FileKind.status(of: path) else { return nil }
    self.init(status, try AccessControlList(AccessControlList.accessAttribute, at: path))
  }

  /// The rights where the file could not have its owner or its group. Nobody else gets what they had.
  ///
  /// A mode that is another user's has no set-user-ID bit, and one of another group no set-group-ID bit.
  fileprivate func without(owner lostOwner: Bool, group lostGroup: Bool) -> FileRights {
    var rights = self
    if lostOwner { rights.mode &= ~0o4000 }
    guard lostGroup else { return rights }
    rights.mode &= ~0o2000
    if let list {
      rights.list = list.forAnotherGroup
      rights.mode = rights.mode & ~0o777 | list.forAnotherGroup.mode
    } else {
      // The group's members are others now, and others may be in the new group.
      let others = rights.mode & rights.mode >> 3 & 0o007
      rights.mode = rights.mode & ~0o077 | others << 3 | others
    }
    return rights
  }

  /// Whether a file with these has others as far as its volume can keep them.
  fileprivate func isAlready(_ wanted: FileRights) -> Bool {
    if mode == wanted.mode, list == wanted.list { return true }
    guard list == nil, let plain = wanted.list?.plainMode else { return false }
    return mode == wanted.mode & ~0o777 | plain
  }

  /// The same for a folder that holds what a file refers to: whoever may read the file may search it.
  var forFolder: FileRights {
    var rights = self
    rights.mode = S_IRWXU | mode & 0o777 | (mode & 0o444) >> 2
    rights.list = list?.forFolder
    if let list = rights.list { rights.mode = list.mode }
    return rights
  }
}

extension AccessControlList {
  /// What lies at a path has it by the name; nil where it has none.
  init?(_ name: String = AccessControlList.accessAttribute, at path: FilePath) throws {
    try self.init(name, path) { name, value, size in
      path.withPlatformString { lgetxattr($0, name, value, size) }
    }
  }

  /// - Throws: ``DurabilityError/failed(call:path:_:)`` where nobody can tell, and for a list that is not understood:
  ///   what the group's bits of the mode say depends on it.
  fileprivate init?(
    _ name: String, _ path: FilePath,
    reading: (String, UnsafeMutableRawPointer?, Int) -> Int
  ) throws {
    // 64 KiB: what Linux allows a value at most. See xattr(7).
    let value = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 8)
    defer { value.deallocate() }
    let count = reading(name, value.baseAddress, value.count)
    guard count >= 0 else {
      switch errno {
      case ENODATA, ENOTSUP, ENOSYS: return nil
      default:
        throw DurabilityError.failed(call: "getxattr", path: path, Errno(rawValue: errno))
      }
    }
    // The version alone is a list of nobody.
    guard count > 4 else { return nil }
    guard let list = AccessControlList(bytes: Array(value[..<count])) else {
      throw DurabilityError.failed(call: "getxattr", path: path, .invalidArgument)
    }
    self = list
  }
}

/// When an extended attribute is set.
enum AttributeKind {
  /// Before the mode: an attribute of the namespace `user` needs the right to write.
  case plain
  /// After it, and only where owner and group are kept. Lists of network file systems, such as `system.nfs4_acl`,
  /// speak of the owner and the group without a name, and change with the mode.
  case system

  init(of name: String) { self = name.hasPrefix("system.") ? .system : .plain }
}

/// Gives an open file or folder rights, and no others: a list that it inherited from its folder goes.
///
/// It is closed to all but its owner until it has them: the mask of a list is the group's bits of the mode. Where
/// it has the rights already, nothing is changed.
///
/// - Parameter attributes: Sets attributes of a kind, and tells which could not be set.
/// - Returns: What the file could not have.
@discardableResult
func giveRights(
  _ rights: FileRights, to output: FileDescriptor, _ path: FilePath,
  settingAttributes attributes: ((AttributeKind) throws -> [String])? = nil
) throws -> LostRights {
  // Only root may give a file away; the group alone may still be possible. In a container, the owner may be
  // one that it knows, and the group none. The mode comes after, since a new owner clears parts of it.
  let file = output.rawValue
  if fchown(file, rights.owner, rights.group) != 0, fchown(file, uid_t.max, rights.group) != 0 {
    _ = fchown(file, rights.owner, gid_t.max)
  }
  let found = try FileRights(of: output, path)
  let (hasOwner, hasGroup) = (found.owner == rights.owner, found.group == rights.group)
  let wanted = rights.without(owner: !hasOwner, group: !hasGroup)
  var lost = LostRights(
    owner: hasOwner ? nil : rights.owner, group: hasGroup ? nil : rights.group)
  if attributes == nil, found.isAlready(wanted) { return lost }
  try calling("fchmod", path) { fchmod(file, found.isFolder ? 0o700 : 0o600) }
  if found.list != nil {
    try calling("fremovexattr", path) { fremovexattr(file, AccessControlList.accessAttribute) }
  }
  var names = try attributes?(.plain) ?? []
  var mode = wanted.mode
  if let list = wanted.list, try !set(list, AccessControlList.accessAttribute, output, path) {
    names.append(AccessControlList.accessAttribute)
    mode = mode & ~0o777 | list.plainMode
  }
  try calling("fchmod", path) { fchmod(file, mode) }
  if hasOwner, hasGroup { names += try attributes?(.system) ?? [] }
  lost.attributes = names.isEmpty ? nil : names.sorted()
  return lost
}

/// Gives an open folder the list that new files in it get from another folder; takes one away that the other has not.
///
/// - Parameter isForAnotherGroup: Whether what is made in the folder belongs to another group.
func giveDefaultList(
  of original: FilePath, to folder: FileDescriptor, _ path: FilePath, isForAnotherGroup: Bool
) throws {
  let name = AccessControlList.defaultAttribute
  if let list = try AccessControlList(name, at: original) {
    _ = try set(isForAnotherGroup ? list.forAnotherGroup : list, name, folder, path)
  } else if try AccessControlList(name, at: path) != nil {
    try calling("fremovexattr", path) { fremovexattr(folder.rawValue, name) }
  }
}

/// - Returns: False where this user or volume cannot set it.
private func set(
  _ list: AccessControlList, _ name: String, _ file: FileDescriptor, _ path: FilePath
) throws -> Bool {
  let bytes = list.bytes
  if fsetxattr(file.rawValue, name, bytes, bytes.count, 0) == 0 { return true }
  switch errno {
  case EPERM, EACCES, ENOTSUP, EINVAL, ENOSYS, ENOSPC, E2BIG, ERANGE: return false
  default:
    throw DurabilityError.failed(call: "fsetxattr", path: path, Errno(rawValue: errno))
  }
}
