package import Dispatch
private import Glibc

/// A semaphore whose waits end by a clock that nobody sets. Those of Dispatch end on Linux when the clock shows
/// a time: an hour late where that is set back by an hour meanwhile.
package final class SteadySemaphore: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  /// Of signals that nobody has waited for; behind the mutex.
  private var count = 0

  package init() {
    pthread_mutex_init(mutex, nil)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    // The clock of `DispatchTime`.
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    pthread_cond_init(condition, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    pthread_cond_destroy(condition)
    pthread_mutex_destroy(mutex)
    condition.deallocate()
    mutex.deallocate()
  }

  package func signal() {
    pthread_mutex_lock(mutex)
    count += 1
    pthread_cond_signal(condition)
    pthread_mutex_unlock(mutex)
  }

  /// Waits for a signal, and takes it.
  ///
  /// - Parameter end: Until when; nil for as long as it takes.
  @discardableResult
  package func wait(timeout end: DispatchTime? = nil) -> DispatchTimeoutResult {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    while count == 0 {
      guard let nanoseconds = end?.uptimeNanoseconds else {
        pthread_cond_wait(condition, mutex)
        continue
      }
      var time = timespec(
        tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
      guard pthread_cond_timedwait(condition, mutex, &time) == 0 else { return .timedOut }
    }
    count -= 1
    return .success
  }
}
