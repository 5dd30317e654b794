import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import SystemPackage
import Testing

@Suite struct `A run directory` {
  @Test func `has a place for everything`() throws {
    let run = RunDirectory("/runs/a")
    #expect(run.plan == "/runs/a/plan.json")
    #expect(run.journal == "/runs/a/journal.json")
    #expect(run.events == "/runs/a/events.jsonl")
    #expect(run.lock == "/runs/a/lock")
    #expect(run.snapshot == "/runs/a/snapshot")
    #expect(run.path(of: CheckpointName(stage: .copy, unit: 12)) == "/runs/a/copy/000012.ckpt")
    #expect(
      run.path(of: CheckpointName(stage: .verify, unit: 1_234_567))
        == "/runs/a/verify/1234567.ckpt")
    #expect(CheckpointName(stage: .link, unit: 0).description == "link/000000.ckpt")
  }

  @Test func `knows what is finished by the files that are there`() throws {
    let folder = try TemporaryFolder()
    let run = RunDirectory(folder.file("run"))
    #expect(try run.finished(.copy) == [])
    #expect(try !run.exists)
    try run.create()
    try run.create()
    #expect(try run.exists)
    for unit in [0, 7, 1_234_567] {
      try put([], at: run.path(of: CheckpointName(stage: .copy, unit: unit)))
    }
    // None of these is a name that a checkpoint can have.
    for name in [
      "1.ckpt", "0000001.ckpt", "-00001.ckpt", "+00001.ckpt", "00000x.ckpt",
      "000003.ckpt~", ".000004.ckpt.partial-0", "99999999999999999999.ckpt",
    ] {
      try put([], at: run.folder(of: .copy).appending(name))
    }
    #expect(try run.finished(.copy) == [0, 7, 1_234_567])
    #expect(try run.finished(.link) == [])
    try run.discard(CheckpointName(stage: .copy, unit: 7))
    try run.discard(CheckpointName(stage: .copy, unit: 7))
    #expect(try run.finished(.copy) == [0, 1_234_567])
  }

  @Test func `is cleared of what crashes left`() throws {
    let folder = try TemporaryFolder()
    let run = RunDirectory(folder.file("run"))
    try run.create()
    try put([], at: run.path.appending(".plan.json.partial-0"))
    try put([], at: run.folder(of: .link).appending(".000004.ckpt.partial-1"))
    try put([], at: run.path(of: CheckpointName(stage: .link, unit: 4)))
    try run.removeLeftovers()
    #expect(try DurableFile.names(in: run.folder(of: .link)) == ["000004.ckpt"])
    #expect(
      try DurableFile.names(in: run.path)
        == [
          "audit", "copy", "link", "rows", "snapshot", "soundness", "validate", "verify",
        ])
  }

  @Test func `goes away whole`() throws {
    let folder = try TemporaryFolder()
    let run = RunDirectory(folder.file("run"))
    try run.create()
    try put([1], at: run.plan)
    try put([1], at: run.snapshot.appending("store"))
    try run.remove()
    #expect(try folder.names() == [])
    try run.remove()
  }

  @Test(
    arguments: ["", "copy", "snapshot"], [0o700: true, 0o755: true, 0o770: false, 0o707: false])
  func `is trusted when nobody else may write to it`(
    name: String, mode: (key: mode_t, value: Bool)
  ) throws {
    let folder = try TemporaryFolder()
    let run = RunDirectory(folder.file("run"))
    try run.create()
    #expect(chmod(name.isEmpty ? run.path.string : run.path.appending(name).string, mode.key) == 0)
    if mode.value {
      try run.checkPrivate()
    } else {
      #expect(throws: DurabilityError.self) { try run.checkPrivate() }
    }
  }

  @Test func `has no link and no FIFO in it`() throws {
    let folder = try TemporaryFolder()
    let run = RunDirectory(folder.file("run"))
    try run.create()
    let path = run.path.appending("name")
    #expect(symlink(folder.path.string, path.string) == 0)
    #expect(throws: DurabilityError.symbolicLink(path)) { try run.checkPrivate() }
    try DurableFile.remove(path)
    #expect(mkfifo(path.string, 0o600) == 0)
    #expect(throws: DurabilityError.notRegular(path, .special)) { try run.checkPrivate() }
  }

  @Test func `discards whatever lies in a checkpoint's place`() throws {
    let folder = try TemporaryFolder()
    let run = RunDirectory(folder.file("run"))
    try run.create()
    let name = CheckpointName(stage: .copy, unit: 0)
    let path = run.path(of: name)
    try DurableFile.makeFolder(path.appending("below"))
    try run.discard(name)
    #expect(mkfifo(path.string, 0o600) == 0)
    #expect(throws: CheckpointError.notACheckpoint(path)) {
      try CheckpointReader(path: path, name: name, fingerprint: [])
    }
    try run.discard(name)
    #expect(try run.finished(.copy) == [])
  }

  @Test func `names checkpoints in JSON`() throws {
    let name = CheckpointName(stage: .audit, unit: 3)
    let json = try JSONEncoder().encode(name)
    #expect(try JSONDecoder().decode(CheckpointName.self, from: json) == name)
    #expect(throws: DecodingError.self) {
      try JSONDecoder().decode(
        CheckpointName.self, from: Data(#"{"stage": "copy", "unit": -1}"#.utf8))
    }
  }
}
