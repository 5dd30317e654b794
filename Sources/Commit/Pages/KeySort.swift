import GodwitSQLite

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// What is sorted in place of an entry.
struct SortItem: BitwiseCopyable {
  /// A piece of the entry's key; see ``KeyOrder``.
  var key: UInt64
  /// Where the entry lies, or the row's key. Ascends in the order in which rows were added.
  var place: Int64
}

func compareBytes(
  _ one: UnsafeRawPointer, _ other: UnsafeRawPointer, _ count: Int
) -> Int {
  Int(memcmp(one, other, count))
}

/// A growable array of items, and the room that sorting them takes.
final class SortItems {
  @exclusivity(unchecked) private(set) var base: UnsafeMutablePointer<SortItem>
  @exclusivity(unchecked) private(set) var count = 0
  @exclusivity(unchecked) private var capacity: Int

  init() {
    capacity = 1024
    base = .allocate(capacity: capacity)
  }

  deinit { base.deallocate() }
}

extension SortItems {
  @inline(__always)
  func append(_ item: SortItem) {
    if count == capacity { grow() }
    base[count] = item
    count &+= 1
  }

  private func grow() {
    let larger = UnsafeMutablePointer<SortItem>.allocate(capacity: capacity * 2)
    larger.update(from: base, count: count)
    base.deallocate()
    base = larger
    capacity *= 2
  }

  /// Forgets the items and keeps the memory.
  func removeAll() { count = 0 }

  /// Sorts a range by key and then by place, which ascends in it among equal keys.
  func sort(_ range: Range<Int>) {
    let part = base + range.lowerBound
    var isSorted = true
    for number in 1..<max(1, range.count) where part[number - 1].key > part[number].key {
      isSorted = false
      break
    }
    if isSorted { return }
    if range.count < 512 {
      SortItems.shellSort(part, range.count)
    } else {
      SortItems.radixSort(part, range.count)
    }
  }

  /// In place and without memory, which the library's sort takes for each of many short ranges. No two
  /// items are equal.
  private static func shellSort(_ items: UnsafeMutablePointer<SortItem>, _ count: Int) {
    // Source: M. Ciura, "Best Increments for the Average Case of Shellsort", 2001.
    var gap = 301
    while gap > 0 {
      for number in stride(from: gap, to: count, by: 1) {
        let item = items[number]
        var place = number
        while place >= gap {
          let before = items[place - gap]
          if before.key < item.key || (before.key == item.key && before.place < item.place) {
            break
          }
          items[place] = before
          place -= gap
        }
        items[place] = item
      }
      gap =
        switch gap {
        case 301: 132
        case 132: 57
        case 57: 23
        case 23: 10
        case 10: 4
        case 4: 1
        default: 0
        }
    }
  }

  /// Byte by byte from the lowest, which keeps the order of equal keys. Bytes that all keys share
  /// are passed over.
  private static func radixSort(_ items: UnsafeMutablePointer<SortItem>, _ count: Int) {
    let scratch = UnsafeMutablePointer<SortItem>.allocate(capacity: count)
    let counts = UnsafeMutablePointer<Int>.allocate(capacity: 8 * 256)
    defer {
      scratch.deallocate()
      counts.deallocate()
    }
    counts.initialize(repeating: 0, count: 8 * 256)
    for number in 0..<count {
      var key = items[number].key
      for byte in 0..<8 {
        counts[byte &<< 8 | Int(truncatingIfNeeded: key & 0xFF)] &+= 1
        key &>>= 8
      }
    }
    var (from, to) = (items, scratch)
    for byte in 0..<8 {
      let shift = UInt64(8 * byte)
      let places = counts + byte &<< 8
      if places[Int(truncatingIfNeeded: from[0].key &>> shift & 0xFF)] == count { continue }
      var place = 0
      for digit in 0..<256 {
        let size = places[digit]
        places[digit] = place
        place &+= size
      }
      for number in 0..<count {
        let item = from[number]
        let digit = Int(truncatingIfNeeded: item.key &>> shift & 0xFF)
        to[places[digit]] = item
        places[digit] &+= 1
      }
      swap(&from, &to)
    }
    if from != items { items.update(from: from, count: count) }
  }
}

/// Sorts the entries of an index that lie in memory.
struct EntrySort {
  /// A range of items whose entries agree in all that comes before a piece of a field.
  private struct Tie {
    var range: Range<Int>
    var field: Int
    var piece: Int
  }

  private let items: SortItems
  private let comparison: EntryComparison
  private let coarseNumbers: Bool
  /// Each behind its size, 4 bytes.
  private let records: UnsafeRawPointer

  /// - Parameters:
  ///   - items: With the first piece of the first field of each entry.
  ///   - records: Where the places of items lead to.
  init(
    _ items: SortItems, _ comparison: EntryComparison, coarseNumbers: Bool,
    records: UnsafeRawPointer
  ) {
    self.items = items
    self.comparison = comparison
    self.coarseNumbers = coarseNumbers
    self.records = records
  }
}

extension EntrySort {
  /// Ties are few, or deep, or many: a list of them takes the place of recursion.
  func sort() {
    var ties = [Tie(range: 0..<items.count, field: 0, piece: 0)]
    while let tie = ties.popLast() {
      if tie.field + tie.piece > 0 {
        if tie.range.count <= 12 {
          insertionSort(tie.range, from: tie.field)
          continue
        }
        load(tie)
      }
      items.sort(tie.range)
      collect(tie, into: &ties)
    }
  }

  @inline(__always)
  private func entry(_ place: Int64) -> UnsafeRawBufferPointer {
    let start = records + Int(place)
    return UnsafeRawBufferPointer(
      start: start + 4, count: Int(start.loadUnaligned(as: UInt32.self)))
  }

  private func load(_ tie: Tie) {
    let isDescending = comparison.index.fields[tie.field].isDescending
    let base = items.base
    for number in tie.range {
      let value = comparison.value(tie.field, of: entry(base[number].place))
      base[number].key = KeyOrder.key(of: value, piece: tie.piece, isDescending: isDescending)
    }
  }

  private func collect(_ tie: Tie, into ties: inout [Tie]) {
    let isDescending = comparison.index.fields[tie.field].isDescending
    let base = items.base
    var start = tie.range.lowerBound
    while start < tie.range.upperBound {
      let key = base[start].key
      var end = start + 1
      while end < tie.range.upperBound, base[end].key == key { end += 1 }
      if end - start > 1 {
        let range = start..<end
        if !KeyOrder.isLast(
          key, piece: tie.piece, isDescending: isDescending, coarseNumbers: coarseNumbers)
        {
          ties.append(Tie(range: range, field: tie.field, piece: tie.piece + 1))
        } else if tie.field + 1 < comparison.index.keyCount {
          ties.append(Tie(range: range, field: tie.field + 1, piece: 0))
        }
      }
      start = end
    }
  }

  private func insertionSort(_ range: Range<Int>, from field: Int) {
    let base = items.base
    for number in range.dropFirst() {
      let item = base[number]
      let record = entry(item.place)
      var place = number
      // Equal entries stay in the order of their rows.
      while place > range.lowerBound,
        comparison.compare(entry(base[place - 1].place), record, from: field) > 0
      {
        base[place] = base[place - 1]
        place -= 1
      }
      base[place] = item
    }
  }
}
