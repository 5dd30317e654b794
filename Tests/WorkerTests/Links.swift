import GodwitSQLite

/// What Core Data's inverses come to when one side is set after the other. Objects of `A` have one
/// of `B`, or many, and so the other way round; lists keep the order of their members.
struct Links {
  let isToOne: Bool
  /// Of the other side.
  let isOneToOne: Bool
  var ofA: [Int: [Int]] = [:]
  var ofB: [Int: [Int]] = [:]
  private var given: Set<[Int]> = []

  init(isToOne: Bool, isOneToOne: Bool = false) {
    self.isToOne = isToOne
    self.isOneToOne = isOneToOne
  }

  /// What a hook takes away of the object that it speaks of is not lost.
  mutating func forget(_ pairs: [[Int]]) { given.subtract(pairs) }

  mutating func setA(_ a: Int, to members: [Int]) {
    for old in ofA[a] ?? [] where !members.contains(old) { ofB[old]?.removeAll { $0 == a } }
    ofA[a] = members
    for b in members {
      given.insert([a, b])
      if isOneToOne {
        for other in ofB[b] ?? [] where other != a { ofA[other]?.removeAll { $0 == b } }
        ofB[b] = [a]
      }
      if ofB[b]?.contains(a) != true { ofB[b, default: []].append(a) }
    }
  }

  mutating func setB(_ b: Int, to members: [Int]) {
    for old in ofB[b] ?? [] where !members.contains(old) { ofA[old]?.removeAll { $0 == b } }
    ofB[b] = members
    for a in members {
      given.insert([a, b])
      if isToOne {
        for other in ofA[a] ?? [] where other != b { ofB[other]?.removeAll { $0 == a } }
        ofA[a] = [b]
      } else if ofA[a]?.contains(b) != true {
        ofA[a, default: []].append(b)
      }
    }
  }

  mutating func addA(_ a: Int, _ b: Int) { setA(a, to: kept(ofA[a], b)) }

  mutating func addB(_ b: Int, _ a: Int) { setB(b, to: kept(ofB[b], a)) }

  private func kept(_ members: [Int]?, _ new: Int) -> [Int] {
    let members = members ?? []
    return members.contains(new) ? members : members + [new]
  }

  mutating func remove(_ a: Int, _ b: Int) {
    ofA[a]?.removeAll { $0 == b }
    ofB[b]?.removeAll { $0 == a }
    forget([[a, b]])
  }

  var pairs: Set<[Int]> { Set(ofA.flatMap { a, members in members.map { [a, $0] } }) }
  /// How many pairs were set and do not stand.
  var lost: Int { given.subtracting(pairs).count }
}

extension Connection {
  /// The pairs of `A.b` and its inverse, by the objects' numbers; in the order of the lists, where
  /// there is one.
  func links(isToOne: Bool, isOrdered: Bool) throws -> [[Int]] {
    try rows(
      isToOne
        ? """
        SELECT x.ZNUMBER, y.ZNUMBER FROM ZA AS x JOIN ZB AS y ON y.Z_PK = x.ZB
         ORDER BY \(isOrdered ? "x.Z_FOK_B" : "1")
        """
        : """
        SELECT x.ZNUMBER, y.ZNUMBER
          FROM Z_1B AS j JOIN ZA AS x ON x.Z_PK = j.Z_1AS JOIN ZB AS y ON y.Z_PK = j.Z_2B
         ORDER BY \(isOrdered ? "j.Z_FOK_1AS" : "1")
        """
    ).map { $0.map { Int($0.integer ?? 0) } }
  }
}
