// Numbers on a page.
extension DamagedTreeReader {
  func head(of page: UInt32) -> Int { page == 1 ? DatabaseHeader.byteCount : 0 }

  func count(_ page: UnsafeRawPointer, _ number: UInt32) -> Int {
    be16(page, head(of: number) + 3)
  }

  func byte(_ page: UnsafeRawPointer, _ offset: Int) -> UInt8 {
    (page + offset).load(as: UInt8.self)
  }

  func be16(_ page: UnsafeRawPointer, _ offset: Int) -> Int {
    Int(UInt16(bigEndian: (page + offset).loadUnaligned(as: UInt16.self)))
  }

  func be32(_ page: UnsafeRawPointer, _ offset: Int) -> UInt32 {
    UInt32(bigEndian: (page + offset).loadUnaligned(as: UInt32.self))
  }
}
