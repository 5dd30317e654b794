import GodwitSQLite

extension RunReport {
  /// A shard in the hands of a worker: thousandths of a second are enough, since 1970-01-01 UTC.
  package struct Shard: Codable, Sendable, Equatable {
    /// The number of the worker, from 0. Which process it was is not known: each shard is given to the first worker that had
    /// nothing else to do.
    package var worker: Int
    package var start: Double
    package var end: Double

    package init(worker: Int, start: Double, end: Double) {
      self.worker = worker
      self.start = start
      self.end = end
    }
  }
}

extension RunReport.Stage {
  /// With numbers that a stage can have: those of a damaged ledger may be any.
  var possible: RunReport.Stage {
    func time(_ seconds: Double) -> Double { max(0, SQLiteValue.real(seconds).time ?? 0) }
    func amount(_ number: Int64) -> Int64 { SQLiteValue.integer(number).amount }
    return RunReport.Stage(
      stage: stage, seconds: time(seconds), rows: amount(rows), bytes: amount(bytes),
      shards: shards.map { shards in
        shards.prefix(RunReport.Shard.most).filter {
          (0..<RunReport.Shard.most).contains($0.worker)
        }
        .map { .init(worker: $0.worker, start: time($0.start), end: time($0.end)) }
      })
  }
}

extension RunReport.Shard {
  /// More shards of one stage are not told apart.
  package static let most = 400

  /// Gives shards that overlap to different workers.
  ///
  /// - Returns: At most ``most``: neighbours of one worker are joined where there are more.
  package static func byWorker(_ shards: [RunReport.Shard]) -> [RunReport.Shard] {
    var lanes: [[RunReport.Shard]] = []
    for shard in shards.sorted(by: { ($0.start, $0.end) < ($1.start, $1.end) }) {
      // A message may take a moment.
      let free = lanes.indices.first { (lanes[$0].last?.end ?? 0) <= shard.start + 0.002 }
      let worker = free ?? lanes.count
      if worker == lanes.count { lanes.append([]) }
      lanes[worker].append(
        RunReport.Shard(worker: worker, start: rounded(shard.start), end: rounded(shard.end)))
    }
    while lanes.reduce(0, { $0 + $1.count }) > most, lanes.contains(where: { $0.count > 1 }) {
      lanes = lanes.map { lane in
        stride(from: 0, to: lane.count, by: 2).map { place in
          var joined = lane[place]
          joined.end = lane[min(place + 1, lane.count - 1)].end
          return joined
        }
      }
    }
    return lanes.flatMap(\.self)
  }

  private static func rounded(_ seconds: Double) -> Double { (seconds * 1_000).rounded() / 1_000 }
}
