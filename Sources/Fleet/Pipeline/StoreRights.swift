import Glibc
import GodwitDurableFiles
import SystemPackage

/// What this user may not do to the stores that a run will migrate: one finding for each kind, with an
/// example.
struct StoreRights {
  private var unreadable: [FilePath] = []
  private var unwritable: [FilePath] = []
  private var closed: Set<FilePath> = []
  private var held: [FilePath] = []
  private var foreign: [FilePath] = []
  private var ofOtherGroups: [FilePath] = []

  /// - Parameter isReplaced: Whether stores are replaced; else outputs are written beside them.
  init(_ stores: [FoundStore], isReplaced: Bool) {
    let user = geteuid()
    let groups = Self.groups
    var folders: Set<FilePath> = []
    for store in stores {
      var status = stat()
      let isKnown = user != 0 && store.path.withPlatformString { lstat($0, &status) } == 0
      let isOthers = isKnown && status.st_uid != user
      if !Self.may(R_OK, store.path) {
        unreadable.append(store.path)
      } else if isReplaced, isOthers, !Self.may(W_OK, store.path) {
        // What is this user's is replaced whatever its permissions are: by name, in its folder.
        unwritable.append(store.path)
      }
      let folder = store.path.removingLastComponent()
      if folders.insert(folder).inserted, (try? Folder.checkWritable(folder)) == nil {
        closed.insert(folder)
      }
      if isReplaced, isOthers { foreign.append(store.path) }
      if isReplaced, isKnown, !groups.contains(status.st_gid) { ofOtherGroups.append(store.path) }
      if isReplaced, StoreReplacement.ownerWhoHolds(store.path) != nil { held.append(store.path) }
    }
  }

  /// As the user that writes, whatever started the program.
  private static func may(_ what: Int32, _ path: FilePath) -> Bool {
    path.withPlatformString { faccessat(AT_FDCWD, $0, what, AT_EACCESS) } == 0
  }

  /// Those that this user may give to a file.
  private static var groups: Set<gid_t> {
    let room = getgroups(0, nil)
    guard room > 0 else { return [getegid()] }
    let groups = [gid_t](unsafeUninitializedCapacity: Int(room)) { buffer, count in
      count = max(0, Int(getgroups(room, buffer.baseAddress)))
    }
    return Set(groups).union([getegid()])
  }

  func findings(in root: FilePath) -> [Doctor.Finding] {
    var findings: [Doctor.Finding] = []
    func add(_ count: Int, _ example: FilePath?, _ what: String, _ advice: String) {
      guard let example else { return }
      let more = count > 1 ? " and \(count - 1) more" : ""
      findings.append(
        Doctor.Finding(
          name: "\(what) in \(root)", value: "\(example)\(more)", isGood: false, advice: advice))
    }
    add(
      unreadable.count, unreadable.first, "stores that this user may not read",
      "They would fail. Let this user read them, or exclude them.")
    add(
      unwritable.count, unwritable.first, "stores that this user may not write to",
      "They would not be replaced. Let this user write to them, or exclude them.")
    add(
      closed.count, closed.min { $0.string < $1.string },
      "folders that this user may not write to",
      "A migrated store is written beside the old one. Let this user write there.")
    add(
      held.count, held.first, "stores of other users in sticky folders",
      "Nobody but their owners may replace them there. Run as their owner, or as root.")
    add(
      foreign.count, foreign.first, "stores of other users",
      "What takes their place would belong to user \(geteuid()). Run as their owner, or as root.")
    add(
      ofOtherGroups.count, ofOtherGroups.first, "stores of groups that this user is not in",
      "What takes their place would belong to group \(getegid()), without their group's rights. Run as a member "
        + "of their groups, or as root.")
    return findings
  }
}
