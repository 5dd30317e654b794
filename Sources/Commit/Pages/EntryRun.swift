import GodwitDurableFiles
import GodwitSQLite
import SystemPackage

/// A sorted run of index entries in a file without a name.
///
/// The file is gone when the run is, or the process: nobody has to clean up.
final class EntryRun {
  private static let pieceSize = 128 << 10

  private let path: FilePath
  private let file: FileDescriptor
  private var buffer = RawBuffer(capacity: EntryRun.pieceSize)
  private var written: Int64 = 0
  private var readPlace: Int64 = 0
  private var start = 0

  init(in folder: FilePath) throws {
    // One process assembles in a run directory, under its lock.
    path = folder.appending(".index-entries.partial-0")
    let path = path
    try DurableFile.removeIfPresent(path)
    file = try RegularFile.open(path, .readWrite, options: [.create, .exclusiveCreate])
    do {
      try DurableFile.removeIfPresent(path)
    } catch {
      try? file.close()
      throw error
    }
  }

  deinit { try? file.close() }
}

extension EntryRun {
  func append(_ entry: UnsafeRawBufferPointer) throws {
    buffer.append(number: UInt32(truncatingIfNeeded: entry.count))
    buffer.append(entry)
    if buffer.count >= EntryRun.pieceSize { try flush() }
  }

  private func flush() throws {
    _ = try failing("pwrite", path) {
      try file.writeAll(toAbsoluteOffset: written, buffer.bytes)
    }
    written += Int64(buffer.count)
    buffer.removeAll()
  }

  /// Ends the writing. The memory is given back until the run is read.
  func finish() throws {
    try flush()
    buffer = RawBuffer(capacity: 16)
  }

  /// The next entry, valid until the next call; `nil` at the end.
  func next() throws -> UnsafeRawBufferPointer? {
    guard try fill(4) else { return nil }
    let size = Int((buffer.base + start).loadUnaligned(as: UInt32.self))
    guard try fill(4 + size) else {
      throw DurabilityError.failed(call: "pread", path: path, .ioError)
    }
    let entry = UnsafeRawBufferPointer(start: buffer.base + start + 4, count: size)
    start += 4 + size
    return entry
  }

  /// Has so many bytes in memory; `false` when the file ends with the ones before.
  private func fill(_ count: Int) throws -> Bool {
    let unread = buffer.count - start
    if unread >= count { return true }
    if unread == 0, readPlace == written { return false }
    let size = min(Int64(max(EntryRun.pieceSize, count) - unread), written - readPlace)
    guard unread + Int(size) >= count else { return false }
    var next = RawBuffer(capacity: unread + Int(size))
    next.append(UnsafeRawBufferPointer(start: buffer.base + start, count: unread))
    let place = next.appendUninitialized(Int(size))
    var done = 0
    while done < Int(size) {
      let part = UnsafeMutableRawBufferPointer(start: place + done, count: Int(size) - done)
      let offset = readPlace + Int64(done)
      let read = try failing("pread", path) {
        try file.read(fromAbsoluteOffset: offset, into: part)
      }
      guard read > 0 else { return false }
      done += read
    }
    readPlace += size
    buffer = next
    start = 0
    return true
  }
}

/// Merges sorted runs. Of equal entries those of the earlier run come first: its rows did.
struct EntryMerge {
  private let runs: [EntryRun]
  private let comparison: EntryComparison

  init(_ runs: [EntryRun], _ comparison: EntryComparison) {
    self.runs = runs
    self.comparison = comparison
  }
}

extension EntryMerge {
  private struct Head {
    var key: UInt64
    var run: Int
    var entry: UnsafeRawBufferPointer
  }

  func forEach(_ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    var heap: [Head] = []
    for run in runs.indices {
      if let head = try head(of: run) { heap.append(head) }
    }
    for place in heap.indices.reversed() { sink(&heap, place) }
    while let first = heap.first {
      try body(first.entry)
      if let next = try head(of: first.run) {
        heap[0] = next
      } else {
        heap[0] = heap[heap.count - 1]
        heap.removeLast()
      }
      sink(&heap, 0)
    }
  }

  private func head(of run: Int) throws -> Head? {
    guard let entry = try runs[run].next() else { return nil }
    let key = KeyOrder.key(
      of: comparison.value(0, of: entry), piece: 0,
      isDescending: comparison.index.fields[0].isDescending)
    return Head(key: key, run: run, entry: entry)
  }

  private func precedes(_ one: Head, _ other: Head) -> Bool {
    if one.key != other.key { return one.key < other.key }
    let order = comparison.compare(one.entry, other.entry)
    return order != 0 ? order < 0 : one.run < other.run
  }

  private func sink(_ heap: inout [Head], _ place: Int) {
    var place = place
    while true {
      var least = place
      for child in [2 * place + 1, 2 * place + 2] where child < heap.count {
        if precedes(heap[child], heap[least]) { least = child }
      }
      if least == place { return }
      heap.swapAt(place, least)
      place = least
    }
  }
}
