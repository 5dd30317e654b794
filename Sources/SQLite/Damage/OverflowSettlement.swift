/// Whose the overflow pages are that several records lead to.
package struct OverflowSettlement {
  /// Those pages.
  var pages: Set<UInt32> = []
  /// Who has them: the record that evidence supports, or several where nothing tells.
  var owners: Set<OverflowChain> = []
  /// Those of the owners of which nothing tells whether they are right.
  var doubtful: Set<OverflowChain> = []
}

/// Decides whose the overflow pages are that several records lead to: by where their chains end, and by what the
/// pointer maps say of the places where they meet.
///
/// Chains that have met go on together, so that each page is looked at once, however many records lead there.
private struct ChainWalk {
  /// More records than that share no page: whose it is would be anyone's guess, and each would be read.
  private static let mostSharers = 8

  let file: DamagedFile
  private var chains: [OverflowChain]
  private var numbers: [OverflowChain: Int]
  /// Which chain came to a page first, and from where.
  private var visits: [UInt32: (chain: Int, last: UInt32)] = [:]
  private var nexts: [UInt32: UInt32] = [:]
  /// How many pages there are from a page to the end of its chain; none where that does not end.
  private var rests: [UInt32: Int] = [:]
  /// Chains that met another one are of its group: the number of one of them.
  private var groups: [Int]
  /// Where chains met: which, and from where each came.
  private var meetings: [UInt32: [(chain: Int, last: UInt32)]] = [:]
  private var settlement = OverflowSettlement()

  init(_ file: DamagedFile) {
    self.file = file
    // In an order that does not change from run to run.
    chains = file.claims.contested.sorted { ($0.page, $0.start) < ($1.page, $1.start) }
    numbers = Dictionary(uniqueKeysWithValues: zip(chains, chains.indices))
    groups = Array(chains.indices)
  }

  mutating func settled() -> OverflowSettlement {
    var number = 0
    while number < chains.count {
      walk(number)
      number += 1
    }
    let refuted = refuted()
    let members = Dictionary(grouping: chains.indices, by: group)
    for members in members.values where members.count > 1 {
      var owners = members
      let ending = owners.filter { chain in
        head(of: chain).map { rests[$0.page] == $0.count } ?? false
      }
      if !ending.isEmpty { owners = ending }
      let left = owners.filter { !refuted.contains($0) }
      if !left.isEmpty { owners = left }
      guard owners.count <= Self.mostSharers else { continue }
      let found = owners.map { chains[$0] }
      settlement.owners.formUnion(found)
      if !file.areAlike(found) { settlement.doubtful.formUnion(found) }
    }
    return settlement
  }

  /// The first overflow page of a chain, and how many it has.
  private func head(of number: Int) -> (page: UInt32, count: Int)? { file.head(of: chains[number]) }

  private func group(of number: Int) -> Int {
    var number = number
    while groups[number] != number { number = groups[number] }
    return number
  }

  /// Follows a chain to where another one was, or to its end.
  private mutating func walk(_ number: Int) {
    guard let head = head(of: number) else { return }
    var (last, next) = (chains[number].page, head.page)
    var path: [UInt32] = []
    var rest: Int?
    while true {
      if next == 0 {
        rest = 0
        break
      }
      if let visit = visits[next] {
        // A chain that meets itself has no end.
        if visit.chain == number { break }
        rest = rests[next]
        meet(at: next, number, last, visit)
        break
      }
      guard let following = file.next(after: next, from: last) else { break }
      visits[next] = (number, last)
      nexts[next] = following
      path.append(next)
      // Whoever was here first in the reading is of the same group.
      if let first = file.claims.first(at: next), numbers[first] == nil {
        numbers[first] = chains.count
        groups.append(chains.count)
        chains.append(first)
      }
      (last, next) = (next, following)
    }
    for page in path.reversed() {
      rest = rest.map { $0 + 1 }
      rests[page] = rest
    }
  }

  private mutating func meet(
    at page: UInt32, _ number: Int, _ last: UInt32, _ visit: (chain: Int, last: UInt32)
  ) {
    groups[group(of: number)] = group(of: visit.chain)
    meetings[page, default: [visit]].append((number, last))
    // From here on they go on together.
    var page = page
    while settlement.pages.insert(page).inserted, let next = nexts[page], next > 0 { page = next }
  }

  /// Chains that come to a page otherwise than its pointer map says, where another one comes as it says.
  private func refuted() -> Set<Int> {
    var refuted: Set<Int> = []
    for (page, found) in meetings {
      guard let entry = file.entry(of: page) else { continue }
      let agreeing = found.filter { chain, last in
        entry.parent == last
          && entry.role == (last == chains[chain].page ? .firstOverflow : .laterOverflow)
      }
      guard !agreeing.isEmpty else { continue }
      refuted.formUnion(Set(found.map(\.chain)).subtracting(agreeing.map(\.chain)))
    }
    return refuted
  }
}

extension DamagedFile {
  /// Whose the overflow pages are that several records were found to lead to; nil where none were.
  package func settlement() -> OverflowSettlement? {
    guard !claims.contested.isEmpty else { return nil }
    var walk = ChainWalk(self)
    return walk.settled()
  }

  /// The number on an overflow page; nil for a page that is none.
  fileprivate func next(after page: UInt32, from last: UInt32) -> UInt32? {
    guard let bytes = try? overflowPages.page(page),
      continuation(at: page, bytes, after: last) != .none
    else { return nil }
    return UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self))
  }

  /// The first overflow page of a chain, and how many it has.
  fileprivate func head(of chain: OverflowChain) -> (page: UInt32, count: Int)? {
    guard let (bytes, local) = beginning(of: chain) else { return nil }
    let page = bytes[local...].reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
    return (page, (chain.count - local + usableBytes - 5) / (usableBytes - 4))
  }

  /// What of a record lies on its page, with the number of its first overflow page.
  private func beginning(of chain: OverflowChain) -> (bytes: [UInt8], local: Int)? {
    let local = (chain.kind == .table ? tableFormat : indexFormat).localSize(of: chain.count)
    guard Int(chain.start) + local + 4 <= usableBytes, let page = try? pages.page(chain.page) else {
      return nil
    }
    let bytes = UnsafeRawBufferPointer(start: page + Int(chain.start), count: local + 4)
    return ([UInt8](bytes), local)
  }

  /// Whether records are copies of one: a page that was written twice has its rows twice.
  fileprivate func areAlike(_ chains: [OverflowChain]) -> Bool {
    guard let first = chains.first else { return true }
    let bytes = beginning(of: first)?.bytes
    return chains.allSatisfy { chain in
      chain.key == first.key && chain.count == first.count && chain.kind == first.kind
        && beginning(of: chain)?.bytes == bytes
    }
  }
}
