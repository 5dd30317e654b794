import GodwitWorker
import SystemPackage

/// Who performs the tasks of a store's stages: processes of their own, or a thread of this process.
protocol StageWorkers: Sendable {
  /// The stream ends after the last answer, or throws at the first task that fails for good; the
  /// others are then no longer started.
  func perform(_ tasks: [WorkerTask]) async -> AsyncThrowingStream<FinishedTask, any Error>

  /// Tells, before the tasks that read it, where the assembled store lies.
  func open(assembled path: FilePath) async

  /// The most memory that any of them has held, in bytes.
  var peakRSS: Int64 { get async }
}
