internal import Synchronization

/// Checkpoints that need not outlive the process: those of a store so small that doing it again
/// costs less than keeping what was done.
///
/// The entries lie one after the other as in the frame of a file, without header, compression and
/// digests.
package final class CheckpointMemory: Sendable {
  /// One finished checkpoint. Nobody writes to its bytes any more.
  final class Entries: Sendable {
    nonisolated(unsafe) let bytes: UnsafeRawBufferPointer
    let count: UInt64
    /// What the last entry would say; nil where its payload says it.
    let summary: (any CheckpointSummary)?
    private nonisolated(unsafe) let buffer: UnsafeMutableRawBufferPointer

    /// Takes over the buffer, whose first `byteCount` bytes are the entries.
    init(
      _ buffer: UnsafeMutableRawBufferPointer, byteCount: Int, count: UInt64,
      summary: (any CheckpointSummary)?
    ) {
      self.buffer = buffer
      self.summary = summary
      self.count = count
      bytes = UnsafeRawBufferPointer(rebasing: buffer[..<byteCount])
    }

    deinit { buffer.deallocate() }
  }

  private let entries = Mutex<[CheckpointName: Entries]>([:])

  package init() {}

  subscript(_ name: CheckpointName) -> Entries? {
    get { entries.withLock { $0[name] } }
    set { entries.withLock { $0[name] = newValue } }
  }

  func units(of stage: Stage) -> Set<Int> {
    entries.withLock { entries in
      Set(entries.keys.lazy.filter { $0.stage == stage }.map(\.unit))
    }
  }
}
