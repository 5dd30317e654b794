import Foundation
import Testing

@testable import GodwitObjectModel

@Suite(.enabled(if: Corpus.isHere)) struct `Models of Xcode 3` {
  private static let folders: [String] = {
    let base = Corpus.root + "/corpus"
    let walker = FileManager.default.enumerator(atPath: base)
    var found: [String] = []
    while let path = walker?.nextObject() as? String {
      if path.hasSuffix(".xcdatamodel/elements") { found.append(base + "/" + path) }
    }
    return found.map { ($0 as NSString).deletingLastPathComponent }
  }()

  @Test func `are named as such, by folder and by file`() {
    #expect(Self.folders.count >= 3)
    for path in Self.folders {
      #expect(throws: ModelError.oldBinaryModel(path: path)) { try ModelFile.read(path) }
      let file = path + "/elements"
      #expect(throws: ModelError.oldBinaryModel(path: file)) { try ModelFile.read(file) }
    }
  }
}
