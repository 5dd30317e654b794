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

  /// As a process that migrates a store privately would, whose coordinator is stopped meanwhile.
  @Test(arguments: ["", "0", "0/run"])
  func `are not made again by a process that another one lent them to`(inner: String) async {
    await #expect(processExitsWith: .success) { [inner] in
      let parent = FilePath(FileManager.default.temporaryDirectory.path)
        .appending("godwit-\(UUID().uuidString)")
      let (lent, beside) = (parent.appending("lent"), parent.appending("lent beside"))
      try DurableFile.makeFolder(lent)
      TemporaryFolders.borrow(lent)
      let folder = inner.isEmpty ? lent : lent.appending(inner)
      try DurableFile.makeFolder(folder)
      #expect(try DurableFile.exists(folder))
      try DurableFile.removeTree(parent)
      #expect(throws: DurabilityError.failed(call: "mkdir", path: parent, .canceled)) {
        try DurableFile.makeFolder(folder)
      }
      #expect(try !DurableFile.exists(parent))
      try FileManager.default.createDirectory(
        atPath: parent.string, withIntermediateDirectories: false)
      try DurableFile.makeFolder(beside)
      #expect(throws: DurabilityError.failed(call: "mkdir", path: lent, .canceled)) {
        try DurableFile.makeFolder(folder)
      }
      try DurableFile.removeTree(parent)
    }
  }
}
