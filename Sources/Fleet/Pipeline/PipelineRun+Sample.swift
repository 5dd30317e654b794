import Foundation
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitWorker
import SystemPackage

// A store that is migrated to a private file, to see how long that takes.
extension PipelineRun {
  /// In the process that coordinates the store, which is only read.
  ///
  /// - Parameter folder: Made, and removed again.
  func migrateSample(
    _ store: FoundStore, _ task: StoreTask, folder: FilePath, policies: PolicyRegistry,
    observe: @escaping @Sendable (RunEvent) -> Void
  ) async -> MigrationResult {
    TemporaryFolders.borrow(folder.folder)
    defer { try? DurableFile.removeTree(folder, surviving: .processCrash) }
    do {
      try DurableFile.makeFolder(folder, surviving: .processCrash)
    } catch {
      return MigrationResult(failing: store.path.string, with: error)
    }
    var request = request(for: store)
    request.output = folder.appending("sample.sqlite")
    return await StoreRun(
      request, directory: RunDirectory(folder.appending("run")),
      settings: settings(task, policies: policies) { _ in }, observe: observe
    ).run()
  }
}
