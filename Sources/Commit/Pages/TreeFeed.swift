import Dispatch
import GodwitDurableFiles
import GodwitSQLite
import Synchronization

/// Hands the entries of b-trees, one tree after the other, to what writes them as pages.
///
/// For a large store that is a thread of its own: pages are filled and written beside the reading of
/// checkpoints and the sorting of index entries. Which page gets which number is the same either way.
final class TreeFeed {
  /// A hand-over costs as much as a hundred rows, so many go at once.
  fileprivate static let blockSize = 1 << 20
  /// 16 MiB wait at most, or one larger entry: so much comes while the disk writes as much.
  fileprivate static let blockCount = 16

  private let writer: PageThread
  private let isThreaded: Bool
  private var block = Block()
  /// The bytes of ``block``, which gets them when it is handed over: that costs a reference count less
  /// for each entry.
  @exclusivity(unchecked) private var bytes = RawBuffer(capacity: 64)

  /// Entries of one tree, one behind the other; one thread at a time has it.
  fileprivate final class Block: @unchecked Sendable {
    var kind = TreeScan.Kind.table
    var root: UInt32 = 0
    /// Nothing of the tree comes after these entries.
    var isEnd = false
    @exclusivity(unchecked) var bytes = RawBuffer(capacity: 64)

    /// For how many blocks it counts.
    var weight: Int { min(blockCount, max(1, bytes.count / blockSize)) }
  }

  /// - Parameter isThreaded: False for a store that is done before a thread would be. Where the system
  ///   allows no further thread, none is needed either.
  init(_ file: PageFile, isThreaded: Bool) {
    writer = PageThread(file)
    let writer = writer
    self.isThreaded =
      isThreaded && (try? OwnThread.start { writer.serve() }) != nil
  }
}

extension TreeFeed {
  /// Begins a tree. The one before has ended.
  func begin(_ kind: TreeScan.Kind, root: UInt32) {
    block.kind = kind
    block.root = root
  }

  /// Adds a row to a table. Keys ascend.
  @inline(__always)
  func append(key: Int64, _ record: UnsafeRawBufferPointer) throws {
    bytes.append(number: key)
    try append(record)
  }

  /// Adds an entry to an index. Entries ascend.
  @inline(__always)
  func append(_ record: UnsafeRawBufferPointer) throws {
    bytes.append(number: UInt32(truncatingIfNeeded: record.count))
    bytes.append(record)
    if bytes.count >= TreeFeed.blockSize { try handOver() }
  }

  /// Ends the tree that was begun.
  func end() throws {
    block.isEnd = true
    try handOver()
  }

  @inline(never)
  private func handOver() throws {
    swap(&bytes, &block.bytes)
    guard isThreaded else {
      try writer.write(block)
      block.bytes.removeAll()
      block.isEnd = false
      return
    }
    let next = try writer.take(block)
    next.kind = block.kind
    next.root = block.root
    block = next
  }

  /// Waits until every page is written. To be called whatever happened, before the file is used.
  func finish() throws {
    if isThreaded { try writer.stop() }
  }
}

/// Fills pages with entries, on whichever thread.
private final class PageThread: @unchecked Sendable {
  private struct State {
    /// Nil ends the thread.
    var waiting: [TreeFeed.Block?] = []
    var unused: [TreeFeed.Block] = []
    var failure: (any Error)?
  }

  /// Used by one thread alone as long as that runs.
  private let file: PageFile
  private var tree: TreeWriter?
  private let state = Mutex(State())
  private let given = DispatchSemaphore(value: 0)
  /// Blocks more that may wait.
  private let room = DispatchSemaphore(value: 0)
  private let ended = DispatchSemaphore(value: 0)

  init(_ file: PageFile) { self.file = file }

  func write(_ block: TreeFeed.Block) throws {
    let tree = self.tree ?? TreeWriter(block.kind, root: block.root, in: file)
    self.tree = block.isEnd ? nil : tree
    let isTable = block.kind == .table
    var place = UnsafeRawPointer(block.bytes.base)
    let end = place + block.bytes.count
    while place < end {
      let head = isTable ? 12 : 4
      let size = Int((place + head - 4).loadUnaligned(as: UInt32.self))
      let record = UnsafeRawBufferPointer(start: place + head, count: size)
      if isTable {
        try tree.append(key: place.loadUnaligned(as: Int64.self), record)
      } else {
        try tree.append(record)
      }
      place = record.baseAddress.map { $0 + size } ?? end
    }
    if block.isEnd { try tree.finish() }
  }

  func serve() {
    for _ in 0..<TreeFeed.blockCount { room.signal() }
    while true {
      given.wait()
      let (block, hasFailed) = state.withLock { state in
        (state.waiting.removeFirst(), state.failure != nil)
      }
      guard let block else { break }
      if !hasFailed {
        do {
          try write(block)
        } catch {
          state.withLock { $0.failure = error }
        }
      }
      giveBack(block)
    }
    ended.signal()
  }

  private func giveBack(_ block: TreeFeed.Block) {
    let weight = block.weight
    // What one large entry took is not kept for others.
    if block.bytes.capacity > 4 * TreeFeed.blockSize { block.bytes = RawBuffer(capacity: 64) }
    block.bytes.removeAll()
    block.isEnd = false
    state.withLock { $0.unused.append(block) }
    for _ in 0..<weight { room.signal() }
  }

  /// - Returns: Another block, empty.
  func take(_ block: TreeFeed.Block) throws -> TreeFeed.Block {
    for _ in 0..<block.weight { room.wait() }
    state.withLock { $0.waiting.append(block) }
    given.signal()
    return try state.withLock { state in
      if let failure = state.failure { throw failure }
      return state.unused.popLast() ?? TreeFeed.Block()
    }
  }

  func stop() throws {
    state.withLock { $0.waiting.append(nil) }
    given.signal()
    ended.wait()
    if let failure = state.withLock({ $0.failure }) { throw failure }
  }
}
