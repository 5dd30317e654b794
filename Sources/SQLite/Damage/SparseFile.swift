private import Glibc

/// Files that are said to be far larger than what is in them.
package enum SparseFile {
  /// A hole of more bytes than this, and of more than eight times what lies before it, ends a file: 1 GiB. SQLite
  /// leaves none, and a length or a journal that lies makes them as large as a disk.
  private static let largestHole: Int64 = 1 << 30

  // SEEK_DATA and SEEK_HOLE of lseek(2); glibc declares them for _GNU_SOURCE only.
  private static let (seekData, seekHole): (Int32, Int32) = (3, 4)

  /// Where what is in a file ends.
  ///
  /// - Parameter size: Of the file. What the file system cannot tell apart is all data.
  package static func end(of descriptor: Int32, size: Int64) -> Int64 {
    guard size > largestHole else { return size }
    var (offset, data): (Int64, Int64) = (0, 0)
    while offset < size {
      let start = Int64(lseek(descriptor, off_t(offset), seekData))
      if start < 0, errno != ENXIO { return size }
      // Nothing follows a hole at the end.
      let hole = (start < 0 ? size : start) - offset
      if hole > max(largestHole, 8 * data) { return offset }
      guard start >= 0 else { return size }
      let end = Int64(lseek(descriptor, off_t(start), seekHole))
      guard end > start else { return size }
      data += end - start
      offset = end
    }
    return size
  }
}
