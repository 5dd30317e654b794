import Foundation
import SystemPackage
import Testing

@testable import GodwitCheckpoints

@Suite struct `A checkpoint` {
  static let summary = Array(#"{"rows": 3}"#.utf8)

  @Test func `gives back its entries in their order`() throws {
    let folder = try TemporaryFolder()
    let written = [
      TestEntry(channel: 0, key: 1, payload: [1, 2, 3]),
      TestEntry(channel: 2, key: .min, payload: []),
      TestEntry(channel: 255, key: .max, payload: [0]),
    ]
    try write(written, summary: Self.summary, to: folder.file("a.ckpt"))
    let end = TestEntry(channel: 1, key: 0, payload: Self.summary)
    #expect(try entries(of: folder.file("a.ckpt")) == written + [end])
    #expect(try folder.names() == ["a.ckpt"])
    let reader = try CheckpointReader(
      path: folder.file("a.ckpt"), name: unitName, fingerprint: planFingerprint)
    #expect(reader.entryCount == 4)
    #expect(reader.byteCount == UInt64(4 * 13 + 4 + Self.summary.count))
    let run = RunDirectory(folder.file("run"))
    try run.create()
    try write([], summary: Self.summary, to: run.path(of: unitName))
    #expect(
      try CheckpointReader.summary(of: unitName, in: run, fingerprint: planFingerprint)
        == Self.summary)
  }

