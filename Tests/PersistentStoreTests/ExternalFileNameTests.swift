import Foundation
import GodwitPersistentStore
import SystemPackage
import Testing

@Suite struct `The name of a new file of external data` {
  private func name(_ subject: String, _ value: [UInt8]) -> String {
    value.withUnsafeBytes { ExternalFileName.name(of: Array(subject.utf8), $0) }
  }

  // Pieces of a digest have 1 MiB.
  @Test(arguments: [0, 1, 100_001, 1 << 20, (1 << 20) + 1])
  func `fits the bytes that were written and no others`(count: Int) throws {
    let folder = try TemporaryFolder()
    let value = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 31 >> 3) }
    let own = name("a", value)
    #expect(
      UUID(uuidString: own)?.uuidString == own && own == name("a", value) && own != name("b", value)
    )
    let path = folder.path.appending(own)
    let url = URL(fileURLWithPath: path.string)
    try Data(value).write(to: url)
    #expect(try ExternalFileName.fits(path))
    #expect(try ExternalFileName.name(of: Array("a".utf8), copying: path) == own)
    var others = [value + [0]]
    if count > 0 {
      others.append(value.dropLast())
      others.append([value[0] ^ 1] + value.dropFirst())
    }
    for other in others {
      try Data(other).write(to: url)
      #expect(try !ExternalFileName.fits(path))
    }
    // The same bytes, written for another row.
    let exchanged = folder.path.appending(name("b", value + [1]))
    try Data(value).write(to: URL(fileURLWithPath: exchanged.string))
    #expect(try !ExternalFileName.fits(exchanged))
  }

  @Test(arguments: ["00000000-0000-4000-8000-00000000000C", "note", ""])
  func `is none that others give`(other: String) throws {
    let folder = try TemporaryFolder()
    let path = folder.path.appending("x" + other)
    try Data("value".utf8).write(to: URL(fileURLWithPath: path.string))
    #expect(try !ExternalFileName.fits(path))
  }
}
