import Foundation
import GodwitSQLite
import StoreFixtures
import Testing

/// Folders that are mounts of their own of one file system, as containers and systemd's sandboxes make
/// them: their device numbers are equal, and no rename goes from one to the other.
private enum Mounts {
  private static let unshare =
    ["/usr/bin/unshare", "--mount"] + (geteuid() == 0 ? [] : ["--map-root-user"])

  /// A container may forbid it.
  static let areAllowed: Bool = {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: unshare[0])
    process.arguments = unshare.dropFirst() + ["/bin/mount", "--bind", "/tmp", "/tmp"]
    process.standardError = FileHandle.nullDevice
    guard (try? process.run()) != nil else { return false }
    process.waitUntilExit()
    return process.terminationStatus == 0
  }()

  /// Starts a program where each of the paths is a mount, which nobody else sees.
  static func wrapper(_ paths: [String]) -> [String] {
    let mounts = paths.map { "mount --bind '\($0)' '\($0)' && " }.joined()
    return unshare + ["/bin/sh", "-c", mounts + #"exec "$@""#, "sh"]
  }

  /// Starts a program to which a path is a volume that nobody can write to.
  static func readOnly(_ path: String) -> [String] {
    let mount = "mount --bind '\(path)' '\(path)' && mount -o remount,bind,ro '\(path)' && "
    return unshare + ["/bin/sh", "-c", mount + #"exec "$@""#, "sh"]
  }
}

@Suite(.enabled(if: Mounts.areAllowed)) struct `Between two mounts of one file system` {
  private func recipes() throws -> PipelineFolder {
    let folder = try PipelineFolder("recipes-2.0")
    var fleet = RecipesFleet(stores: 4, rows: 60, seed: 4)
    (fleet.version, fleet.logs, fleet.external) = (.mixed, .some, true)
    try fleet.write(to: folder.path("stores"))
    try FileManager.default.createDirectory(
      atPath: folder.path("state"), withIntermediateDirectories: true)
    return folder
  }

  @Test func `stores are migrated and restored`() throws {
    let folder = try recipes()
    let before = try folder.storeContents()
    let mounts = Mounts.wrapper([folder.path("stores"), folder.path("state")])
    let run = try Godwit.run(["run", folder.url.path, "--json"], wrapper: mounts)
    let migrated = run.summary["migrated"] as? Int ?? 0
    #expect(run.status == 0 && migrated > 1, "\(run.output)\(run.messages)")
    let rollback = try Godwit.run(["rollback", folder.url.path, "--json"], wrapper: mounts)
    #expect(rollback.status == 0, "\(rollback.messages)")
    #expect(rollback.summary["restored"] as? Int == migrated)
    #expect(try folder.contentsOfStoresAlone() == before)
    #expect(!folder.storeFiles().contains { $0.hasSuffix("-clone") })
  }

  @Test func `a plan says of a volume that is only read what the run says`() throws {
    let folder = try recipes()
    let store = try #require(folder.storeFiles().filter { $0.hasSuffix(".sqlite") }.min())
    let words = [
      folder.path("stores/" + store), "--models",
      folder.path("../../Fixtures/Recipes.xcdatamodeld"),
      "--json",
    ]
    let mount = Mounts.readOnly(folder.path("stores"))
    for output in [[], ["--output", folder.path("stores/new.sqlite")]] {
      for command in ["plan", "migrate"] {
        let run = try Godwit.run([command] + words + output, wrapper: mount)
        #expect(run.status == 73, "\(command): \(run.output)\(run.messages)")
        #expect(run.messages.contains("Read-only file system"), "\(command): \(run.messages)")
      }
    }
    let output = ["--output", folder.path("state/new.sqlite")]
    #expect(try Godwit.run(["plan"] + words + output, wrapper: mount).status == 0)
  }

  @Test func `a store that is a mount itself is left alone, and said`() throws {
    let folder = try recipes()
    let before = try folder.storeContents()
    let name = try #require(before.keys.filter { $0.hasSuffix(".sqlite-wal") }.min())
    let store = folder.path("stores/" + name.dropLast(4))
    let run = try Godwit.run(
      ["run", folder.url.path, "--json"], wrapper: Mounts.wrapper([store]))
    #expect(run.status == 3, "\(run.output)\(run.messages)")
    let result = try #require(run.results[store])
    #expect(result["verdict"] as? String == "failed")
    #expect("\(result["reasons"] ?? "")".contains("is a mount of its own"), "\(result)")
    #expect(run.summary["failed"] as? Int == 1)
    let after = try folder.storeContents()
    #expect(after[name] == before[name])
    #expect(after[String(name.dropLast(4))] == before[String(name.dropLast(4))])
    #expect(!after.keys.contains { $0.contains("godwit-") && $0.hasPrefix(name.dropLast(11)) })
  }
}
