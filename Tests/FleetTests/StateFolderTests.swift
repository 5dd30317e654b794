import GodwitDurableFiles
import GodwitLedger
import SystemPackage
import Testing

@testable import GodwitFleet

@Suite struct `A state folder` {
  private func places(_ scratch: borrowing Scratch, isNamed: Bool = false) throws -> PipelinePlaces
  {
    let pipeline = try Pipeline(
      bytes: Array("stores: { roots: /data }\nmodels: a.mom".utf8),
      file: scratch.path.appending("pipeline.yaml"))
    try DurableFile.makeFolder(scratch.path.appending("state"))
    return PipelinePlaces(pipeline, state: isNamed ? scratch.path.appending("state") : nil)
  }

  private func write(_ files: [String], _ places: PipelinePlaces) throws {
    for file in files {
      let place = places.state.appending(String(file.prefix { $0 != "=" }))
      try DurableFile.makeFolder(place.removingLastComponent())
      let text = file.drop { $0 != "=" }.dropFirst()
      try DurableFile.write(Array((file.contains("=") ? text : "{\"mine\":1}").utf8), to: place)
    }
  }

  static let files: [String] = [
    "lock", "command", "run.json", "endings.json", "ledger.jsonl", "waves.json", "control.json",
    "progress.json", "pace", "stores/db-snapshot/a", "cluster/nodes.txt", "rollbacks/a",
  ]

  @Test(arguments: Self.files)
  func `is none that holds a file of another program by one of its own names`(file: String) throws {
    let scratch = try Scratch()
    let places = try places(scratch)
    // An empty lock is nobody's.
    try write(file == "lock" ? [file] : [file, "lock="], places)
    #expect(throws: FleetError.self) { try StateFolder(places).take() }
    #expect(throws: FleetError.self) { _ = try PipelineHistory.lock(places) }
    #expect(try DurableFile.exists(places.state.appending(file)))
    let finding = try finding(places, scratch)
    #expect(!finding.isGood && finding.value.contains(String(file.prefix { $0 != "/" })))
  }

  /// What `doctor` says of it.
  private func finding(
    _ places: PipelinePlaces, _ scratch: borrowing Scratch
  ) throws -> Doctor.Finding {
    let doctor = PipelineDoctor(
      try Pipeline(
        bytes: Array("stores: { roots: /data }\nmodels: a.mom".utf8),
        file: scratch.path.appending("pipeline.yaml")), places, destinations: [],
      workerCount: 1)
    return try #require(doctor.findings().first { $0.name == "state" })
  }

  static let taken: [[String]] = [
    [], ["notes.txt", ".hidden", "lost+found/a"], ["lock="], ["lock=7"],
    // As long as one mark is left, everything is a run's.
    ["lock=7"] + Array(files.dropFirst()),
    ["run.json={\"run\":\"1\",\"isFinished\":true}", "lock=", "control.json", "pace"],
    ["command=3", "lock=", "pace"], ["command={\"epoch\":1,\"fi", "lock=\0"],
    ["command={\"epoch\":1,\"pipeline\":\"a\",\"file\":\"/a\"}", "pace"],
    // Cut off at its beginning.
    ["stores/0123456789abcdef0123456789abcdef/lock="],
    ["stores/0123456789abcdef0123456789abcdef-snapshot/a", "lock="],
  ]

  @Test(arguments: Self.taken)
  func `is one where a run was, or nothing that a run would replace`(files: [String]) throws {
    let scratch = try Scratch()
    let places = try places(scratch)
    try write(files, places)
    try StateFolder(places).take()
  }

  @Test(arguments: [
    "command", "run.json", "endings.json", "ledger.jsonl", "waves.json", "control.json",
    "progress.json", "pace",
  ])
  func `is none where a folder has the name of a file, which is named`(file: String) throws {
    let scratch = try Scratch()
    let places = try places(scratch)
    try write(["lock=7"], places)
    let folder = places.state.appending(file)
    try DurableFile.makeFolder(folder)
    #expect(throws: DurabilityError.notRegular(folder, .folder)) { try StateFolder(places).take() }
    #expect(throws: DurabilityError.notRegular(folder, .folder)) { try DurableFile.remove(folder) }
    let finding = try finding(places, scratch)
    #expect(!finding.isGood && finding.value.contains(file))
  }

  @Test func `loses to a run what killed processes have left unfinished`() throws {
    let scratch = try Scratch()
    let places = try places(scratch, isNamed: true)
    let left = [".run.json.partial-0", ".run.json.partial-1", ".ledger.sqlite.partial-0"]
    // Whoever writes those does not hold the lock.
    let others = [".control.json.partial-0", ".report.html.partial-0"]
    try write(left + others, places)
    StateFolder(places).removeUnfinished()
    for name in left { #expect(try !DurableFile.exists(places.state.appending(name)), "\(name)") }
    for name in others { #expect(try DurableFile.exists(places.state.appending(name)), "\(name)") }
  }

  @Test func `is one where the ledger alone is left`() throws {
    let scratch = try Scratch()
    let places = try places(scratch, isNamed: true)
    _ = try Ledger(writingAt: places.ledger, now: 0)
    try write(["control.json"], places)
    try StateFolder(places).take()
  }

  @Test func `in which another program holds a lock has no run that could be controlled`() throws {
    let scratch = try Scratch()
    let places = try places(scratch)
    try write(["lock=another program's"], places)
    let lock = try FileLock(acquiring: places.state.appending("lock"))
    #expect(try RunState(of: places.owner, in: places.state) == .idle)
    _ = consume lock
  }
}
