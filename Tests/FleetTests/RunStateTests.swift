import SystemPackage
import Testing

@testable import GodwitFleet

@Suite struct `The state folder of a pipeline` {
  @Test func `is of a run that can be controlled, or of a command that cannot`() throws {
    let scratch = try Scratch()
    let pipeline = try Pipeline(
      bytes: Array("stores: { roots: /data }\nmodels: a.mom".utf8),
      file: scratch.path.appending("pipeline.yaml"))
    let places = PipelinePlaces(pipeline)
    func command() throws {
      let lock = try PipelineHistory.lock(places)
      #expect(try places.isInUse && !RunState.isUnderWay(in: places.state))
      withExtendedLifetime(lock) {}
    }
    func run() throws {
      let lease = try HeldLease(acquiring: places.state.appending("lock"), patienceSeconds: 1)
      #expect(try places.isInUse && RunState.isUnderWay(in: places.state))
      withExtendedLifetime(lease) {}
    }
    for _ in 0..<2 {
      try command()
      try run()
    }
    #expect(try !RunState.isUnderWay(in: places.state))
  }
}
