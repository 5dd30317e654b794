import GodwitDurableFiles
import GodwitSQLite
import GodwitWorker
import SystemPackage

/// Six numbers: four to sort by, in order, and two that go with them.
struct SortLine: BitwiseCopyable {
  var keys: (Int64, Int64, Int64, Int64)
  var values: (Int64, Int64)

  init(
    _ first: Int64, _ second: Int64, _ third: Int64 = 0, _ fourth: Int64 = 0,
    values: (Int64, Int64) = (0, 0)
  ) {
    keys = (first, second, third, fourth)
    self.values = values
  }

  @inline(__always)
  static func precedes(_ a: SortLine, _ b: SortLine) -> Bool {
    if a.keys.0 != b.keys.0 { return a.keys.0 < b.keys.0 }
    if a.keys.1 != b.keys.1 { return a.keys.1 < b.keys.1 }
    if a.keys.2 != b.keys.2 { return a.keys.2 < b.keys.2 }
    return a.keys.3 < b.keys.3
  }
}

/// Sorts lines in flat memory: what does not fit goes to a file, sorted piece by sorted piece, and
/// the pieces are merged.
///
/// Lines with equal keys come in no order that is told. The file has no name: it is gone with this
/// instance, or the process.
final class LineSort {
  private static let lineBytes = MemoryLayout<SortLine>.stride
  /// Lines of a piece that are read at once.
  private static let readLines = 256...4096

  private let folder: FilePath
  private let capacity: Int
  private var lines: [SortLine] = []
  private var file: FileDescriptor?
  /// Lines of each piece in the file.
  private var pieces: [Int] = []

  /// - Parameters:
  ///   - folder: Where the file goes, when there is one; nobody else may write there.
  ///   - memory: Bytes that lines may take before they go to the file.
  init(folder: FilePath, memory: Int) {
    self.folder = folder
    capacity = max(1, memory / Self.lineBytes)
  }

  deinit { try? file?.close() }

  @inline(__always)
  func append(_ line: SortLine) throws {
    if lines.count >= capacity { try spill() }
    lines.append(line)
  }

  /// Gives every line in order, and forgets them all.
  func forEach(_ body: (SortLine) throws -> Void) throws {
    if pieces.isEmpty {
      lines.sort(by: SortLine.precedes)
      let sorted = lines
      lines = []
      for line in sorted { try body(line) }
      return
    }
    try spill()
    lines = []
    try merge(body)
    pieces = []
  }

  // MARK: Pieces

  private var path: FilePath { folder.appending(".pairs.partial-0") }

  private func opened() throws -> FileDescriptor {
    if let file { return file }
    let path = path
    try DurableFile.removeIfPresent(path)
    let made = try RegularFile.open(path, .readWrite, options: [.create, .exclusiveCreate])
    file = made
    try DurableFile.removeIfPresent(path)
    return made
  }

  private func spill() throws {
    guard !lines.isEmpty else { return }
    lines.sort(by: SortLine.precedes)
    let file = try opened()
    let start = pieces.reduce(0, +) * Self.lineBytes
    try lines.withUnsafeBytes { bytes in
      _ = try attempt("pwrite") {
        try file.writeAll(toAbsoluteOffset: Int64(start), bytes)
      }
    }
    pieces.append(lines.count)
    lines.removeAll(keepingCapacity: true)
  }

  private func attempt<Result>(_ call: String, _ body: () throws -> Result) throws -> Result {
    do {
      return try body()
    } catch let errno as Errno {
      throw DurabilityError.failed(call: call, path: path, errno)
    }
  }

  private func merge(_ body: (SortLine) throws -> Void) throws {
    let file = try opened()
    let room = min(
      max(capacity / pieces.count, Self.readLines.lowerBound), Self.readLines.upperBound)
    var cursors: [PieceCursor] = []
    var start = 0
    for count in pieces {
      cursors.append(PieceCursor(start: start, count: count, room: room))
      start += count
    }
    func read(_ cursor: PieceCursor) throws -> Bool {
      try attempt("pread") { try cursor.read(file, lineBytes: Self.lineBytes) }
    }
    // A heap with the cursor of the least line at its root.
    var heap = try cursors.filter(read)
    func sink(_ place: Int) {
      var place = place
      while true {
        var least = place
        for child in [2 * place + 1, 2 * place + 2] where child < heap.count {
          if SortLine.precedes(heap[child].line, heap[least].line) { least = child }
        }
        if least == place { return }
        heap.swapAt(place, least)
        place = least
      }
    }
    for place in stride(from: heap.count / 2 - 1, through: 0, by: -1) { sink(place) }
    while let least = heap.first {
      try body(least.line)
      if !least.advance(), try !read(least) {
        let last = heap.removeLast()
        if heap.isEmpty { break }
        heap[0] = last
      }
      sink(0)
    }
  }
}

/// Reads one sorted piece of a file, some lines at a time.
private final class PieceCursor {
  private var next: Int
  private let end: Int
  private let lines: UnsafeMutableBufferPointer<SortLine>
  private var place = 0
  private var count = 0

  init(start: Int, count: Int, room: Int) {
    next = start
    end = start + count
    lines = .allocate(capacity: room)
    lines.initialize(repeating: SortLine(0, 0))
  }

  deinit { lines.deallocate() }

  var line: SortLine { lines[place] }

  func advance() -> Bool {
    place += 1
    return place < count
  }

  /// Reads on; false at the end.
  func read(_ file: FileDescriptor, lineBytes: Int) throws -> Bool {
    count = min(lines.count, end - next)
    place = 0
    let bytes = UnsafeMutableRawBufferPointer(
      rebasing: UnsafeMutableRawBufferPointer(lines)[
        ..<(count * lineBytes)])
    var done = 0
    while done < bytes.count {
      let read = try file.read(
        fromAbsoluteOffset: Int64(next * lineBytes + done),
        into: UnsafeMutableRawBufferPointer(rebasing: bytes[done...]))
      guard read > 0 else { throw Errno.ioError }
      done += read
    }
    next += count
    return count > 0
  }
}
