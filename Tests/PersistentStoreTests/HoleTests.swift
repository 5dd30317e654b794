import Foundation
import GodwitPersistentStore
import GodwitSQLite
import SystemPackage
import Testing

/// Files of a few pages that are said to be as large as a disk.
@Suite struct `A hole at the end of a store's files` {
  private let folder: TemporaryFolder
  private let store: SmallStore
  private let files: StoreFiles

  private static let size: Int64 = 8 << 40

  init() throws {
    folder = try TemporaryFolder()
    store = try SmallStore(
      SmallStore.library(), at: folder.path.appending("library.sqlite"),
      rows: SmallStore.libraryRows)
    files = StoreFiles(store.path)
  }

  /// - Returns: False where no such files can be made.
  private func write(_ bytes: [UInt8], to path: FilePath) throws -> Bool {
    try Data(bytes).write(to: URL(filePath: path.string))
    guard truncate(path.string, off_t(Self.size)) == 0 else {
      print("skipped: no such files here")
      return false
    }
    return true
  }

  @Test func `of a WAL is passed over`() throws {
    var header = [UInt8](repeating: 0, count: 32)
    header[10] = 0x10  // pages of 4096 bytes
    guard try write(header, to: files.wal) else { return }
    #expect(try CommittedLog.unreadTransactions(in: files.wal, behind: 0) == 0)
    let image = folder.path.appending("image")
    try FileManager.default.createDirectory(
      atPath: image.string, withIntermediateDirectories: true)
    // Of a hole there is nothing to be told but the frame that begins before it, and what is left behind the last.
    let frame: Int64 = 24 + 4096
    #expect(
      try StoreImage(of: files, in: image).unusedLogBytes == frame + (Self.size - 32) % frame)
  }

  @Test func `of a journal that counts no records is passed over`() throws {
    var header: [UInt8] = [0xD9, 0xD5, 0x05, 0xF9, 0x20, 0xA1, 0x63, 0xD7]
    for word in [.max, 7, 9, 512, 4096] as [UInt32] {
      header += [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> $0) }
    }
    guard try write(header, to: files.journal) else { return }
    #expect(try RollbackJournal.damage(of: files.journal) == nil)
  }

  @Test(arguments: [false, true])
  func `of a store is missing pages where the header counts it`(isCounted: Bool) throws {
    var bytes = [UInt8](try Data(contentsOf: URL(filePath: store.path.string)))
    let pages = UInt32(Self.size / 4096)
    if isCounted {
      bytes.replaceSubrange(
        28..<32, with: [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: pages >> $0) })
    }
    guard try write(bytes, to: store.path) else { return }
    do {
      #expect(try StoreSoundness.file(of: store.open()) == [])
      #expect(!isCounted)
    } catch StoreError.truncated(store.path, let expected, let found) {
      #expect(isCounted && expected == Self.size && found < 1 << 30)
    }
  }
}
