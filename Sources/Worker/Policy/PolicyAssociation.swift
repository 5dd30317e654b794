import GodwitCheckpoints
import GodwitDurableFiles
import GodwitPlanning
import GodwitSQLite
import SystemPackage

/// What a policy's mapping associated: any number of source objects with any number of destination
/// objects, on disk.
///
/// Two files, one for each direction. A file is nothing but lines of four numbers of eight bytes,
/// little-endian: entity and key of the object that is asked for, entity and key of the other. It
/// ascends by the first two; lines of one object stand in the order of the associations.
package final class PolicyAssociation {
  static func paths(_ mapping: Int, _ run: RunDirectory) -> (forward: FilePath, reverse: FilePath) {
    (
      run.associations.appending("\(mapping).forward"),
      run.associations.appending("\(mapping).reverse")
    )
  }

  /// One direction: the file, and what the first line of each block asks for.
  private struct Direction {
    let file: NumberFile
    var entities: [Int64] = []
    var keys: [Int64] = []

    init(_ path: FilePath) throws {
      file = try NumberFile(path, width: 4)
      for place in stride(from: 0, to: file.count, by: NumberFile.blockLines) {
        let line = try file.read(lines: 1, at: place)
        entities.append(line[0])
        keys.append(line[1])
      }
    }
  }

  private let forward: Direction
  private let reverse: Direction

  package init(_ mapping: Int, _ run: RunDirectory) throws {
    let paths = Self.paths(mapping, run)
    forward = try Direction(paths.forward)
    reverse = try Direction(paths.reverse)
  }

  /// Calls the body with the objects that a source object became: entity and key.
  func forEachDestination(
    of entity: Int64, _ key: Int64, _ body: (Int64, Int64) throws -> Void
  ) throws {
    try Self.find(forward, entity, key, body)
  }

  /// Calls the body with the objects that a destination object was made of.
  func forEachSource(
    of entity: Int64, _ key: Int64, _ body: (Int64, Int64) throws -> Void
  ) throws {
    try Self.find(reverse, entity, key, body)
  }

  /// Calls the body with every pair, by source object: entity, key, entity, key.
  package func forEach(_ body: (Int64, Int64, Int64, Int64) throws -> Void) throws {
    for place in 0..<forward.file.count {
      try forward.file.withLine(place) { try body($0[0], $0[1], $0[2], $0[3]) }
    }
  }

  private static func find(
    _ direction: Direction, _ entity: Int64, _ key: Int64,
    _ body: (Int64, Int64) throws -> Void
  ) throws {
    let file = direction.file
    // The lines of an object may begin in the block before the first that begins with it: blocks
    // are found in memory, so that a look-up reads one of them, seldom two.
    var (first, end) = (0, direction.keys.count)
    while first < end {
      let middle = (first + end) / 2
      if (direction.entities[middle], direction.keys[middle]) < (entity, key) {
        first = middle + 1
      } else {
        end = middle
      }
    }
    var low = max(0, first - 1) * NumberFile.blockLines
    var high = min(file.count, first * NumberFile.blockLines)
    while low < high {
      let middle = (low + high) / 2
      let isBefore = try file.withLine(middle) { ($0[0], $0[1]) < (entity, key) }
      if isBefore { low = middle + 1 } else { high = middle }
    }
    while low < file.count {
      let other: (Int64, Int64)? = try file.withLine(low) {
        $0[0] == entity && $0[1] == key ? ($0[2], $0[3]) : nil
      }
      guard let other else { return }
      try body(other.0, other.1)
      low += 1
    }
  }
}

