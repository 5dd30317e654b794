import GodwitPersistentStore
import SystemPackage
import Testing

@testable import GodwitFleet

@Suite struct `The name of a snapshot` {
  @Test(arguments: [("/r/a.sqlite", "/r/a.store"), ("/r/a", "/r/a.sqlite")])
  func `gives it a folder of external data that is no store's and no other snapshot's`(
    one: String, other: String
  ) {
    let stores = [FilePath(one), FilePath(other)]
    #expect(StoreFiles(stores[0]).supportFolder == StoreFiles(stores[1]).supportFolder)
    let snapshots = stores.map { PipelineRun.snapshotPath(of: $0, run: "R1") }
    let folders = Set((snapshots + [stores[0]]).map { StoreFiles($0).supportFolder })
    #expect(folders.count == 3)
  }
}
