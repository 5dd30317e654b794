import Foundation
import StoreFixtures
import Testing

/// A lease on a file: who opens it waits, as while a process that replaces it stands still.
final class FileLeaseHolder {
  private let file: Int32

  /// Nil where there are no leases.
  init?(_ path: String) {
    file = open(path, O_RDWR | O_CLOEXEC)
    // F_SETSIG: a lease that is being broken would end this process. F_SETLEASE.
    _ = fcntl(file, 10, SIGURG)
    if fcntl(file, 1_024, F_WRLCK) != 0 { return nil }
  }

  deinit { close(file) }
}

@Suite struct `A store that another process keeps from being opened` {
  @Test(.timeLimit(.minutes(3)), arguments: [["inspect"], ["verify"], ["plan"], ["migrate"]])
  func `is in use, and nothing is wrong with it`(command: [String]) throws {
    let folder = try PipelineFolder.orders(["a"])
    let store = folder.path("stores/a.sqlite")
    guard let holder = FileLeaseHolder(store) else { return print("skipped: no leases here") }
    let models = command == ["inspect"] ? [] : ["--models", folder.path("Orders.xcdatamodeld")]
    let run = try Godwit.run(command + [store, "--json"] + models)
    #expect(run.status == 75, "\(run.output)\(run.messages)")
    withExtendedLifetime(holder) {}
  }

  @Test(.timeLimit(.minutes(3))) func `is pending in a run, and done when it can be opened`() throws
  {
    let folder = try PipelineFolder.orders(["a"])
    var holder = FileLeaseHolder(folder.path("stores/a.sqlite"))
    guard holder != nil else { return print("skipped: no leases here") }
    let run = try folder.godwit(["run"])
    #expect(run.status == 75 && run.counts == "1 found, 1 pending", "\(run.messages)")
    #expect(run.reason(of: "a") == "in-use")
    holder = nil
    #expect(try folder.godwit(["run"]).counts == "1 found, 1 migrated")
  }
}

/// What lies elsewhere, shown by FUSE, as shared folders of virtual machines and remote ones are.
@Suite struct `A store that may be open on the other side of its volume` {
  @Test(.timeLimit(.minutes(3))) func `is replaced only where somebody asserts that it is not`()
    throws
  {
    let folder = try PipelineFolder.orders(["a"])
    let (stores, real) = (folder.path("stores"), folder.path("real"))
    try FileManager.default.moveItem(atPath: stores, toPath: real)
    try FileManager.default.createDirectory(atPath: stores, withIntermediateDirectories: true)
    let volume = Process()
    volume.executableURL = URL(fileURLWithPath: "/usr/bin/bindfs")
    // In the foreground: in the background it would keep what tells that its parent has ended.
    volume.arguments = ["-f", real, stores]
    volume.standardError = FileHandle.nullDevice
    guard (try? volume.run()) != nil else { return print("skipped: no bindfs here") }
    defer {
      let removal = Process()
      removal.executableURL = URL(fileURLWithPath: "/usr/bin/fusermount")
      removal.arguments = ["-u", "-z", stores]
      if (try? removal.run()) != nil { removal.waitUntilExit() }
      // SIGTERM may be blocked in it, as in who started it.
      kill(volume.processIdentifier, SIGKILL)
    }
    let store = folder.path("stores/a.sqlite")
    while volume.isRunning, !FileManager.default.fileExists(atPath: store) { usleep(10_000) }
    guard volume.isRunning else { return print("skipped: no FUSE here") }
    let first = try folder.godwit(["run"])
    #expect(first.status == 75 && first.counts == "1 found, 1 pending", "\(first.messages)")
    #expect(first.reason(of: "a") == "in-use")
    let second = try folder.godwit(["run", "--store-is-offline"])
    #expect(second.counts == "1 found, 1 migrated", "\(second.messages)")
  }
}
