import GodwitLedger
import Testing

@Suite struct `Shards in a report` {
  private typealias Shard = RunReport.Shard

  private static func shard(_ start: Double, _ end: Double, _ worker: Int = 0) -> Shard {
    Shard(worker: worker, start: start, end: end)
  }

  @Test func `belong to different workers where they overlap`() {
    let shards = Shard.byWorker([
      Self.shard(0, 2), Self.shard(0.5, 1), Self.shard(1, 3), Self.shard(2.001, 4),
    ])
    #expect(
      shards == [
        Self.shard(0, 2), Self.shard(2.001, 4), Self.shard(0.5, 1, 1), Self.shard(1, 3, 1),
      ])
  }

  @Test(arguments: [0, 1, 400, 401, 5_000])
  func `are joined where there are very many, and cover the same time`(count: Int) {
    let shards = Shard.byWorker((0..<count).map { Self.shard(Double($0), Double($0) + 1) })
    #expect(shards.count <= Shard.most && (count > Shard.most || shards.count == count))
    #expect(shards.reduce(0) { $0 + $1.end - $1.start } == Double(count))
    #expect(shards.allSatisfy { $0.worker == 0 })
  }
}
