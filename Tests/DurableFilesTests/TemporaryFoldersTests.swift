import Foundation
import GodwitDurableFiles
import SystemPackage
import Testing

@Suite struct `Folders for temporary files` {
  /// As a thread would that was about to clone a store while the process is being stopped.
  @Test func `do not come back once a stop has removed them`() async {
    await #expect(processExitsWith: .success) {
      let parent = FilePath(FileManager.default.temporaryDirectory.path)
        .appending("godwit-\(UUID().uuidString)")
      let (folder, other) = (parent.appending("of-a-stop"), parent.appending("other"))
      TemporaryFolders.add(folder)
      try DurableFile.makeFolder(folder.appending("clones"))
      TemporaryFolders.removeAll()
      #expect(throws: DurabilityError.failed(call: "mkdir", path: folder, .canceled)) {
        try DurableFile.makeFolder(folder.appending("clones"))
      }
      #expect(try !DurableFile.exists(folder))
      try DurableFile.makeFolder(other)
      try DurableFile.removeTree(parent)
    }
  }
}
