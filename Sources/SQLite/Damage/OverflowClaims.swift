/// A record that goes on in overflow pages, by where it begins.
struct OverflowChain: Hashable {
  let page: UInt32
  let start: Int32
  let kind: TreeScan.Kind
  /// 0 for an index entry.
  let key: Int64
  /// Bytes of the record.
  let count: Int
}

/// Whose the overflow pages are that several records lead to: theirs whom evidence supports, or everyone's.
package struct OverflowSettlement {
  /// By the page.
  var owners: [UInt32: Set<OverflowChain>] = [:]
  /// Pages of which nothing tells whose they are.
  var doubtful: Set<UInt32> = []
}

/// Which records lead to which overflow pages.
///
/// A page is one record's. Where several lead to it, whoever is read first is not right for that: in the
/// first reading each gets it, and whoever reads the file asks for a ``DamagedFile/settlement()`` and reads
/// it again by that.
final class OverflowClaims {
  /// By the page: the number of the chain in `chains`, from 1.
  private var firsts: [UInt32] = []
  private var chains: [OverflowChain] = []
  /// Those that lead to pages to which others lead.
  private(set) var contested: Set<OverflowChain> = []
  fileprivate let settlement: OverflowSettlement?

  init(pageCount: UInt32, _ settlement: OverflowSettlement?) {
    self.settlement = settlement
    if settlement == nil { firsts = Array(repeating: 0, count: Int(pageCount) + 1) }
  }

  /// - Returns: Whether the chain does not have the page already.
  fileprivate func add(_ page: UInt32, _ chain: OverflowChain) -> Bool {
    if chains.last != chain { chains.append(chain) }
    let first = Int(firsts[Int(page)])
    if first == 0 {
      firsts[Int(page)] = UInt32(chains.count)
      return true
    }
    if first == chains.count { return false }
    let other = chains[first - 1]
    if other != chain { contested.formUnion([other, chain]) }
    return true
  }

  fileprivate func hasClaimed(_ page: UInt32) -> Bool {
    !firsts.isEmpty && firsts[Int(page)] > 0
  }
}

extension DamagedFile {
  enum Continuation { case none, certain, doubtful }

  /// Takes an overflow page for a record, where it can be the record's next one.
  func claim(
    _ page: UInt32, _ bytes: UnsafeRawPointer, of chain: OverflowChain, after last: UInt32,
    for tree: Int32
  ) -> Continuation {
    var state = continuation(at: page, bytes, after: last)
    guard state != .none else { return .none }
    if let settlement = claims.settlement {
      if let owners = settlement.owners[page] {
        guard owners.contains(chain) else { return .none }
        // Whoever has it by evidence has it for certain, and so has who is left of several.
        state =
          settlement.doubtful.contains(page) ? .doubtful : owners.count == 1 ? .certain : state
      } else if !isOpen(page) {
        return .none
      }
    } else {
      guard isOpen(page) || claims.hasClaimed(page), claims.add(page, chain) else { return .none }
    }
    claim(page, for: tree)
    return state
  }

  /// Whether a page can be the next one of a record: none of a tree, and none that is free by all accounts. A
  /// pointer map is a hint: it may be the damaged one.
  private func continuation(
    at page: UInt32, _ bytes: UnsafeRawPointer, after last: UInt32
  ) -> Continuation {
    guard page > 1, page <= pageCount, !isPointerMap(page), treeType(of: page, bytes) == nil
    else {
      return .none
    }
    guard let entry = unjudgedEntry(of: page) else {
      return isListedFree(page) ? .doubtful : .certain
    }
    let isContradicted = mapState(of: page) == .credible
    switch entry.role {
    case .free: return isListedFree(page) ? .none : .doubtful
    case .tree, .root: return isContradicted ? .doubtful : .certain
    case .firstOverflow, .laterOverflow:
      let isAnothers = entry.parent != last && (isContradicted || leads(entry.parent, to: page))
      return isAnothers || isListedFree(page) ? .doubtful : .certain
    }
  }

  // MARK: Pages that several records lead to

  /// Whose the overflow pages are that several records were found to lead to; nil where none were.
  package func settlement() -> OverflowSettlement? {
    guard !claims.contested.isEmpty else { return nil }
    let paths = Dictionary(uniqueKeysWithValues: claims.contested.map { ($0, path(of: $0)) })
    var claimants: [UInt32: [(chain: OverflowChain, last: UInt32)]] = [:]
    for (chain, path) in paths {
      for (place, page) in path.pages.enumerated() {
        let last = place == 0 ? chain.page : path.pages[place - 1]
        claimants[page, default: []].append((chain, last))
      }
    }
    claimants = claimants.filter { $0.value.count > 1 }
    // Chains that have met go on together: where the map tells, it tells of all that follows.
    var refuted: Set<OverflowChain> = []
    for (page, found) in claimants {
      guard let entry = entry(of: page) else { continue }
      let agreeing = found.filter { chain, last in
        entry.parent == last && entry.role == (last == chain.page ? .firstOverflow : .laterOverflow)
      }
      guard !agreeing.isEmpty else { continue }
      refuted.formUnion(Set(found.map(\.chain)).subtracting(agreeing.map(\.chain)))
    }
    var settlement = OverflowSettlement()
    for (page, found) in claimants {
      var owners = Set(found.map(\.chain))
      let ending = owners.filter { paths[$0]?.endsWithRecord == true }
      if !ending.isEmpty { owners = ending }
      let left = owners.subtracting(refuted)
      if !left.isEmpty { owners = left }
      settlement.owners[page] = owners
      if !areAlike(owners) { settlement.doubtful.insert(page) }
    }
    return settlement
  }

  /// The overflow pages that a record leads to, and whether they end where it does.
  private func path(of chain: OverflowChain) -> (pages: [UInt32], endsWithRecord: Bool) {
    guard let (_, local) = beginning(of: chain), let page = try? pages.page(chain.page) else {
      return ([], false)
    }
    func number(_ bytes: UnsafeRawPointer) -> UInt32 {
      UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self))
    }
    let wanted = (chain.count - local + usableBytes - 5) / (usableBytes - 4)
    var (last, next) = (chain.page, number(page + Int(chain.start) + local))
    var (path, seen): ([UInt32], Set<UInt32>) = ([], [])
    while path.count < wanted, let bytes = try? overflowPages.page(next),
      continuation(at: next, bytes, after: last) != .none, seen.insert(next).inserted
    {
      path.append(next)
      (last, next) = (next, number(bytes))
    }
    return (path, path.count == wanted && next == 0)
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
  private func areAlike(_ chains: Set<OverflowChain>) -> Bool {
    guard let first = chains.first else { return true }
    let bytes = beginning(of: first)?.bytes
    return chains.allSatisfy { chain in
      chain.key == first.key && chain.count == first.count && chain.kind == first.kind
        && beginning(of: chain)?.bytes == bytes
    }
  }
}
