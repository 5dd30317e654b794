private import Glibc
private import SystemPackage

/// Threads of our own, whose failure to start is an error: Foundation's never begin to run then,
/// and whoever waits for their work waits for ever.
package enum OwnThread {
  private final class Body {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  /// Runs the body on a new thread that nobody waits for.
  ///
  /// - Throws: `Errno`, `EAGAIN` where the system allows no further thread.
  package static func start(
    stackBytes: Int = 1 << 20, _ body: @escaping @Sendable () -> Void
  ) throws {
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    defer { pthread_attr_destroy(&attributes) }
    pthread_attr_setstacksize(&attributes, stackBytes)
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    let body = Unmanaged.passRetained(Body(body))
    var thread = pthread_t()
    let code = pthread_create(
      &thread, &attributes,
      { context in
        guard let context else { return nil }
        Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
        return nil
      }, body.toOpaque())
    guard code != 0 else { return }
    body.release()
    throw Errno(rawValue: code)
  }
}
