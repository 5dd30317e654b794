internal import GodwitDurableFiles
internal import Synchronization
package import SystemPackage

/// Reads one checkpoint, entry by entry, in flat memory.
///
/// Everything the format promises is checked on the way. The digests stand at the end, so what was
/// read is proven only when ``next()`` has given `nil`: until then it must not get to where it
/// cannot be taken back from.
package final class CheckpointReader {
  /// One entry of a checkpoint.
  package struct Entry {
    package let channel: UInt8
    /// The row's `Z_PK` or rowid; 0 for the summary.
    package let key: Int64
    /// Valid until the next call of ``CheckpointReader/next()``.
    package let payload: UnsafeRawBufferPointer
  }

  package let path: FilePath
  /// Entries in the file, the summary among them, as its header says.
  package let entryCount: UInt64
  /// Uncompressed bytes in the file, as its header says.
  package let byteCount: UInt64
  /// Entries read so far.
  @exclusivity(unchecked) package private(set) var entriesRead: UInt64 = 0

  private let source: Source
  private let name: CheckpointName
  private let fingerprint: [UInt8]
  private let summaries: KnownSummaries?
  @exclusivity(unchecked) private var summary: [UInt8] = []
  @exclusivity(unchecked) private var bytesRead: UInt64 = 0
  @exclusivity(unchecked) private var isSummaryRead = false
  @exclusivity(unchecked) private var isAtEnd = false
  @exclusivity(unchecked) private var memoryPlace = 0

  /// Opens a checkpoint and checks its header.
  ///
  /// - Parameters:
  ///   - name: What the file must be the result of.
  ///   - fingerprint: The plan's; a checkpoint of another plan is refused.
  package convenience init(path: FilePath, name: CheckpointName, fingerprint: [UInt8]) throws {
    try self.init(path: path, name: name, fingerprint: fingerprint, summaries: nil)
  }

  /// - Parameter summaries: Learns of the summary once the file is proven whole.
  init(
    path: FilePath, name: CheckpointName, fingerprint: [UInt8], summaries: KnownSummaries?
  ) throws {
    self.path = path
    self.name = name
    self.fingerprint = fingerprint
    self.summaries = summaries
    let (file, header) = try openCheckpoint(path, name: name, fingerprint: fingerprint)
    entryCount = header.entryCount
    byteCount = header.byteCount
    source = .frame(
      .passRetained(try FrameReader(path: path, file: file, digest: header.frameDigest)))
  }

  /// Opens a checkpoint that a run keeps in memory.
  init(_ name: CheckpointName, in memory: CheckpointMemory, path: FilePath) throws {
    self.path = path
    self.name = name
    (fingerprint, summaries) = ([], nil)
    guard let entries = memory[name] else {
      throw CheckpointError.unreadable(path, .noSuchFileOrDirectory)
    }
    entryCount = entries.count
    byteCount = UInt64(entries.bytes.count)
    source = .memory(entries)
  }

  deinit { if case .frame(let frame) = source { frame.release() } }
}

extension CheckpointReader {
  /// Where the uncompressed entries come from.
  private enum Source {
    /// Owned: it is read twice for each row, where a reference count costs as much as the reading.
    case frame(Unmanaged<FrameReader>)
    case memory(CheckpointMemory.Entries)
  }

  /// The next bytes; nil at the very end.
  @inline(__always)
  private func read(_ count: Int) throws -> UnsafeRawBufferPointer? {
    switch source {
    case .frame(let frame): return try frame._withUnsafeGuaranteedRef { try $0.read(count) }
    case .memory(let entries):
      let place = memoryPlace
      guard place < entries.bytes.count else { return nil }
      guard entries.bytes.count - place >= count else {
        throw CheckpointError.damaged(path, .entryLength)
      }
      memoryPlace += count
      return UnsafeRawBufferPointer(rebasing: entries.bytes[place..<(place + count)])
    }
  }
}

extension CheckpointReader {
  /// Bytes of memory in use for the file's bytes, compressed and not; the window comes on top.
  var bufferByteCount: Int {
    switch source {
    case .frame(let frame): frame._withUnsafeGuaranteedRef { $0.bufferByteCount }
    case .memory: 0
    }
  }

