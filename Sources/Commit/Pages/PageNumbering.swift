/// Which pages of a store file may hold data.
///
/// Stores have `auto_vacuum` on, so that every 820th page maps the 819 behind it to their parents;
/// and the page at byte 1 GiB is never used, for SQLite locks its bytes.
///
/// Source: https://sqlite.org/fileformat2.html §1.3 (the lock-byte page) and §1.8 (pointer maps).
struct PageNumbering {
  static let pageSize = 4096
  /// Bytes of an entry in a pointer map: a type, and the parent's number, big-endian.
  static let entrySize = 5

  /// Another one only in tests.
  var lockBytePage: UInt32 = 0x4000_0000 / UInt32(PageNumbering.pageSize) + 1
}

extension PageNumbering {
  private static var pagesPerMap: UInt32 { UInt32(pageSize / entrySize) + 1 }

  /// Which of the file's pointer maps, from 0, is that of a page from 2 on.
  func mapNumber(of page: UInt32) -> Int { Int((page - 2) / PageNumbering.pagesPerMap) }

  /// The page of a pointer map. Where the lock-byte page would be one, the next page is.
  func page(ofMap number: Int) -> UInt32 {
    let page = UInt32(truncatingIfNeeded: number) * PageNumbering.pagesPerMap + 2
    return page == lockBytePage ? page + 1 : page
  }

  func isMap(_ page: UInt32) -> Bool {
    page >= 2 && self.page(ofMap: mapNumber(of: page)) == page
  }

  /// The next page that may hold data.
  func successor(of page: UInt32) -> UInt32 {
    var next = page + 1
    while next == lockBytePage || isMap(next) { next += 1 }
    return next
  }
}