/// Writes the two files of a ``PolicyAssociation``.
///
/// A policy that takes its source objects as they come and makes one of each has written its pairs
/// in both orders already; others are sorted by SQLite, on disk. A pair that was associated several
/// times has one line.
package struct PolicyAssociationWriter {
  private let mapping: Int
  private let run: RunDirectory

  package init(_ mapping: Int, _ run: RunDirectory) {
    self.mapping = mapping
    self.run = run
  }

  /// - Parameter forEach: Calls its argument with every pair, with final keys, in the order of the
  ///   associations; it is called up to four times.
  package func write(_ forEach: ((PolicyPair) throws -> Void) throws -> Void) throws {
    let paths = PolicyAssociation.paths(mapping, run)
    try write(paths.forward, isReverse: false, forEach)
    try write(paths.reverse, isReverse: true, forEach)
  }

  private func write(
    _ path: FilePath, isReverse: Bool, _ forEach: ((PolicyPair) throws -> Void) throws -> Void
  ) throws {
    var isSorted = true
    var last: (Int64, Int64) = (.min, .min)
    var others = OtherObjects()
    try forEach { pair in
      guard isSorted else { return }
      let line = pair.line(isReverse: isReverse)
      if (line[0], line[1]) < last { isSorted = false }
      if (line[0], line[1]) != last { others.removeAll() }
      if !others.insert(line[2], line[3]) { isSorted = false }
      last = (line[0], line[1])
    }
    var writer = try NumberWriter(path)
    if isSorted {
      try forEach { try writer.append($0.line(isReverse: isReverse)) }
    } else {
      let sorted = try PairSorter(FilePath(path.string + ".sorting"))
      try forEach { try sorted.insert($0.line(isReverse: isReverse)) }
      try sorted.take(into: &writer)
    }
    try writer.finish()
  }
}

extension PolicyPair {
  fileprivate func line(isReverse: Bool) -> [Int64] {
    isReverse
      ? [destinationEntity, destination, sourceEntity, source]
      : [sourceEntity, source, destinationEntity, destination]
  }
}

/// What one object is associated with, as far as it shows in little memory that no pair comes again.
private struct OtherObjects {
  /// More of them are looked at by whether they ascend.
  private static let mostKept = 64

  private var kept: [(Int64, Int64)] = []
  private var count = 0
  private var highest: (Int64, Int64) = (.min, .min)

  mutating func removeAll() {
    kept.removeAll(keepingCapacity: true)
    count = 0
    highest = (.min, .min)
  }

  /// - Returns: False for one that is there already, or that may be.
  mutating func insert(_ entity: Int64, _ key: Int64) -> Bool {
    if (entity, key) > highest {
      highest = (entity, key)
    } else if count > Self.mostKept || kept.contains(where: { $0 == (entity, key) }) {
      return false
    }
    count += 1
    if kept.count < Self.mostKept { kept.append((entity, key)) }
    return true
  }
}

/// Lines of four numbers, sorted by the first two and then as they came, each once.
private struct PairSorter {
  private let path: FilePath
  private let file: Connection
  private let insertion: Statement

  init(_ path: FilePath) throws {
    self.path = path
    try DurableFile.removeIfPresent(path)
    file = try Connection(path: path.string, mode: .create)
    try file.execute(
      """
      PRAGMA journal_mode = OFF;
      PRAGMA synchronous = OFF;
      PRAGMA cache_size = -16384;
      PRAGMA temp_store = FILE;
      BEGIN;
      CREATE TABLE pairs (place INTEGER PRIMARY KEY, a INTEGER, b INTEGER, c INTEGER, d INTEGER);
      """)
    insertion = try file.prepare("INSERT INTO pairs (a, b, c, d) VALUES (?1, ?2, ?3, ?4)")
  }

  func insert(_ line: [Int64]) throws {
    for (place, number) in line.enumerated() { try insertion.bind(Int32(place + 1), number) }
    try insertion.run()
  }

  /// Gives the lines, and removes the file.
  func take(into writer: inout NumberWriter) throws {
    let sorted = try file.prepare(
      """
      SELECT a, b, c, d
        FROM pairs
       GROUP BY a, b, c, d
       ORDER BY a, b, min(place)
      """)
    while try sorted.step() { try writer.append((0..<4).map { sorted.int64($0) }) }
    sorted.reset()
    try file.execute("COMMIT")
    try DurableFile.removeIfPresent(path)
  }
}