  // Around the sizes of the buffers, 256 KiB, and far beyond them.
  @Test(arguments: [0, 1, 262_130, 262_131, 262_132, 262_144, 262_145, 5_000_000])
  func `carries payloads of any size`(size: Int) throws {
    let folder = try TemporaryFolder()
    let written = (0..<4).map { number in
      TestEntry(
        channel: 0, key: Int64(number),
        payload: (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 13 &+ number) })
    }
    try write(written, summary: [], to: folder.file("a"))
    #expect(try entries(of: folder.file("a")).dropLast() == written[...])
  }

  @Test func `carries many small entries`() throws {
    let folder = try TemporaryFolder()
    let written = (0..<60_000).map { number in
      TestEntry(
        channel: 0, key: Int64(number),
        payload: (0..<(number % 23)).map { UInt8(truncatingIfNeeded: $0 &+ number) })
    }
    try write(written, summary: Self.summary, to: folder.file("a"))
    #expect(try entries(of: folder.file("a")).dropLast() == written[...])
  }

  @Test func `has the same bytes when written again`() throws {
    let folder = try TemporaryFolder()
    let written = (0..<30_000).map {
      TestEntry(channel: 0, key: Int64($0), payload: Array("row \($0)".utf8))
    }
    try write(written, summary: Self.summary, to: folder.file("a"))
    try write(written, summary: Self.summary, to: folder.file("b"))
    #expect(try bytes(of: folder.file("a")) == bytes(of: folder.file("b")))
  }

  @Test func `leaves nothing when it is not finished`() throws {
    let folder = try TemporaryFolder()
    do {
      let writer = try CheckpointWriter(
        path: folder.file("a"), name: unitName, fingerprint: planFingerprint)
      try [UInt8](repeating: 1, count: 500_000).withUnsafeBytes {
        try writer.append(channel: 0, key: 1, $0)
      }
    }
    #expect(try folder.names() == [])
  }

  // Made by hand with the zstd command, not by this build's writer.
  @Test func `of format 2 is read by this build`() throws {
    let golden = FilePath(#filePath).removingLastComponent()
      .appending("Golden").appending("version-2.ckpt")
    #expect(
      try entries(of: golden) == [
        TestEntry(channel: 0, key: 1, payload: [4, 9, 1, 15, 1, 0x61]),
        TestEntry(channel: 0, key: -5, payload: []),
        TestEntry(
          channel: 2, key: 1 << 62,
          payload: (0..<1024).map { UInt8(truncatingIfNeeded: $0) }),
        TestEntry(channel: 1, key: 0, payload: Array(#"{"rows":2}"#.utf8)),
      ])
    #expect(Checkpoint.formatVersion == 2)
  }
}

@Suite struct `A checkpoint that is not as written` {
  private func fixture(_ folder: TemporaryFolder) throws -> [UInt8] {
    let written = (0..<20).map {
      TestEntry(channel: 0, key: Int64($0), payload: Array("recipe number \($0)".utf8))
    }
    try write(written, summary: Array("{}".utf8), to: folder.file("a"))
    return try bytes(of: folder.file("a"))
  }

  @Test func `is refused when cut anywhere`() throws {
    let folder = try TemporaryFolder()
    let whole = try fixture(folder)
    for count in 0..<whole.count {
      try put(Array(whole[..<count]), at: folder.file("b"))
      #expect(throws: CheckpointError.truncated(folder.file("b"))) {
        try entries(of: folder.file("b"))
      }
    }
  }

  @Test func `is refused when any bit is wrong`() throws {
    let folder = try TemporaryFolder()
    let whole = try fixture(folder)
    for bit in 0..<(whole.count * 8) {
      var flipped = whole
      flipped[bit / 8] ^= 1 << UInt8(bit % 8)
      try put(flipped, at: folder.file("b"))
      let error = #expect(throws: CheckpointError.self) { try entries(of: folder.file("b")) }
      #expect(error?.provesUnusable == true, "bit \(bit)")
    }
  }

  @Test func `is refused when bytes follow it`() throws {
    let folder = try TemporaryFolder()
    let whole = try fixture(folder)
    for extra in [[0], Array(whole[96...])] {
      try put(whole + extra, at: folder.file("b"))
      #expect(throws: CheckpointError.damaged(folder.file("b"), .trailingBytes)) {
        try entries(of: folder.file("b"))
      }
    }
  }

  @Test func `is told apart from one of another plan, unit, version or kind`() throws {
    let folder = try TemporaryFolder()
    let path = folder.file("b")
    var crafted = CraftedCheckpoint()
    crafted.appendSummary()
    try put(crafted.bytes(), at: path)
    #expect(try entries(of: path).count == 1)
    let other = [UInt8](repeating: 9, count: 32)
    #expect(throws: CheckpointError.otherPlan(path)) { try entries(of: path, fingerprint: other) }
    // Two checkpoints that have changed places.
    for name in [CheckpointName(stage: .copy, unit: unitName.unit), .init(stage: .link, unit: 0)] {
      #expect(throws: CheckpointError.otherUnit(path, found: unitName)) {
        try entries(of: path, name: name)
      }
    }
    for version: UInt16 in [1, 3] {
      crafted.version = version
      try put(crafted.bytes(), at: path)
      #expect(throws: CheckpointError.otherVersion(path, found: version)) {
        try entries(of: path)
      }
    }
    try put(Array("SQLite format 3\0".utf8), at: path)
    #expect(throws: CheckpointError.notACheckpoint(path)) { try entries(of: path) }
    #expect(throws: CheckpointError.unreadable(folder.file("c"), .noSuchFileOrDirectory)) {
      try entries(of: folder.file("c"))
    }
    #expect(throws: CheckpointError.self) { try entries(of: folder.path) }
    for error in [
      CheckpointError.otherPlan(path), .otherVersion(path, found: 3), .notACheckpoint(path),
      .otherUnit(path, found: unitName),
    ] { #expect(error.provesUnusable) }
    // A disk that does not answer proves nothing of the file.
    #expect(!CheckpointError.unreadable(path, .ioError).provesUnusable)
  }

  typealias Change = @Sendable (inout CraftedCheckpoint) -> Void

  /// Each has a right digest: somebody has made it so on purpose.
  static let crafted: [(String, CheckpointError.Damage, Change)] = [
    ("a reserved byte", .header, { $0.reserved = 1 }),
    ("no stage", .header, { $0.stage = 0 }),
    ("a stage of a later format", .header, { $0.stage = 8 }),
    (
      "no summary", .summary,
      {
        $0.content = []; $0.entryCount = 0
      }
    ),
    ("no content but a count", .recordCount, { $0.content = [] }),
    ("two summaries", .summary, { $0.appendSummary() }),
    ("a row behind the summary", .summary, { $0.append(row) }),
    ("a smaller count", .recordCount, { $0.entryCount -= 1 }),
    ("a larger count", .recordCount, { $0.entryCount += 1 }),
    ("the largest count", .recordCount, { $0.entryCount = .max }),
    ("fewer bytes", .entryLength, { $0.byteCount = 10 }),
    ("more bytes", .byteCount, { $0.byteCount = 1 << 40 }),
    (
      "half a header", .entryLength,
      {
        $0.content += [0, 0, 0]; $0.entryCount += 1
      }
    ),
    (
      "a length beyond the frame", .entryLength,
      {
        $0.content = []; $0.append(row, claiming: 2)
      }
    ),
    (
      "a length of 1 GiB that the header confirms", .entryLength,
      {
        $0.content = []; $0.append(row, claiming: 1 << 30); $0.byteCount = 1 << 40
      }
    ),
    (
      "a length beyond 1 GiB that the header confirms", .entryLength,
      {
        $0.content = []; $0.append(row, claiming: .max); $0.byteCount = .max
      }
    ),
    (
      "a window of 8 MiB", .frame,
      {
        $0.windowLog = 23; $0.content += [UInt8](repeating: 1, count: 20 << 20)
      }
    ),
    ("a second frame's beginning", .trailingBytes, { $0.trailing = [0x28, 0xB5, 0x2F, 0xFD] }),
  ]
  static let row = TestEntry(channel: 0, key: 1, payload: [1])

  @Test(arguments: 0..<crafted.count) func `is refused for what is wrong in it`(index: Int) throws {
    let (name, damage, change) = Self.crafted[index]
    let folder = try TemporaryFolder()
    var crafted = CraftedCheckpoint()
    crafted.appendSummary()
    change(&crafted)
    try put(crafted.bytes(), at: folder.file("b"))
    let error = #expect(throws: CheckpointError.self, "\(name)") {
      try entries(of: folder.file("b"))
    }
    #expect(error == .damaged(folder.file("b"), damage), "\(name)")
    #expect(error?.provesUnusable == true)
  }

  @Test func `costs no memory for a length that it only claims`() throws {
    let folder = try TemporaryFolder()
    var crafted = CraftedCheckpoint()
    crafted.append(TestEntry(channel: 0, key: 1, payload: [1]), claiming: 1 << 30)
    crafted.byteCount = 1 << 40
    try put(crafted.bytes(), at: folder.file("b"))
    let reader = try CheckpointReader(
      path: folder.file("b"), name: unitName, fingerprint: planFingerprint)
    #expect(throws: CheckpointError.damaged(folder.file("b"), .entryLength)) { try reader.next() }
    #expect(reader.bufferByteCount <= 512 << 10)
  }

  @Test func `takes memory for its largest entry and no more`() throws {
    let folder = try TemporaryFolder()
    let rows = (0..<200).map {
      TestEntry(
        channel: 0, key: $0, payload: .init(repeating: 7, count: $0 == 9 ? 3 << 20 : 50_000))
    }
    try write(rows, summary: [], to: folder.file("a"))
    let reader = try CheckpointReader(
      path: folder.file("a"), name: unitName, fingerprint: planFingerprint)
    while try reader.next() != nil {}
    #expect(reader.bufferByteCount <= (6 << 20) + (512 << 10))
  }
}
