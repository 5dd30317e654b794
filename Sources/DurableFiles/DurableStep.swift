private import Glibc
private import Synchronization
package import SystemPackage

/// Something that has just been done to the disk, between which and the next step a crash can fall.
package enum DurableStep: String, CaseIterable, Sendable {
  /// All bytes of a new file are written under its temporary name, and perhaps only in memory yet.
  case written
  /// All bytes and attributes of a copy are written under its temporary name.
  case copied
  /// A file's bytes are on the disk.
  case fileSynced
  /// A file has its name, though perhaps only in memory yet.
  case renamed
  /// Two files have changed names with each other.
  case exchanged
  /// A file has no name any more.
  case removed
  /// A folder is there.
  case folderMade
  /// A folder's names are on the disk.
  case folderSynced
}

/// The door that every ``DurableStep`` passes, so that a test can stop at each.
package enum DurableSteps {
  /// Hears of a step after it was done. Throwing stops there, as a crash would: what the step left
  /// behind stays as it is.
  package typealias Observer = @Sendable (DurableStep, FilePath) throws -> Void

  /// Nothing but tests and ``killProcess(afterStep:andParent:)`` sets one.
  private static let observer = Mutex<Observer?>(nil)
  @TaskLocal private static var taskObserver: Observer?

  /// Lets the observer hear of every step of this process; `nil` for none.
  package static func observe(_ newObserver: Observer?) {
    observer.withLock { $0 = newObserver }
  }

  /// Lets the observer hear of the steps that the body takes in this task, and of no others.
  package static func observing<Result>(
    with observer: @escaping Observer, _ body: () throws -> Result
  ) rethrows -> Result {
    try $taskObserver.withValue(observer, operation: body)
  }

  /// Kills this process, as a power cut would, after its step number `count`, counted from 1.
  ///
  /// - Parameter andParent: Whether the process that started this one is killed first.
  package static func killProcess(afterStep count: Int, andParent: Bool = false) {
    let passed = Atomic(0)
    observe { _, _ in
      if passed.add(1, ordering: .relaxed).newValue == count {
        if andParent { kill(getppid(), SIGKILL) }
        kill(getpid(), SIGKILL)
      }
    }
  }

  static func passed(_ step: DurableStep, _ path: FilePath) throws {
    try taskObserver?(step, path)
    // Called outside the lock: an observer may take steps of its own.
    try observer.withLock { $0 }?(step, path)
  }
}
