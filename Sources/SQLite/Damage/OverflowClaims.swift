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

/// Which records lead to which overflow pages.
///
/// A page is one record's. Where several lead to it, whoever is read first is not right for that: the first reading
/// notes them, and whoever reads the file asks for a ``DamagedFile/settlement()`` and reads it again by that.
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

  /// - Returns: Whether the page is the chain's: no other one led there before.
  fileprivate func add(_ page: UInt32, _ chain: OverflowChain) -> Bool {
    if chains.last != chain { chains.append(chain) }
    let first = Int(firsts[Int(page)])
    if first == 0 {
      firsts[Int(page)] = UInt32(chains.count)
      return true
    }
    guard first != chains.count else { return false }
    let other = chains[first - 1]
    // A cell may be read again.
    if other == chain { return true }
    contested.formUnion([other, chain])
    return false
  }

  /// Whoever was the first to lead to a page.
  func first(at page: UInt32) -> OverflowChain? {
    guard !firsts.isEmpty, firsts[Int(page)] > 0 else { return nil }
    return chains[Int(firsts[Int(page)]) - 1]
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
      if settlement.pages.contains(page) {
        guard settlement.owners.contains(chain) else { return .none }
        state = settlement.doubtful.contains(chain) ? .doubtful : .certain
      } else if !isOpen(page) {
        return .none
      }
    } else {
      guard isOpen(page) || claims.first(at: page) != nil, claims.add(page, chain) else {
        return .none
      }
    }
    claim(page, for: tree)
    return state
  }

  /// Whether a page can be the next one of a record: none of a tree, and none that is free by all accounts. A
  /// pointer map is a hint: it may be the damaged one.
  func continuation(
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
}
