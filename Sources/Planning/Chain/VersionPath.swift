/// The way through the versions of a model, from the store's to the destination: the cheapest one
/// that loses nothing.
///
/// Versions are numbers in an order that somebody gave; a path only goes forward. A step that
/// somebody wrote a mapping model for is never jumped over by an inferred one, nor by one whose mapping model
/// is for a part of the way as well, where other steps lead through. An inferred step over several versions
/// is taken only where the steps between would come to the same. Where no such path is left, a long inferred
/// step replaces steps that cannot be taken at all, and says so (``Step/replacesImpossible``).
///
/// Source: `core-data-migration.md` §6.1.
package struct VersionPath: Sendable, Equatable {
  /// How the objects of one version can become objects of another.
  package enum Edge: Sendable, Equatable {
    /// By mapping models: places in the list of files.
    case mapped([Int])
    /// By inference. `isFaithful`: the inferred steps between come to the same.
    case inferred(isFaithful: Bool)
    /// Not at all.
    case refused([Reason])
  }

  package struct Step: Sendable, Equatable {
    package var source: Int
    package var destination: Int
    /// Places of the mapping models; empty for an inferred mapping.
    package var mappings: [Int]
    /// An inferred step over versions that no sequence of steps leads through.
    package var replacesImpossible: Bool

    package init(
      source: Int, destination: Int, mappings: [Int] = [], replacesImpossible: Bool = false
    ) {
      self.source = source
      self.destination = destination
      self.mappings = mappings
      self.replacesImpossible = replacesImpossible
    }
  }

  /// A step between neighbours, or from the first to the last, that cannot be taken.
  package struct Obstacle: Sendable, Equatable {
    package var source: Int
    package var destination: Int
    package var reasons: [Reason]

    package init(source: Int, destination: Int, reasons: [Reason]) {
      self.source = source
      self.destination = destination
      self.reasons = reasons
    }
  }

  /// In order; empty when there is no path.
  package let steps: [Step]
  /// What stands in the way of neighbours, and of the direct step, where there is no path.
  package let obstacles: [Obstacle]

  /// Finds the path from the first of `count` versions to the last.
  ///
  /// - Parameters:
  ///   - mayBeMapped: False where no edge is by mapping models.
  ///   - edge: Asked for the edges of one version after those of the version before it.
  /// - Complexity: O(*count*³), and every edge is asked for once, or the direct one alone.
  package init(
    count: Int, mayBeMapped: Bool = true, edge: (Int, Int) throws -> Edge
  ) rethrows {
    precondition(count >= 2, "a path has two ends")
    // Nothing is cheaper, and of most stores it is the way.
    if !mayBeMapped, case .inferred(isFaithful: true) = try edge(0, count - 1) {
      (steps, obstacles) = ([Step(source: 0, destination: count - 1)], [])
      return
    }
    var edges: [Place: Edge] = [:]
    for source in 0..<(count - 1) {
      for destination in (source + 1)..<count {
        edges[Place(source, destination)] = try edge(source, destination)
      }
    }
    let search = Search(count: count, edges: edges)
    steps = search.steps()
    obstacles = steps.isEmpty ? search.obstacles() : []
  }
}

extension VersionPath {
  private struct Place: Hashable {
    var source: Int
    var destination: Int

    init(_ source: Int, _ destination: Int) {
      self.source = source
      self.destination = destination
    }

    func isWithin(_ source: Int, _ destination: Int) -> Bool {
      self.source >= source && self.destination <= destination
    }
  }

  private struct Cost: Comparable {
    /// Versions that are jumped over for want of a way through them.
    var replaced: Int
    /// Mapped steps over versions whose mapping model is for a part of the way as well: what else was written for
    /// that way would be left out.
    var tooLong: Int
    var steps: Int
    /// Inferred steps: of two equally long paths, the one that more people wrote down.
    var inferred: Int

    static func < (a: Cost, b: Cost) -> Bool {
      (a.replaced, a.tooLong, a.steps, a.inferred) < (b.replaced, b.tooLong, b.steps, b.inferred)
    }
  }

  private struct Search {
    let count: Int
    let edges: [Place: Edge]

    /// Dynamic programming from the first version on: versions are in order, so the graph has no
    /// circles.
    func steps() -> [Step] {
      var best: [(cost: Cost, path: [Step])?] = Array(repeating: nil, count: count)
      best[0] = (Cost(replaced: 0, tooLong: 0, steps: 0, inferred: 0), [])
      for destination in 1..<count {
        for source in 0..<destination {
          guard let (before, path) = best[source], let step = step(source, destination) else {
            continue
          }
          let isInferred = step.mappings.isEmpty
          let cost = Cost(
            replaced: before.replaced
              + (step.replacesImpossible ? destination - source - 1 : 0),
            tooLong: before.tooLong + (isTooLong(step) ? 1 : 0), steps: before.steps + 1,
            inferred: before.inferred + (isInferred ? 1 : 0))
          if let known = best[destination], known.cost <= cost { continue }
          best[destination] = (cost, path + [step])
        }
      }
      return best[count - 1]?.path ?? []
    }

    private func step(_ source: Int, _ destination: Int) -> Step? {
      switch edges[Place(source, destination)] {
      case .mapped(let files):
        return Step(source: source, destination: destination, mappings: files)
      case .inferred(let isFaithful):
        if destination == source + 1 { return Step(source: source, destination: destination) }
        // What somebody wrote for a part of the way would be lost.
        if isMapped(within: source, destination) { return nil }
        if isFaithful { return Step(source: source, destination: destination) }
        if hasWay(within: source, destination) { return nil }
        return Step(source: source, destination: destination, replacesImpossible: true)
      case .refused, nil:
        return nil
      }
    }

    private func isMapped(within source: Int, _ destination: Int) -> Bool {
      edges.contains { place, edge in
        guard case .mapped = edge else { return false }
        return place.isWithin(source, destination)
      }
    }

    /// The hashes of a mapping model tell only of the entities that it names: it fits a longer way, too, when
    /// the versions after its own change none of those. Where nothing else was written for that way, it is done
    /// once.
    private func isTooLong(_ step: Step) -> Bool {
      if step.mappings.isEmpty { return false }
      let parts: [Set<Int>] = edges.compactMap { place, edge in
        guard case .mapped(let files) = edge, place != Place(step.source, step.destination),
          place.isWithin(step.source, step.destination)
        else { return nil }
        return Set(files)
      }
      return parts.contains { !$0.isDisjoint(with: step.mappings) }
        && parts.contains { !$0.isSubset(of: step.mappings) }
    }

    /// Steps between neighbours lead the whole way.
    private func hasWay(within source: Int, _ destination: Int) -> Bool {
      (source..<destination).allSatisfy {
        if case .refused = edges[Place($0, $0 + 1)] { false } else { true }
      }
    }

    func obstacles() -> [Obstacle] {
      var places = (0..<(count - 1)).map { Place($0, $0 + 1) }
      if count > 2 { places.append(Place(0, count - 1)) }
      return places.compactMap { place in
        guard case .refused(let reasons) = edges[place] else { return nil }
        return Obstacle(source: place.source, destination: place.destination, reasons: reasons)
      }
    }
  }
}
