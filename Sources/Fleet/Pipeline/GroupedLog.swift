import Foundation
import GodwitDurableFiles
import GodwitWorker
import Synchronization
import SystemPackage

/// A file of lines that many tasks append to: lines that come at the same time are written and flushed
/// together.
final class GroupedLog: Sendable {
  /// Where a line lies in the file, without its line feed.
  struct Place: Sendable, Equatable {
    var start: Int64
    var count: Int
  }

  private struct Line {
    var text: String
    /// Whether it must survive a power cut.
    var isLasting: Bool
    var answer: CheckedContinuation<Place, any Error>
  }

  private struct File: ~Copyable {
    var log: DurableLog
  }

  private struct State {
    var waiting: [Line] = []
    var company = FlushCompany()
    var isClosed = false

    var isWaitedFor: Bool {
      !isClosed && company.isWaitedFor(by: waiting.count { $0.isLasting })
    }
  }

  private let file: Mutex<File>
  private let state = Mutex(State())
  private let work = SteadySemaphore()

  /// Opens the file, or makes it.
  init(at path: FilePath) throws {
    file = Mutex(File(log: try DurableLog(at: path)))
    try OwnThread.start { self.write() }
  }

  /// Somebody begins what ends with a line, in milliseconds.
  func enter() { state.withLock { $0.company.writers += 1 } }

  /// Whoever began has come to the end.
  func leave() { state.withLock { $0.company.writers -= 1 } }

  /// Adds a line, given without its line feed. On return it is in the file and, if it is lasting, on the
  /// disk.
  @discardableResult
  func append(_ text: String, isLasting: Bool) async throws -> Place {
    try await withCheckedThrowingContinuation { answer in
      state.withLock {
        $0.waiting.append(Line(text: text, isLasting: isLasting, answer: answer))
        $0.company.lineCame(at: DispatchTime.now().uptimeNanoseconds)
      }
      work.signal()
    }
  }

  /// Writes what waits, all of it at once, until the log is closed.
  private func write() {
    while true {
      work.wait()
      let end = DispatchTime(uptimeNanoseconds: state.withLock(\.company.waitsUntil))
      while state.withLock(\.isWaitedFor), work.wait(timeout: end) == .success {}
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
        return try file.withLock {
          try $0.log.append(
            waiting.map(\.text), surviving: isLasting ? .powerCut : .processCrash)
          // Nobody else appends.
          return (try? FileMark($0.log.path))?.size ?? 0
        }
      }
      switch written {
      case .success(let end):
        var start = end - waiting.reduce(0) { $0 + Int64($1.text.utf8.count) + 1 }
        for line in waiting {
          let place = Place(start: start, count: line.text.utf8.count)
          line.answer.resume(returning: place)
          start += Int64(place.count) + 1
        }
      case .failure(let error):
        for line in waiting { line.answer.resume(throwing: error) }
      }
    }
  }

  /// Nothing is appended any more.
  func close() {
    state.withLock { $0.isClosed = true }
    work.signal()
  }
}

/// Whether a flush is worth a wait for further lines.
struct FlushCompany {
  /// Tasks that will have a line within milliseconds, or have one that waits.
  var writers = 0
  /// When the last line came, and after how long lines come, in nanoseconds.
  private var lastLine: UInt64 = 0
  private var interval: UInt64 = 0

  /// 20 ms: what comes more rarely is not worth a wait.
  static let longestInterval: UInt64 = 20_000_000

  /// - Parameter now: Nanoseconds, of any clock that does not go back.
  mutating func lineCame(at now: UInt64) {
    interval = (3 * interval + min(now - lastLine, Self.longestInterval)) / 4
    lastLine = now
  }

  /// Whether a flush now would leave most tasks to the next one.
  func isWaitedFor(by lines: Int) -> Bool { lines > 0 && 2 * lines < writers }

  /// As long as two lines take to come.
  var waitsUntil: UInt64 { lastLine + 2 * interval }
}
