private import CLinux
import Glibc
import GodwitDurableFiles
import GodwitWorker
import Synchronization
import SystemPackage

/// One child process that is talked to in lines, from its start to its end.
///
/// It is started by `posix_spawn`, and read on a thread of its own, so that a child that is stopped
/// or waits without end is noticed, and that no error of a call is more than an error.
final class WorkerProcess: Sendable {
  enum Event: Sendable {
    /// Without its line feed.
    case line([UInt8])
    /// How the process ended, in words for a message. The last event.
    case ended(String)
  }

  /// For one reader.
  var events: AsyncMapSequence<AsyncStream<Event>, Event> {
    stream.map { event in
      self.state.withLock { $0.unread -= 1 }
      return event
    }
  }

  private let stream: AsyncStream<Event>

  private struct State {
    /// The child's standard input; nil when it was closed.
    var input: FileDescriptor?
    /// How long it may be silent, in seconds; nil while it has nothing to do.
    var silenceLimit: Double?
    /// What it has said and nobody has read yet: it is we who are slow then, on a machine that is busy.
    var unread = 0
    /// How long it may still live, in seconds; nil for as long as it likes.
    var lifetime: Double?
    var isEnding = false
    /// Nil while the process lives.
    var end: String?
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let pid: pid_t
  private let stallLimit: Double
  private let state: Mutex<State>

  /// Where the command began, which is where every worker begins: a handler may have changed the folder since.
  static let folder = try? FileDescriptor.open(
    ".", .readOnly, options: [.directory, .closeOnExec])
  /// How the words begin that tell of the end of a silent process.
  static let silence = "made no progress"
  /// Likewise of one that had opened too many files.
  static let withoutFiles = "may open no more files"
  /// Likewise of a process that a signal stopped.
  static let stopped = "was stopped by a signal"
  /// How long a process that shall end may take before it is killed, in seconds.
  private static let farewellSeconds = 2.0
  /// 4 MiB. A summary of findings is far shorter; a worker that writes more has gone wrong.
  private static let longestLine = 4 << 20

  /// Starts the process.
  ///
  /// - Parameters:
  ///   - executable: A program that answers in lines on its standard output.
  ///   - stallLimit: How long it may be stopped by a signal, in seconds.
  /// - Throws: `Errno`.
  init(
    executable: FilePath, arguments: [String], stallLimit: Double = WorkerTimeout.seconds
  ) throws {
    self.stallLimit = stallLimit
    let (childInput, input) = try Self.pipe()
    let (output, childOutput): (FileDescriptor, FileDescriptor)
    do {
      (output, childOutput) = try Self.pipe()
    } catch {
      for end in [childInput, input] { try? end.close() }
      throw error
    }
    defer { for end in [childInput, childOutput] { try? end.close() } }
    do {
      // A child that does not read must not stop us: its lines are few and short.
      guard fcntl(input.rawValue, F_SETFL, O_NONBLOCK) == 0 else { throw Errno(rawValue: errno) }
      pid = try Self.spawn(executable, arguments, input: childInput, output: childOutput)
    } catch {
      for end in [input, output] { try? end.close() }
      throw error
    }
    state = Mutex(State(input: input))
    let (stream, continuation) = AsyncStream.makeStream(of: Event.self)
    self.stream = stream
    do {
      try OwnThread.start { self.read(output, continuation) }
    } catch {
      ProcessTree.kill(pid)
      var status: Int32 = 0
      while waitpid(pid, &status, 0) < 0, errno == EINTR {}
      for end in [input, output] { try? end.close() }
      throw error
    }
  }
}

extension WorkerProcess {
  /// Writes a line, given with its line feed. A process that is gone, or does not read, is ended:
  /// that shows itself as its last event.
  func send(_ line: [UInt8]) {
    state.withLock { state in
      guard let input = state.input else { return }
      let written = line.withUnsafeBytes { try? input.write($0) }
      if written != line.count, state.end == nil { ProcessTree.kill(pid) }
    }
  }

  /// How long the process may be silent from now on, in seconds; nil while it has nothing to do.
  func expectWords(within seconds: Double?) { state.withLock { $0.silenceLimit = seconds } }

  /// Ends the process unless it is let off within so many seconds; nil lets it off.
  func limitLife(to seconds: Double?) { state.withLock { $0.lifetime = seconds } }

  /// Closes the process's input, at which it ends; one that does not is killed after two seconds.
  func end() {
    state.withLock { state in
      state.isEnding = true
      try? state.input?.close()
      state.input = nil
    }
  }

  /// Ends the process at once. A worker needs no farewell: its shard is done by another.
  func stop() { state.withLock { if $0.end == nil { ProcessTree.kill(pid) } } }

  /// Returns when the process has ended, whether or not the calling task is cancelled.
  func waitForEnd() async {
    await withCheckedContinuation { waiter in
      let isOver = state.withLock { state in
        if state.end == nil { state.waiter = waiter }
        return state.end != nil
      }
      if isOver { waiter.resume() }
    }
  }
}

// The thread that reads.
extension WorkerProcess {
  private func read(_ output: FileDescriptor, _ events: AsyncStream<Event>.Continuation) {
    var silence: String?
    var buffer: [UInt8] = []
    while let piece = nextPiece(output, &silence) {
      buffer += piece
      while let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
        state.withLock { $0.unread += 1 }
        events.yield(.line(Array(buffer[..<end])))
        buffer.removeSubrange(...end)
      }
      if buffer.count > Self.longestLine { break }
    }
    try? output.close()
    let status = reap()
    let how =
      silence
      ?? (status == FileLimit.exitCode << 8
        ? Self.withoutFiles
        : status & 0x7F == 0
          ? "ended with exit code \(status >> 8 & 0xFF)" : "was killed by signal \(status & 0x7F)")
    let waiter = state.withLock { state in
      state.end = how
      try? state.input?.close()
      state.input = nil
      defer { state.waiter = nil }
      return state.waiter
    }
    state.withLock { $0.unread += 1 }
    events.yield(.ended(how))
    events.finish()
    waiter?.resume()
  }

