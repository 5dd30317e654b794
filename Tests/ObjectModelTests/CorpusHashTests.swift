import Foundation
import Testing

@testable import GodwitObjectModel

@Suite(.enabled(if: Corpus.isHere)) struct `Models of real stores` {
  @Test(arguments: Corpus.storeFolders)
  func `have the hashes, digest and checksum that the store recorded`(folder: String) throws {
    let metadata = try Corpus.json(folder + "/metadata.json")
    let recorded = Corpus.recordedHashes(metadata)
    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
    for name in names where name == "contents.xml" || name == "modelcache.mom" {
      let model = try ModelFile.model(at: folder + "/" + name)
      let hierarchy = try EntityHierarchy(model)
      #expect(hierarchy.versionHashes == recorded, "\(name)")
    }
    if let digest = metadata["NSStoreModelVersionHashesDigest"] as? String {
      #expect(StoreDigest.hashesDigest(of: recorded) == digest)
    }
    if let checksum = metadata["NSStoreModelVersionChecksumKey"] as? String {
      #expect(StoreDigest.versionChecksum(of: recorded) == checksum)
    }
  }

  @Test func `are all there`() {
    #expect(Corpus.storeFolders.count == 40)
    #expect(Corpus.files.count > 300)
  }

  @Test(arguments: [
    ("Haimanu__MobilApp__DVIA_v2.momd", 1), ("Haimanu__MobilApp__Model.momd", 1),
    ("alemar11__CoreDataPlus__SampleModel.momd", 3), ("sethhenry__Delta__root", 1),
    ("wireapp__wire-ios-sync-engine__WireSyncEngine124.momd", 1),
  ])
  func `of compiled bundles agree with what Xcode recorded`(bundle: String, count: Int) throws {
    let versions = try ModelFile.read(Corpus.models + "/" + bundle)
    #expect(versions.count == count)
    #expect(versions.filter(\.isCurrent).count == 1)
    for version in versions {
      let hierarchy = try EntityHierarchy(version.model)
      #expect(version.disagreements(with: hierarchy) == [], "\(version.name)")
      if let checksum = version.recordedChecksum {
        #expect(hierarchy.versionChecksum == checksum)
      }
    }
  }

  @Test func `can all be read`() {
    var failures: [String] = []
    for file in Corpus.files {
      do { _ = try EntityHierarchy(ModelFile.model(at: file)) } catch {
        failures.append("\(file): \(error)")
      }
    }
    #expect(failures == [])
  }
}
