import SystemPackage

/// What the source objects of one entity mapping became: pairs of keys on disk.
///
/// A file is nothing but pairs of a source key and a destination key, eight bytes each,
/// little-endian, ascending by both: a mapping gives keys in the order of its source objects. So
/// one file answers in both directions. Memory is flat: one key of each block is kept, and some
/// blocks.
final class AssociationFile {
  private let file: NumberFile
  /// First source key and first destination key of each block.
  private var firsts: [[Int64]] = [[], []]

  var count: Int { file.count }

  init(_ path: FilePath) throws {
    file = try NumberFile(path, width: 2)
    for place in stride(from: 0, to: file.count, by: NumberFile.blockLines) {
      let pair = try file.read(lines: 1, at: place)
      firsts[0].append(pair[0])
      firsts[1].append(pair[1])
    }
  }

  /// The destination key of a source key.
  func destination(of source: Int64) throws -> Int64? { try find(source, side: 0) }

  /// The source key of a destination key.
  func source(of destination: Int64) throws -> Int64? { try find(destination, side: 1) }

  /// The pair at a place, from 0.
  func pair(at place: Int) throws -> (source: Int64, destination: Int64) {
    try file.withLine(place) { ($0[0], $0[1]) }
  }

  private func find(_ key: Int64, side: Int) throws -> Int64? {
    let starts = firsts[side]
    var (low, high) = (0, starts.count)
    while low < high {
      let middle = (low + high) / 2
      if starts[middle] <= key { low = middle + 1 } else { high = middle }
    }
    guard low > 0 else { return nil }
    let block = try file.block(low - 1)
    var (first, end) = (0, block.count / 2)
    while first < end {
      let middle = (first + end) / 2
      if block[middle * 2 + side] < key { first = middle + 1 } else { end = middle }
    }
    guard first < block.count / 2, block[first * 2 + side] == key else { return nil }
    return block[first * 2 + 1 - side]
  }
}

/// Writes an ``AssociationFile``, which is there when it is whole.
package struct AssociationWriter: ~Copyable {
  private var file: NumberWriter
  private var last: (Int64, Int64)?
  private let path: FilePath

  package init(_ path: FilePath) throws {
    self.path = path
    file = try NumberWriter(path)
  }

  package mutating func append(source: Int64, destination: Int64) throws {
    if let last, last.0 >= source || last.1 >= destination {
      throw StageError.association(path: path.string, reason: "its keys do not ascend")
    }
    last = (source, destination)
    try file.append(source, destination)
  }

  package mutating func finish() throws { try file.finish() }
}
