import GodwitDurableFiles
import GodwitSQLite
import SystemPackage

/// A sorted run of index entries in a file without a name.
///
/// The file is gone when the run is, or the process: nobody has to clean up. Either all entries are
/// items alone, 16 bytes each, or each is its key (8 bytes), the size of its record (4) and the record.
final class EntryRun {
  static let pieceSize = 256 << 10
  static let headSize = 12

  let hasRecords: Bool
  private let path: FilePath
  private let file: FileDescriptor
  @exclusivity(unchecked) private var written: Int64 = 0
  @exclusivity(unchecked) private var readPlace: Int64 = 0
  @exclusivity(unchecked) private var buffer: UnsafeMutableRawBufferPointer
  @exclusivity(unchecked) private var start = 0
  @exclusivity(unchecked) private var end = 0
  /// The entry in hand.
  @exclusivity(unchecked) private(set) var key: UInt64 = 0
  @exclusivity(unchecked) private(set) var place: Int64 = 0
  @exclusivity(unchecked) private(set) var record = UnsafeRawBufferPointer(start: nil, count: 0)

  init(in folder: FilePath, hasRecords: Bool) throws {
    self.hasRecords = hasRecords
    // One process assembles in a run directory, under its lock.
    path = folder.appending(".index-entries.partial-0")
    let path = path
    try DurableFile.removeIfPresent(path)
    file = try RegularFile.open(path, .readWrite, options: [.create, .exclusiveCreate])
    buffer = .init(start: nil, count: 0)
    do {
      try DurableFile.removeIfPresent(path)
    } catch {
      try? file.close()
      throw error
    }
  }

  deinit {
    try? file.close()
    buffer.deallocate()
  }
}

extension EntryRun {
  /// Appends whole entries.
  func write(_ bytes: UnsafeRawBufferPointer) throws {
    guard !bytes.isEmpty else { return }
    _ = try failing("pwrite", path) { try file.writeAll(toAbsoluteOffset: written, bytes) }
    written += Int64(bytes.count)
  }

  /// Moves to the next entry, and gives false at the end. Its record is valid until the next call.
  func next() throws -> Bool {
    guard hasRecords else {
      guard try fill(16) else { return false }
      key = buffer.loadUnaligned(fromByteOffset: start, as: UInt64.self)
      place = buffer.loadUnaligned(fromByteOffset: start + 8, as: Int64.self)
      start += 16
      return true
    }
    guard try fill(Self.headSize) else { return false }
    let size = Int(buffer.loadUnaligned(fromByteOffset: start + 8, as: UInt32.self))
    guard try fill(Self.headSize + size) else {
      throw DurabilityError.failed(call: "pread", path: path, .ioError)
    }
    key = buffer.loadUnaligned(fromByteOffset: start, as: UInt64.self)
    record = UnsafeRawBufferPointer(
      rebasing: buffer[(start + Self.headSize)..<(start + Self.headSize + size)])
    start += Self.headSize + size
    return true
  }

  /// Has so many bytes in memory; false when the file ends with the ones before.
  @inline(__always)
  private func fill(_ count: Int) throws -> Bool { end - start >= count ? true : try read(count) }

  @inline(never)
  private func read(_ count: Int) throws -> Bool {
    let unread = end - start
    if unread == 0, readPlace == written { return false }
    let size = max(EntryRun.pieceSize, count)
    let next =
      size <= buffer.count
      ? buffer : UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
    if unread > 0 {
      UnsafeMutableRawBufferPointer(rebasing: next[..<unread])
        .copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[start..<end]))
    }
    if next.baseAddress != buffer.baseAddress {
      buffer.deallocate()
      buffer = next
    }
    (start, end) = (0, unread)
    while end < count {
      let part = UnsafeMutableRawBufferPointer(
        rebasing: buffer[end..<end + min(buffer.count - end, Int(clamping: written - readPlace))])
      let offset = readPlace
      let read = try failing("pread", path) {
        try file.read(fromAbsoluteOffset: offset, into: part)
      }
      guard read > 0 else { return false }
      readPlace += Int64(read)
      end += read
    }
    return true
  }
}

/// Merges sorted runs. Of equal entries those of the earlier run come first: its rows did.
struct EntryMerge: ~Copyable {
  private struct Head {
    var key: UInt64
    var run: Int
  }

  /// Held by the caller. Arrays cost a reference count and a check each time, and this is done for each
  /// entry.
  private let runs: UnsafeMutablePointer<Unmanaged<EntryRun>>
  private let heap: UnsafeMutablePointer<Head>
  private let runCount: Int
  private let comparison: EntryComparison
  private let isOfItems: Bool

  init(_ runs: [EntryRun], _ comparison: EntryComparison) {
    runCount = runs.count
    self.runs = .allocate(capacity: max(1, runs.count))
    for (number, run) in runs.enumerated() {
      (self.runs + number).initialize(to: .passUnretained(run))
    }
    heap = .allocate(capacity: max(1, runs.count))
    self.comparison = comparison
    isOfItems = runs.allSatisfy { !$0.hasRecords }
  }

  deinit {
    runs.deallocate()
    heap.deallocate()
  }
}

extension EntryMerge {
  /// Gives each run in turn whose entry in hand is the next one.
  @inline(__always)
  func forEach(_ body: (EntryRun) throws -> Void) throws {
    var count = 0
    for number in 0..<runCount where try runs[number]._withUnsafeGuaranteedRef({ try $0.next() }) {
      heap[count] = Head(
        key: runs[number]._withUnsafeGuaranteedRef { $0.key }, run: number)
      count += 1
    }
    for place in (0..<count).reversed() { sink(place, count) }
    while count > 0 {
      let isMore = try runs[heap[0].run]._withUnsafeGuaranteedRef { run in
        try body(run)
        guard try run.next() else { return false }
        heap[0].key = run.key
        return true
      }
      if !isMore {
        count -= 1
        heap[0] = heap[count]
      }
      sink(0, count)
    }
  }

  @inline(__always)
  private func precedes(_ one: Head, _ other: Head) -> Bool {
    if one.key != other.key { return one.key < other.key }
    // An item's key says all of its value.
    if isOfItems { return one.run < other.run }
    let order = runs[one.run]._withUnsafeGuaranteedRef { left in
      runs[other.run]._withUnsafeGuaranteedRef { right in
        comparison.compare(left.record, right.record)
      }
    }
    return order != 0 ? order < 0 : one.run < other.run
  }

  private func sink(_ start: Int, _ count: Int) {
    var place = start
    while true {
      var least = place
      let child = 2 * place + 1
      if child < count, precedes(heap[child], heap[least]) { least = child }
      if child + 1 < count, precedes(heap[child + 1], heap[least]) { least = child + 1 }
      if least == place { return }
      (heap[place], heap[least]) = (heap[least], heap[place])
      place = least
    }
  }
}