  /// The next entry, or `nil` when the file has been read to its end and found whole.
  package func next() throws -> Entry? {
    if isAtEnd { return nil }
    let headerSize = Checkpoint.entryHeaderByteCount
    guard let header = try read(headerSize) else {
      try checkEnd()
      isAtEnd = true
      summaries?.add(summary, name, fingerprint)
      return nil
    }
    let length = Int(UInt32(littleEndian: header.loadUnaligned(as: UInt32.self)))
    let channel = header[4]
    let key = Int64(littleEndian: header.loadUnaligned(fromByteOffset: 5, as: Int64.self))
    bytesRead += UInt64(headerSize)
    if entriesRead == entryCount { throw CheckpointError.damaged(path, .recordCount) }
    guard bytesRead <= byteCount, length <= Checkpoint.maximumPayloadBytes,
      UInt64(length) <= byteCount - bytesRead
    else { throw CheckpointError.damaged(path, .entryLength) }
    if isSummaryRead { throw CheckpointError.damaged(path, .summary) }
    guard
      let payload = length == 0
        ? UnsafeRawBufferPointer(start: nil, count: 0) : try read(length)
    else { throw CheckpointError.damaged(path, .entryLength) }
    bytesRead += UInt64(length)
    entriesRead += 1
    isSummaryRead = channel == Checkpoint.summaryChannel
    if isSummaryRead { summary = Array(payload) }
    return Entry(channel: channel, key: key, payload: payload)
  }

  private func checkEnd() throws {
    guard entriesRead == entryCount else { throw CheckpointError.damaged(path, .recordCount) }
    guard bytesRead == byteCount else { throw CheckpointError.damaged(path, .byteCount) }
    guard isSummaryRead else { throw CheckpointError.damaged(path, .summary) }
  }

  /// The summary, after the whole file has been read and found whole.
  ///
  /// - Complexity: O(*n*) in the size of the file.
  package static func summary(
    of name: CheckpointName, in run: RunDirectory, fingerprint: [UInt8]
  ) throws -> [UInt8] {
    let reader = try run.reader(name.stage, name.unit, fingerprint: fingerprint)
    while try reader.next() != nil {}
    return reader.summary
  }

  /// The same as a value.
  package static func summary<Summary: CheckpointSummary>(
    _ type: Summary.Type, of name: CheckpointName, in run: RunDirectory, fingerprint: [UInt8]
  ) throws -> Summary {
    if let value = run.memory?[name]?.summary as? Summary { return value }
    return try Summary(encoded: summary(of: name, in: run, fingerprint: fingerprint))
  }

  /// The same, without reading a file again that this process has read and found whole.
  package static func knownSummary<Summary: CheckpointSummary>(
    _ type: Summary.Type, of name: CheckpointName, in run: RunDirectory, fingerprint: [UInt8]
  ) throws -> Summary {
    if let bytes = run.summaries.summary(name, fingerprint) { return try Summary(encoded: bytes) }
    return try summary(type, of: name, in: run, fingerprint: fingerprint)
  }
}

/// Summaries of checkpoints that this process has read and found whole, of passes over rows: those are
/// large, and the assembly reads each of them before somebody asks for its summary again.
///
/// What a unit comes to follows from the plan alone, so a summary never becomes another.
final class KnownSummaries: Sendable {
  private struct Key: Hashable {
    var name: CheckpointName
    var fingerprint: [UInt8]
  }

  private let known = Mutex<[Key: [UInt8]]>([:])

  func summary(_ name: CheckpointName, _ fingerprint: [UInt8]) -> [UInt8]? {
    known.withLock { $0[Key(name: name, fingerprint: fingerprint)] }
  }

  func forget(_ name: CheckpointName, _ fingerprint: [UInt8]) {
    known.withLock { $0[Key(name: name, fingerprint: fingerprint)] = nil }
  }

  func add(_ summary: [UInt8], _ name: CheckpointName, _ fingerprint: [UInt8]) {
    guard name.stage == .rows else { return }
    known.withLock { $0[Key(name: name, fingerprint: fingerprint)] = summary }
  }
}

/// Opens a file and checks that it has a header of this format, plan, stage and unit. The file is
/// then at its frame.
private func openCheckpoint(
  _ path: FilePath, name: CheckpointName, fingerprint: [UInt8]
) throws -> (file: FileDescriptor, CheckpointHeader) {
  let file: FileDescriptor
  do {
    file = try RegularFile.open(path, isPrivate: true)
  } catch let error as DurabilityError {
    // A link, a FIFO or somebody else's file is none of ours.
    guard let errno = error.errno else { throw CheckpointError.notACheckpoint(path) }
    throw CheckpointError.unreadable(path, errno)
  }
  do {
    var bytes = [UInt8](repeating: 0, count: Checkpoint.headerByteCount)
    var count = 0
    while count < bytes.count {
      let read = try bytes.withUnsafeMutableBytes {
        try file.read(into: UnsafeMutableRawBufferPointer(rebasing: $0[count...]))
      }
      if read == 0 { break }
      count += read
    }
    let header = try CheckpointHeader(parsing: Array(bytes[..<count]), path: path)
    guard header.fingerprint == fingerprint else { throw CheckpointError.otherPlan(path) }
    guard header.name == name else {
      throw CheckpointError.otherUnit(path, found: header.name)
    }
    return (file, header)
  } catch {
    try? file.close()
    if let errno = error as? Errno { throw CheckpointError.unreadable(path, errno) }
    throw error
  }
}
