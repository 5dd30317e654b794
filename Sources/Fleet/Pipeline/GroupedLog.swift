import Foundation
import GodwitDurableFiles
import GodwitWorker
import Synchronization
import SystemPackage

/// A file of lines that many tasks append to: lines that come at the same time are written and flushed
/// together.
final class GroupedLog: Sendable {
  private struct Line {
    var text: String
    /// Whether it must survive a power cut.
    var isLasting: Bool
    var answer: CheckedContinuation<Void, any Error>
  }

  private struct File: ~Copyable {
    var log: DurableLog
  }

  private struct State {
    var waiting: [Line] = []
    var isClosed = false
  }

  private let file: Mutex<File>
  private let state = Mutex(State())
  private let work = DispatchSemaphore(value: 0)

  /// Opens the file, or makes it.
  init(at path: FilePath) throws {
    file = Mutex(File(log: try DurableLog(at: path)))
    try OwnThread.start { self.write() }
  }

  /// Adds a line, given without its line feed. On return it is in the file and, if it is lasting, on the
  /// disk.
  func append(_ text: String, isLasting: Bool) async throws {
    try await withCheckedThrowingContinuation { answer in
      state.withLock {
        $0.waiting.append(Line(text: text, isLasting: isLasting, answer: answer))
      }
      work.signal()
    }
  }

  /// Writes what waits, all of it at once, until the log is closed.
  private func write() {
    while true {
      work.wait()
      let (waiting, isClosed) = state.withLock { state in
        defer { state.waiting = [] }
        return (state.waiting, state.isClosed)
      }
      if waiting.isEmpty {
        if isClosed { return }
        continue
      }
      let written = Result {
        let isLasting = waiting.contains(where: \.isLasting)
        try file.withLock {
          try $0.log.append(
            waiting.map(\.text), surviving: isLasting ? .powerCut : .processCrash)
        }
      }
      for line in waiting { line.answer.resume(with: written) }
    }
  }

  /// Nothing is appended any more.
  func close() {
    state.withLock { $0.isClosed = true }
    work.signal()
  }
}
