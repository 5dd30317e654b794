import GodwitDurableFiles
import Synchronization
import SystemPackage
import Testing

@testable import GodwitCheckpoints

@Suite struct `A checkpoint in memory` {
  private static let summary: [UInt8] = Array(#"{"rows":3}"#.utf8)

  /// Writes a checkpoint whose rows have so many bytes each.
  private func write(_ sizes: [Int], in run: RunDirectory, unit: Int = 7) throws {
    let writer = try run.writer(.copy, unit, fingerprint: [])
    for (key, size) in sizes.enumerated() {
      let row = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ key) }
      try row.withUnsafeBytes { try writer.append(channel: 0, key: Int64(key), $0) }
    }
    try writer.finish(summary: Self.summary)
  }

  @Test(arguments: [
    [],
    // Around the 4 KiB that a buffer begins with, an entry's 13 bytes included.
    [4_083], [4_082, 0], [4_084, 1], [4_070, 1],
    [0, 1, 100_000, 3],
  ])
  func `gives back what was written`(sizes: [Int]) throws {
    let run = RunDirectory("/nowhere").inMemory
    try write(sizes, in: run)
    let reader = try run.reader(.copy, 7, fingerprint: [])
    #expect(reader.entryCount == UInt64(sizes.count + 1))
    for (key, size) in sizes.enumerated() {
      let entry = try #require(try reader.next())
      #expect(entry.key == Int64(key) && entry.payload.count == size)
      let row = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ key) }
      #expect(Array(entry.payload) == row)
    }
    let last = try #require(try reader.next())
    #expect(last.channel == Checkpoint.summaryChannel && Array(last.payload) == Self.summary)
    #expect(try reader.next() == nil)
  }

  @Test func `is there when it is finished, and until it is discarded`() throws {
    let run = RunDirectory("/nowhere").inMemory
    let name = CheckpointName(stage: .copy, unit: 7)
    let unfinished = try run.writer(.copy, 7, fingerprint: [])
    #expect(try run.finished(.copy).isEmpty)
    _ = unfinished
    try write([1], in: run)
    #expect(try run.finished(.copy) == [7] && run.finished(.link).isEmpty)
    #expect(
      try CheckpointReader.summary(of: name, in: run, fingerprint: []) == Self.summary)
    try run.discard(name)
    #expect(try run.finished(.copy).isEmpty)
    #expect(throws: CheckpointError.self) { try run.reader(.copy, 7, fingerprint: []) }
  }

  @Test func `leaves nothing in the run directory, and flushes nothing for it`() throws {
    let folder = try TemporaryFolder()
    let run = RunDirectory(folder.file("run")).inMemory
    let steps = try steps {
      try run.create()
      try write([100_000], in: run)
      try run.discardDerived()
    }
    #expect(try DurableFile.names(in: run.path) == [])
    #expect(steps == [.folderMade])
    let removing = try self.steps { try run.remove() }
    #expect(removing == [.removed])
    #expect(try !run.exists)
  }

  private func steps(_ body: () throws -> Void) throws -> [DurableStep] {
    let taken = Mutex<[DurableStep]>([])
    try withoutActuallyEscaping(body) { body in
      try DurableSteps.observing(with: { step, _ in taken.withLock { $0.append(step) } }) {
        try body()
      }
    }
    return taken.withLock { $0 }
  }
}
