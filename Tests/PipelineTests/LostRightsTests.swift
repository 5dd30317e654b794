import CLinux
import Foundation
import StoreFixtures
import Testing

/// Another user's files need a privileged one.
@Suite(
  .enabled(
    if: geteuid() == 0 && access("/usr/bin/setpriv", X_OK) == 0, "not run as root, or no setpriv"))
struct `A store whose group a run cannot keep` {
  private let folder: PipelineFolder
  private static let (user, group): (uid_t, gid_t) = (65_534, 12_345)
  private static let wrapper = [
    "/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
  ]

  init() throws {
    folder = try PipelineFolder.orders(["a", "b", "c"])
    let walk = FileManager.default.enumerator(atPath: folder.root.path)
    for name in [""] + (walk?.compactMap { $0 as? String } ?? []) {
      #expect(lchown(folder.root.path + "/" + name, Self.user, Self.user) == 0)
    }
    for store in ["a", "b", "c"] {
      let path = folder.path("stores/\(store).sqlite")
      #expect(chown(path, Self.user, Self.group) == 0 && chmod(path, 0o660) == 0)
    }
  }

  private func godwit(_ arguments: String...) throws -> Godwit.Run {
    try Godwit.run(arguments, wrapper: Self.wrapper)
  }

  @Test func `is named at the end of the run, in the history and in the report`() throws {
    let run = try godwit("run", folder.url.path, "--quiet")
    #expect(run.status == 0)
    let (a, b) = (folder.path("stores/a.sqlite"), folder.path("stores/b.sqlite"))
    let named = [a, b, folder.path("stores/c.sqlite")].filter {
      run.messages.contains("\($0) (group 12345)")
    }
    #expect(
      run.messages.contains("warning: the group of 3 stores could not be kept: ")
        && run.messages.contains(" and 1 more.") && named.count == 2, "\(run.messages)")
    #expect(try godwit("history", folder.url.path, a).output.contains("belongs to group 12345"))
    #expect(try godwit("report", folder.url.path, "--json").output.contains("group 12345"))
    let rollback = try godwit("rollback", folder.url.path)
    #expect(rollback.status == 0)
    #expect(rollback.messages.contains("\(a): Run "), "\(rollback.messages)")
    #expect(rollback.messages.contains("belongs to group 12345"), "\(rollback.messages)")
  }

  @Test func `is what doctor warns of, and not where it can be kept`() throws {
    let warning = "stores of groups that this user is not in"
    #expect(try godwit("doctor", folder.url.path).output.contains(warning))
    let member = Self.wrapper.dropLast() + ["--groups=\(Self.group)"]
    let doctor = try Godwit.run(["doctor", folder.url.path], wrapper: Array(member))
    #expect(!doctor.output.contains(warning) && !doctor.output.contains("stores of other users"))
  }

  @Test func `is named in its result, with attributes that are lost`() throws {
    // cap_net_raw, version 2: see capabilities(7).
    let value: [UInt8] = [0, 0, 0, 2, 0, 32, 0, 0] + [UInt8](repeating: 0, count: 12)
    let path = folder.path("stores/a.sqlite")
    let isCapable = setxattr(path, "security.capability", value, value.count, 0) == 0
    let run = try godwit("run", folder.url.path, "--json")
    let results = run.lines("result")
    #expect(run.status == 0 && results.count == 3)
    for result in results {
      let lost = try #require(result["lostRights"] as? [String: Any])
      #expect(lost["group"] as? Int == 12_345 && lost["owner"] == nil)
      let isFirst = (result["store"] as? String) == path
      #expect(
        lost["attributes"] as? [String] == (isFirst && isCapable ? ["security.capability"] : nil))
    }
    #expect(
      run.messages.contains("1 store could not be kept: \(path) (security.capability)")
        == isCapable)
  }

  @Test func `is not named where it was kept`() throws {
    let run = try Godwit.run(["run", folder.url.path, "--json"])
    #expect(run.status == 0 && !run.messages.contains("warning"), "\(run.messages)")
    #expect(run.lines("result").allSatisfy { $0["lostRights"] == nil })
  }

  @Test func `gives another group no rights by an access control list`() throws {
    let path = folder.path("stores/a.sqlite")
    // Owner rw, user 1234 rw, group rw, mask rw, others nothing: see acl(5).
    let entries: [(UInt8, UInt8, [UInt8])] = [
      (1, 6, [255, 255, 255, 255]), (2, 6, [210, 4, 0, 0]), (4, 6, [255, 255, 255, 255]),
      (16, 6, [255, 255, 255, 255]), (32, 0, [255, 255, 255, 255]),
    ]
    func list(group: UInt8) -> [UInt8] {
      [2, 0, 0, 0] + entries.flatMap { [$0.0, 0, $0.0 == 4 ? group : $0.1, 0] + $0.2 }
    }
    let name = "system.posix_acl_access"
    // Not each volume has access control lists.
    guard setxattr(path, name, list(group: 6), 44, 0) == 0 else { return }
    #expect(try godwit("run", folder.url.path).status == 0)
    let files = folder.storeFiles().filter { $0.hasPrefix("a.sqlite") }
    #expect(files.count == 2)
    for file in files {
      var found = [UInt8](repeating: 0, count: 44)
      #expect(getxattr(folder.path("stores/" + file), name, &found, 44) == 44)
      #expect(found == list(group: 0), "\(file)")
    }
  }
}

@Suite struct `In a folder that gives new files an access control list` {
  /// Owner, user 1234, group and mask rwx, others r-x: see acl(5).
  private static let list: [UInt8] =
    [2, 0, 0, 0]
    + [
      (1, 7, [255, 255, 255, 255]), (2, 7, [210, 4, 0, 0]), (4, 7, [255, 255, 255, 255]),
      (16, 7, [255, 255, 255, 255]), (32, 5, [255, 255, 255, 255]),
    ].flatMap { (tag: UInt8, permissions: UInt8, id: [UInt8]) in [tag, 0, permissions, 0] + id }

  @Test func `stores and backups have the rights of the source alone`() throws {
    let folder = try PipelineFolder("recipes-2.0")
    var fleet = RecipesFleet(stores: 4, rows: 100, seed: 5)
    (fleet.version, fleet.logs, fleet.external) = (.mixed, .some, true)
    try fleet.write(to: folder.path("stores"))
    let files = folder.storeFiles()
    for file in files { #expect(chmod(folder.path("stores/" + file), 0o640) == 0) }
    var folders = [folder.path("stores")]
    for name in FileManager.default.enumerator(atPath: folders[0])?.compactMap({ $0 as? String })
      ?? [] where !files.contains(name)
    {
      folders.append(folders[0] + "/" + name)
    }
    for path in folders {
      // Not each volume has access control lists.
      guard setxattr(path, "system.posix_acl_default", Self.list, Self.list.count, 0) == 0 else {
        return
      }
    }
    for command in ["run", "rollback"] {
      #expect(try folder.godwit([command]).status == 0)
      let found = folder.storeFiles()
      #expect(found.count > files.count)
      for file in found {
        let path = folder.path("stores/" + file)
        #expect(getxattr(path, "system.posix_acl_access", nil, 0) < 0, "\(command): \(file)")
        var status = stat()
        #expect(lstat(path, &status) == 0 && status.st_mode & 0o777 == 0o640, "\(file)")
      }
    }
  }
}
