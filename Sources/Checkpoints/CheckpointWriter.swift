package import SystemPackage

/// What a checkpoint ends with: what came of its unit.
package protocol CheckpointSummary: Sendable {
  /// The payload of the last entry. Equal summaries give equal bytes.
  func encoded() throws -> [UInt8]

  /// - Throws: Any error where the bytes are of no summary.
  init(encoded bytes: [UInt8]) throws
}

/// Writes one checkpoint, entry by entry, in flat memory.
///
/// The file gets its name with ``finish(_:)``. Before that it is a temporary file, which goes
/// away with the writer. The same entries always give the same bytes.
package final class CheckpointWriter {
  package let path: FilePath
  /// Entries appended so far.
  @exclusivity(unchecked) package private(set) var entryCount: UInt64 = 0
  /// Uncompressed bytes so far, those of the entries' headers among them.
  @exclusivity(unchecked) package private(set) var byteCount: UInt64 = 0

  private let name: CheckpointName
  private let fingerprint: [UInt8]
  private let target: Target
  /// Entries wait here until a piece is full: zstd is slow with small ones. What is to stay in memory
  /// stays here.
  @exclusivity(unchecked) private var input: UnsafeMutableRawBufferPointer
  @exclusivity(unchecked) private var inputCount = 0
  @exclusivity(unchecked) private var isFinished = false
  /// What a checkpoint in memory ends with.
  @exclusivity(unchecked) private var summary: (any CheckpointSummary)?
  /// The error that left the frame incomplete. The file can then not be finished.
  @exclusivity(unchecked) private var failure: (any Error)?

  /// 256 KiB: half a window. Larger pieces are no faster.
  private static let pieceByteCount = 256 << 10

  /// - Parameters:
  ///   - name: What the file is the result of. A reader must give the same.
  ///   - fingerprint: The plan's, SHA-256. Likewise.
  /// - Throws: ``CheckpointError``, and `DurabilityError` where the file system is the reason, as
  ///   do all methods.
  package init(path: FilePath, name: CheckpointName, fingerprint: [UInt8]) throws {
    precondition(
      fingerprint.count == Checkpoint.fingerprintByteCount, "a fingerprint is a SHA-256")
    self.path = path
    self.name = name
    self.fingerprint = fingerprint
    target = .file(try FrameWriter(path))
    input = .allocate(byteCount: Self.pieceByteCount, alignment: 16)
  }

  /// A checkpoint that stays in memory.
  init(path: FilePath, name: CheckpointName, memory: CheckpointMemory) {
    self.path = path
    self.name = name
    fingerprint = []
    target = .memory(memory)
    input = .allocate(byteCount: 4 << 10, alignment: 16)
  }

  private enum Target {
    case file(FrameWriter)
    case memory(CheckpointMemory)
  }

  deinit { input.deallocate() }
}

extension CheckpointWriter {
  /// Appends an entry. The payload is copied.
  ///
  /// - Parameter channel: Any but that of the summary.
  package func append(channel: UInt8, key: Int64, _ payload: UnsafeRawBufferPointer) throws {
    precondition(channel != Checkpoint.summaryChannel, "the summary is written by finish")
    try appendEntry(channel: channel, key: key, payload)
  }

  /// Writes the summary and gives the file its name for good. In memory the summary stays a value.
  package func finish(_ summary: some CheckpointSummary) throws {
    if case .file = target { return try finish(summary: summary.encoded()) }
    self.summary = summary
    try finish(summary: [])
  }

  /// The same with the summary's bytes.
  package func finish(summary: [UInt8]) throws {
    try summary.withUnsafeBytes {
      try appendEntry(channel: Checkpoint.summaryChannel, key: 0, $0)
    }
    isFinished = true
    switch target {
    case .memory(let memory):
      memory[name] = CheckpointMemory.Entries(
        input, byteCount: inputCount, count: entryCount, summary: self.summary)
      input = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    case .file(let frame):
      try compress(into: frame, isEnd: true)
      try frame.finish { digest in
        CheckpointHeader(
          name: name, fingerprint: fingerprint, entryCount: entryCount, byteCount: byteCount,
          frameDigest: digest)
      }
    }
  }

  private func appendEntry(
    channel: UInt8, key: Int64, _ payload: UnsafeRawBufferPointer
  ) throws {
    precondition(!isFinished, "a checkpoint is written once")
    if let failure { throw failure }
    guard payload.count <= Checkpoint.maximumPayloadBytes else {
      throw CheckpointError.entryTooLarge(path, bytes: payload.count)
    }
    let size = Checkpoint.entryHeaderByteCount + payload.count
    if input.count - inputCount < Checkpoint.entryHeaderByteCount { try makeRoom() }
    let length = UInt32(truncatingIfNeeded: payload.count).littleEndian
    input.storeBytes(of: length, toByteOffset: inputCount, as: UInt32.self)
    input.storeBytes(of: channel, toByteOffset: inputCount + 4, as: UInt8.self)
    input.storeBytes(of: key.littleEndian, toByteOffset: inputCount + 5, as: Int64.self)
    inputCount += Checkpoint.entryHeaderByteCount
    try appendInput(payload)
    entryCount += 1
    byteCount += UInt64(size)
  }

  private func appendInput(_ bytes: UnsafeRawBufferPointer) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      if inputCount == input.count { try makeRoom() }
      let part = rest.prefix(input.count - inputCount)
      UnsafeMutableRawBufferPointer(rebasing: input[inputCount...])
        .copyMemory(from: UnsafeRawBufferPointer(rebasing: part))
      inputCount += part.count
      rest = rest.dropFirst(part.count)
    }
  }

  /// Makes room behind the entries that wait.
  private func makeRoom() throws {
    switch target {
    case .file(let frame):
      try compress(into: frame, isEnd: false)
    case .memory:
      let larger = UnsafeMutableRawBufferPointer.allocate(
        byteCount: input.count * 2, alignment: 16)
      larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: input[..<inputCount]))
      input.deallocate()
      input = larger
    }
  }

  private func compress(into frame: FrameWriter, isEnd: Bool) throws {
    do {
      try frame.write(UnsafeRawBufferPointer(rebasing: input[..<inputCount]), isEnd: isEnd)
      inputCount = 0
    } catch {
      failure = error
      throw error
    }
  }
}
