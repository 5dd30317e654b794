import Glibc
import GodwitDurableFiles
import GodwitWorker
import Synchronization
import SystemPackage

/// How long a lease lasts that nobody renews.
package enum LeaseTime {
  /// Five times what a worker may be silent, or what the environment variable `GODWIT_LEASE` says, in
  /// seconds.
  package static var seconds: Double {
    TimeVariable.lease.seconds ?? WorkerTimeout.seconds * 5
  }
}

/// A lease that this process renews for as long as the value lives. A process that is stopped renews
/// nothing.
final class HeldLease: Sendable {
  private let lease: Lease

  private static let held = Mutex<[ObjectIdentifier: Lease]>([:])
  private static let isKept = Atomic(false)

  /// - Throws: `DurabilityError.locked` when another process has it; `Errno` where the system allows
  ///   no further thread.
  init(acquiring path: FilePath, patienceSeconds: Double = 0) throws {
    lease = try Lease(
      acquiring: path, seconds: LeaseTime.seconds, patienceSeconds: patienceSeconds)
    if !Self.isKept.exchange(true, ordering: .relaxed) { try OwnThread.start { Self.keep() } }
    Self.held.withLock { $0[ObjectIdentifier(lease)] = lease }
  }

  deinit {
    _ = Self.held.withLock { $0.removeValue(forKey: ObjectIdentifier(lease)) }
  }

  var token: LeaseToken { lease.token }
  var isCurrent: Bool {
    get throws { try lease.isCurrent }
  }

  /// - Throws: `DurabilityError.locked` where somebody else has the work in hand by now: nothing of it
  ///   may be changed then.
  func requireCurrent() throws {
    guard try isCurrent else { throw DurabilityError.locked(FilePath(token.path)) }
  }

  /// Renews every lease five times in its length.
  private static func keep() {
    while true {
      _ = poll(nil, 0, Int32(max(20, min(60_000, LeaseTime.seconds * 1_000 / 5))))
      for lease in held.withLock({ Array($0.values) }) { lease.renew() }
    }
  }
}
