import Foundation
import GodwitDurableFiles
import GodwitLedger
import SystemPackage
import Testing

@testable import GodwitFleet

@Suite struct `The state folder of a pipeline` {
  private func pipeline(_ file: String, in scratch: borrowing Scratch) throws -> Pipeline {
    let path = scratch.file(file)
    let text = "name: \(path.stem ?? "")\nstores: { roots: /data }\nmodels: a.mom"
    return try Pipeline(bytes: Array(text.utf8), file: path)
  }

  private func places(_ file: String, in scratch: borrowing Scratch) throws -> PipelinePlaces {
    PipelinePlaces(try pipeline(file, in: scratch))
  }

  @Test(
    arguments: [
      (#"{"isPaused":true,"workers":256}"#, 256), (#"{"isPaused":true,"workers":0}"#, nil),
      (#"{"isPaused":true,"workers":9223372036854775807}"#, nil),
      (#"{"isPaused":true,"ioBytesPerSecond":-1}"#, nil), (#"{"isPaused":true,"load":-1}"#, nil),
    ] as [(String, Int?)])
  func `has what an operator may ask for, and nothing else`(text: String, workers: Int?) throws {
    let scratch = try Scratch()
    try DurableFile.write(Array(text.utf8), to: scratch.path.appending("control.json"))
    var asked = RunControl()
    (asked.isPaused, asked.workers) = (true, workers)
    #expect(try RunControl.read(in: scratch.path) == asked)
  }

  /// Also before the run has found its stores, and where the mark could not be written.
  @Test func `says whose run is going on where two pipelines share it`() throws {
    let scratch = try Scratch()
    let (own, other) = (try places("a.yaml", in: scratch), try places("b.yaml", in: scratch))
    let state = own.state
    #expect(state == other.state)
    try DurableFile.makeFolder(state)
    #expect(try RunState(of: own.owner, in: state) == .idle)
    for holder in [own, other, own] {
      let lease = try HeldLease(acquiring: state.appending("lock"), patienceSeconds: 1)
      #expect(try RunState(of: own.owner, in: state) == .underWay, "nobody has said anything")
      HolderMark.write(run: holder.owner, lease.token, in: state)
      for (asking, owner) in [(own, own.owner), (other, other.owner)] {
        #expect(
          try RunState(of: owner, in: state)
            == (asking.owner == holder.owner
              ? .underWay : .underWayElsewhere(pipeline: holder.owner.file)))
      }
      withExtendedLifetime(lease) {}
    }
  }

  @Test func `is of a run that can be controlled, or of a command that cannot`() throws {
    let scratch = try Scratch()
    let pipeline = try Pipeline(
      bytes: Array("stores: { roots: /data }\nmodels: a.mom".utf8),
      file: scratch.path.appending("pipeline.yaml"))
    let places = PipelinePlaces(pipeline)
    func command() throws {
      let lock = try PipelineHistory.lock(places)
      #expect(try places.isInUse && RunState(of: places.owner, in: places.state) == .idle)
      withExtendedLifetime(lock) {}
    }
    func run() throws {
      let lease = try HeldLease(acquiring: places.state.appending("lock"), patienceSeconds: 1)
      #expect(try places.isInUse && RunState(of: places.owner, in: places.state) == .underWay)
      withExtendedLifetime(lease) {}
    }
    for _ in 0..<2 {
      try command()
      try run()
    }
    #expect(try RunState(of: places.owner, in: places.state) == .idle)
  }

  /// Of a run that was killed.
  @Test func `is no reason to call a run running while something else works in it`() throws {
    let scratch = try Scratch()
    let (pipeline, other) = (
      try self.pipeline("a.yaml", in: scratch), try places("b.yaml", in: scratch)
    )
    let own = PipelinePlaces(pipeline)
    let ledger = try Ledger(writingAt: own.ledger, now: 1)
    try ledger.writing {
      try ledger.begin(
        LedgerRun(
          name: "r", pipeline: own.owner.pipeline, file: own.owner.file, started: 1, host: ""))
    }
    func isState(_ state: PipelineStatus.State) throws -> Bool {
      try PipelineStatus(pipeline, own).state == state
        && PipelineStatus.goesOn(own) == (state == .running)
    }
    #expect(try isState(.interrupted))
    let command = try PipelineHistory.lock(own)
    #expect(try isState(.interrupted), "a rollback, say")
    _ = consume command
    for (holder, state) in [(own, PipelineStatus.State.running), (other, .interrupted)] {
      let lease = try HeldLease(acquiring: own.state.appending("lock"), patienceSeconds: 1)
      HolderMark.write(run: holder.owner, lease.token, in: own.state)
      #expect(try isState(state), "\(holder.owner.file)")
      withExtendedLifetime(lease) {}
    }
  }

  @Test func `is of a run that a job of the scheduler's goes on with, between two waves, too`()
    throws
  {
    let scratch = try Scratch()
    let (own, other) = (try places("a.yaml", in: scratch), try places("b.yaml", in: scratch))
    let state = own.state
    try DurableFile.makeFolder(state)
    try DurableFile.makeFolder(BundleFolder.all(in: state))
    let history = try RunHistory(at: own.ledger, of: own.owner, now: 1, quarantineLimit: 3)
    _ = try PipelineLedger(folder: state, now: 1, owner: own.owner, history: history)
    for isExpected in [false, true, false] {
      if isExpected {
        try ClusterFollower(name: "next-1").write(in: state)
      } else {
        try ClusterFollower.remove(in: state)
      }
      #expect(try RunState(of: own.owner, in: state) == (isExpected ? .underWay : .idle))
      #expect(
        try RunState(of: other.owner, in: state)
          == (isExpected ? .underWayElsewhere(pipeline: own.owner.file) : .idle))
    }
  }

  /// Who asks how far it is gets every field that is always there.
  @Test
  func `says of a run that is starting that it has done nothing yet, and whether it is paused`()
    throws
  {
    let scratch = try Scratch()
    for isPaused in [false, true] {
      var control = RunControl()
      control.isPaused = isPaused
      try control.write(in: scratch.path)
      let line = JSONLine.text(of: RunProgress.starting("p", in: scratch.path))
      let fields = try #require(
        try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
      for name in ["found", "done", "notDone", "waiting"] { #expect(fields[name] as? Int == 0) }
      #expect(fields["event"] as? String == "progress" && fields["pipeline"] as? String == "p")
      #expect(fields["time"] is Double && (fields["inFlight"] as? [Any])?.isEmpty == true)
      #expect(fields["isPaused"] as? Bool == isPaused)
      #expect(fields["held"] as? String == (isPaused ? "paused" : nil))
      #expect(fields["run"] == nil && fields["process"] == nil, "nobody knows yet")
    }
  }
}
