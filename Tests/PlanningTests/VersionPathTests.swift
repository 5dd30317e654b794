import GodwitPlanning
import Testing

private typealias Edge = VersionPath.Edge
private let no = Edge.refused([Reason(reason: "attribute-type", message: "no")])
private let yes = Edge.inferred(isFaithful: true)
private let lossy = Edge.inferred(isFaithful: false)

/// A path over the edges given; neighbours are inferred and all others lossy where nothing is said.
private func path(_ count: Int, _ edges: [[Int]: Edge]) -> VersionPath {
  VersionPath(count: count) { source, destination in
    edges[[source, destination]] ?? (destination == source + 1 ? yes : lossy)
  }
}

private func places(_ path: VersionPath) -> [[Int]] {
  path.steps.map { [$0.source, $0.destination] }
}

@Suite struct `A path of versions` {
  @Test func `is one step where inference allows it and loses nothing`() {
    let found = path(4, [[0, 3]: yes])
    #expect(found.steps == [.init(source: 0, destination: 3)])
  }

  @Test func `goes through every version where a long step would lose something`() {
    #expect(places(path(4, [:])) == [[0, 1], [1, 2], [2, 3]])
  }

  @Test func `takes long steps where they come to the same`() {
    #expect(places(path(5, [[0, 2]: yes, [2, 4]: yes])) == [[0, 2], [2, 4]])
    #expect(places(path(5, [[1, 4]: yes])) == [[0, 1], [1, 4]])
  }

  @Test func `never jumps over a mapping model by inference`() {
    let found = path(3, [[1, 2]: .mapped([0]), [0, 2]: yes])
    #expect(
      found.steps == [
        .init(source: 0, destination: 1), .init(source: 1, destination: 2, mappings: [0]),
      ])
  }

  @Test func `takes the mapping model of a long step`() {
    let found = path(4, [[0, 3]: .mapped([1, 2]), [1, 2]: .mapped([0])])
    #expect(found.steps == [.init(source: 0, destination: 3, mappings: [1, 2])])
  }

  /// Its hashes tell only of the entities that it names.
  @Test func `takes a mapping model for the part of the way that it fits`() {
    let both = path(3, [[0, 1]: .mapped([0]), [1, 2]: .mapped([1]), [0, 2]: .mapped([0])])
    #expect(places(both) == [[0, 1], [1, 2]])
    let alone = path(3, [[0, 1]: .mapped([0]), [1, 2]: .mapped([0]), [0, 2]: .mapped([0])])
    #expect(places(alone) == [[0, 2]], "it is done once")
    let last = path(3, [[0, 1]: no, [1, 2]: .mapped([0]), [0, 2]: .mapped([0])])
    #expect(places(last) == [[0, 2]])
  }

  @Test func `prefers mapping models among paths of equal length`() {
    let found = path(4, [[0, 2]: yes, [1, 3]: .mapped([0]), [0, 3]: lossy])
    #expect(places(found) == [[0, 1], [1, 3]])
    #expect(found.steps.last?.mappings == [0])
  }

  @Test func `jumps over versions that nothing leads through, and says so`() {
    let found = path(3, [[0, 1]: no, [0, 2]: lossy])
    #expect(found.steps == [.init(source: 0, destination: 2, replacesImpossible: true)])
  }

  @Test func `does not jump over a mapping model even then`() {
    let found = path(3, [[0, 1]: no, [1, 2]: .mapped([0]), [0, 2]: lossy])
    #expect(found.steps.isEmpty)
    #expect(found.obstacles.map { [$0.source, $0.destination] } == [[0, 1]])
  }

  @Test func `lists what refuses each step and the direct one`() {
    let found = path(3, [[0, 1]: no, [1, 2]: no, [0, 2]: no])
    #expect(found.steps.isEmpty)
    #expect(found.obstacles.map { [$0.source, $0.destination] } == [[0, 1], [1, 2], [0, 2]])
    #expect(found.obstacles.allSatisfy { $0.reasons.map(\.reason) == ["attribute-type"] })
  }

  @Test func `of two versions is the step between them, or its refusal once`() {
    #expect(places(path(2, [:])) == [[0, 1]])
    #expect(path(2, [[0, 1]: no]).obstacles.count == 1)
  }

  @Test func `asks for every edge once`() {
    var asked: [[Int]] = []
    _ = VersionPath(count: 6) { source, destination in
      asked.append([source, destination])
      return yes
    }
    #expect(asked.count == 15)
    #expect(Set(asked).count == 15)
  }

  @Test func `asks for the direct edge alone where nothing is mapped and it is faithful`() {
    var asked: [[Int]] = []
    let found = VersionPath(count: 80, mayBeMapped: false) { source, destination in
      asked.append([source, destination])
      return yes
    }
    #expect(asked == [[0, 79]])
    #expect(found.steps == [.init(source: 0, destination: 79)])
  }

  @Test(arguments: 0..<200)
  func `leads from end to end by steps that exist, and none does better`(seed: Int) {
    var state = UInt64(seed) &* 0x9E37_79B9_7F4A_7C15 | 1
    func draw() -> UInt64 {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      return state >> 33
    }
    let count = Int(draw() % 5) + 2
    var edges: [[Int]: Edge] = [:]
    for source in 0..<count {
      for destination in (source + 1)..<max(count, source + 1) {
        edges[[source, destination]] = [no, yes, lossy, .mapped([0])][Int(draw() % 4)]
      }
    }
    let found = path(count, edges)
    for (before, after) in zip(found.steps, found.steps.dropFirst()) {
      #expect(before.destination == after.source)
    }
    for step in found.steps {
      let edge = edges[[step.source, step.destination]]
      #expect(edge != no)
      if edge == .mapped([0]) { #expect(step.mappings == [0]) }
    }
    guard !found.steps.isEmpty else {
      #expect(!found.obstacles.isEmpty)
      return
    }
    #expect(found.steps.first?.source == 0)
    #expect(found.steps.last?.destination == count - 1)
    if edges[[0, count - 1]] == .mapped([0]) { #expect(found.steps.count == 1) }
  }
}
