import GodwitCheckpoints
import GodwitWorker
import SystemPackage

/// Leaves the stages over a store's rows to others, and has its own workers perform the rest.
///
/// The process that coordinates the store ends at the first stage that has units without checkpoints,
/// and says which. Others perform them, as bundles of an array. Then the store is resumed, as after any
/// interruption: on whichever machine, by its run directory alone.
actor HandingOut: StageWorkers {
  private let workers: WorkerPool
  private let store: FilePath
  private let directory: FilePath

  init(_ workers: WorkerPool, store: FilePath, directory: FilePath) {
    (self.workers, self.store, self.directory) = (workers, store, directory)
  }

  func perform(_ tasks: [WorkerTask]) async -> AsyncThrowingStream<FinishedTask, any Error> {
    guard let stage = tasks.first?.stage, tasks.count > 1, stage.isOverRows else {
      return await workers.perform(tasks)
    }
    let handedOut = HandedOut(
      work: .init(store: store.string, stage: stage, runDirectory: directory.string),
      units: tasks.map(\.unit))
    return AsyncThrowingStream { $0.finish(throwing: StageHandedOut(handedOut: handedOut)) }
  }

  func open(assembled path: FilePath) async { await workers.open(assembled: path) }
  var peakRSS: Int64 { get async { await workers.peakRSS } }
}

extension Stage {
  /// Whether it reads the source's rows and writes what the destination is made of.
  fileprivate var isOverRows: Bool {
    switch self {
    case .rows, .copy, .link, .validate: true
    case .audit, .verify, .soundness: false
    }
  }
}

/// The store goes on when others have performed a stage.
struct StageHandedOut: Error, CustomStringConvertible {
  var handedOut: HandedOut

  var description: String {
    "\(handedOut.units.count) units of the stage \(handedOut.work.stage) are performed on other "
      + "machines."
  }
}