  /// What the process wrote; nil when there will be no more. Kills a process that is silent for
  /// too long, or that shall end and does not.
  ///
  /// Time is counted in short waits, not by the clock: a machine or a process group that was
  /// asleep as a whole has not been silent.
  private func nextPiece(_ output: FileDescriptor, _ silence: inout String?) -> [UInt8]? {
    var (silent, leaving, halted) = (0.0, 0.0, 0.0)
    while true {
      let (limit, isEnding) = state.withLock {
        ($0.unread > 0 ? nil : $0.silenceLimit, $0.isEnding)
      }
      let wait = min(0.5, min(limit ?? .infinity, stallLimit) / 4)
      var poller = pollfd(fd: output.rawValue, events: Int16(POLLIN), revents: 0)
      let count = poll(&poller, 1, Int32(wait * 1_000))
      if count < 0, errno == EINTR { continue }
      if count != 0 {
        let piece = try? [UInt8](unsafeUninitializedCapacity: 64 << 10) { bytes, count in
          count = try output.read(into: UnsafeMutableRawBufferPointer(bytes))
        }
        return piece?.isEmpty == false ? piece : nil
      }
      silent = limit == nil || isEnding ? 0 : silent + wait
      leaving = isEnding ? leaving + wait : 0
      if let limit, silent >= limit {
        silence = "\(Self.silence) for \(Int(limit.rounded(.up))) seconds and was ended"
        return nil
      }
      if leaving >= Self.farewellSeconds { return nil }
      halted = isHalted ? halted + wait : 0
      if halted >= stallLimit {
        silence =
          "\(Self.stopped) for \(Int(stallLimit.rounded(.up))) seconds and was ended"
        return nil
      }
      let isOver = state.withLock { state in
        state.lifetime = state.lifetime.map { $0 - wait }
        return state.lifetime.map { $0 <= 0 } ?? false
      }
      if isOver { return nil }
    }
  }

  /// Whether a signal has stopped the process: the letter after its name in `/proc/PID/stat`.
  private var isHalted: Bool {
    guard let file = try? FileDescriptor.open("/proc/\(pid)/stat", .readOnly, options: .closeOnExec)
    else { return false }
    defer { try? file.close() }
    let bytes = try? [UInt8](unsafeUninitializedCapacity: 512) { buffer, count in
      count = try file.read(into: UnsafeMutableRawBufferPointer(buffer))
    }
    guard let bytes, let end = bytes.lastIndex(of: UInt8(ascii: ")")), end + 2 < bytes.count else {
      return false
    }
    return bytes[end + 2] == UInt8(ascii: "T")
  }

  /// Waits for the process, whose output has ended, and kills it where it does not end.
  private func reap() -> Int32 {
    var status: Int32 = 0
    let isOver = state.withLock { $0.isEnding }
    // What it does not write any more it may still be at: its exit takes a moment.
    for _ in 0..<(isOver ? 200 : 100) {
      let found = waitpid(pid, &status, WNOHANG)
      if found == pid { return status }
      if found < 0, errno != EINTR { return 0 }
      _ = poll(nil, 0, 10)
    }
    ProcessTree.kill(pid)
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    return status
  }
}

// Starting.
extension WorkerProcess {
  private static func pipe() throws -> (read: FileDescriptor, write: FileDescriptor) {
    var ends: [Int32] = [-1, -1]
    guard linux_pipe(&ends) == 0 else { throw Errno(rawValue: errno) }
    return (FileDescriptor(rawValue: ends[0]), FileDescriptor(rawValue: ends[1]))
  }

  private static func spawn(
    _ executable: FilePath, _ arguments: [String], input: FileDescriptor, output: FileDescriptor
  ) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, input.rawValue, STDIN_FILENO)
    posix_spawn_file_actions_adddup2(&actions, output.rawValue, STDOUT_FILENO)
    if let folder { _ = linux_spawn_in(&actions, folder.rawValue) }
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // What we ignore, a child would go on ignoring.
    var signals = sigset_t()
    sigemptyset(&signals)
    for signal in [SIGPIPE, SIGXFSZ, SIGINT, SIGTERM] { sigaddset(&signals, signal) }
    posix_spawnattr_setsigdefault(&attributes, &signals)
    // Those that it leaves to us must not end it while it starts.
    var blocked = CoordinatorWatch.signalSet
    posix_spawnattr_setsigmask(&attributes, &blocked)
    posix_spawnattr_setflags(
      &attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
    var environment: [UnsafeMutablePointer<CChar>?] = []
    var place = environ
    while let entry = place.pointee {
      if strncmp(entry, "SWIFT_DETERMINISTIC_HASHING=", 28) != 0 {
        environment.append(strdup(entry))
      }
      place += 1
    }
    // The code of policies goes over dictionaries and sets: in every run in the same order.
    environment.append(strdup("SWIFT_DETERMINISTIC_HASHING=1"))
    var words = ([executable.string] + arguments).map { strdup($0) }
    defer { for text in environment + words { free(text) } }
    environment.append(nil)
    words.append(nil)
    var pid = pid_t()
    let code = posix_spawn(&pid, executable.string, &actions, &attributes, words, environment)
    guard code == 0 else { throw Errno(rawValue: code) }
    return pid
  }
}
