import Glibc
import GodwitDurableFiles
import Synchronization
import SystemPackage

/// SIGTERM, SIGINT and SIGHUP of the coordinator: the first asks for a stop, the second ends at once.
///
/// SIGHUP is a closed terminal. Where it is ignored, as after `nohup`, it stays so.
///
/// Both are safe at any moment. The first lets the run clean up after itself; a run that has not
/// come to its end after ``graceSeconds`` is ended, as a service manager would do somewhat later.
package enum StopSignals {
  /// 8 s, so that the promise of 10 s is kept with some to spare.
  package static let graceSeconds = 8.0

  /// Of a process that does not get to its own words: stopped early, and resumable.
  private static let stoppedCode: Int32 = 75

  /// Those that stop this process.
  package static var signals: [Int32] {
    var known = sigaction()
    let isIgnored =
      sigaction(SIGHUP, nil, &known) == 0
      && unsafeBitCast(known.__sigaction_handler.sa_handler, to: Int.self)
        == unsafeBitCast(SIG_IGN, to: Int.self)
    return [SIGTERM, SIGINT] + (isIgnored ? [] : [SIGHUP])
  }

  private static let pipeEnd = Atomic<Int32>(-1)

  /// Ends the process, and leaves nothing in folders for temporary files.
  package static func finish(_ end: () -> Never) -> Never {
    TemporaryFolders.removeAll()
    end()
  }

  /// Installs the handlers, before workers are started; in place of those that there are.
  ///
  /// - Parameters:
  ///   - stop: Called on a thread of its own at the first signal.
  ///   - end: Called when there is no more time; must end the process.
  package static func install(
    stop: @escaping @Sendable () -> Void, end: @escaping @Sendable () -> Never
  ) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    let reader = ends[0]
    pipeEnd.store(ends[1], ordering: .sequentiallyConsistent)
    let watch: @Sendable () -> Void = {
      var byte: UInt8 = 0
      while true {
        let count = read(reader, &byte, 1)
        if count == 1 { break }
        if count < 0, errno == EINTR { continue }
        return
      }
      // Both may wait for a lock of one who writes to a pipe that nobody reads.
      if (try? OwnThread.start(stop)) == nil { stop() }
      var poller = pollfd(fd: reader, events: Int16(POLLIN), revents: 0)
      while poll(&poller, 1, Int32(graceSeconds * 1000)) < 0, errno == EINTR {}
      try? OwnThread.start {
        sleep(1)
        _exit(stoppedCode)
      }
      finish(end)
    }
    // Without a thread for them, signals end the process at once, which is as safe.
    guard (try? OwnThread.start(watch)) != nil else { return }
    var action = sigaction()
    // Only what is allowed in a signal handler: one write(2).
    action.__sigaction_handler.sa_handler = { _ in
      var byte: UInt8 = 1
      _ = write(StopSignals.pipeEnd.load(ordering: .relaxed), &byte, 1)
    }
    action.sa_flags = SA_RESTART
    for number in signals { sigaction(number, &action, nil) }
  }
}

/// What a worker process does so as not to outlive its coordinator.
///
/// `PR_SET_PDEATHSIG` follows the *thread* that started the process, which here is a short-lived
/// one. The pipe says it reliably: when its other end is closed, nobody waits for the answer, and
/// a shard in hand may be dropped at any moment.
package enum CoordinatorWatch {
  /// A terminal, `timeout`, a service manager and a scheduler send these to every process of a run. Only
  /// the coordinator answers: one that loses its processes in the middle of a stop cannot say what became
  /// of the stores in hand.
  private static let signals = [SIGINT, SIGHUP, SIGTERM]

  static var signalSet: sigset_t {
    var set = sigset_t()
    sigemptyset(&set)
    for number in signals { sigaddset(&set, number) }
    return set
  }

  /// Lets them pass. The coordinator starts its processes with them blocked; to be called before there is a
  /// second thread, since the runtime unblocks the first.
  package static func leaveSignals() {
    var action = sigaction()
    // Not SIG_IGN, which programs that are started would inherit.
    action.__sigaction_handler.sa_handler = { _ in }
    action.sa_flags = SA_RESTART
    for number in signals { sigaction(number, &action, nil) }
    allowSignals()
  }

  /// Unblocks them for the calling thread. To be called on every thread that code of a team's own runs
  /// on: what that starts inherits what is blocked.
  static func allowSignals() {
    var set = signalSet
    pthread_sigmask(SIG_UNBLOCK, &set, nil)
  }

  /// Ends the process when a pipe is closed at the other end. Other stops are the coordinator's to answer.
  ///
  /// - Parameter input: The pipe that tasks come through, which stays open.
  /// - Throws: `Errno` where the system allows no further thread.
  package static func install(on input: FileDescriptor) throws {
    signal(SIGPIPE, SIG_IGN)
    try OwnThread.start {
      while true {
        var poller = pollfd(fd: input.rawValue, events: 0, revents: 0)
        let count = poll(&poller, 1, -1)
        if count < 0, errno == EINTR { continue }
        if count == 1, poller.revents & Int16(POLLHUP | POLLERR) != 0 {
          StopSignals.finish { _exit(0) }
        }
        return
      }
    }
  }
}
