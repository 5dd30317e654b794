import GodwitMapping
import GodwitObjectModel

/// Objects that several mapping models take to one entity: as many of each will exist.
///
/// Core Data runs such mapping models, too. Teams cut an entity's objects by filters and let each
/// pass make what its objects refer to, so it is said there. Where nothing sets two passes apart
/// they are no cut: they are for one and the same objects.
struct MappingRepetition: Equatable {
  let source: EntityName
  let destination: EntityName
  let selection: SourceSelection
  /// Places of the mapping models.
  fileprivate(set) var passes: [Int]
  /// True where no entity's objects are divided between two of the passes.
  fileprivate(set) var isWhole = false
  /// True where a policy may leave objects out.
  fileprivate(set) var hasPolicy: Bool
}

extension MappedPlanner {
  /// What several passes take, in the order of the first.
  var repetitions: [MappingRepetition] {
    guard models.count > 1 else { return [] }
    var found: [MappingRepetition] = []
    for (pass, model) in models.enumerated() {
      for mapping in model.entityMappings {
        guard let from = mapping.sourceEntity, let to = mapping.destinationEntity,
          source[from]?.isAbstract == false
        else { continue }
        let place = found.firstIndex {
          $0.source == from && $0.destination == to && $0.selection == mapping.sourceSelection
        }
        if let place {
          if found[place].passes.last != pass { found[place].passes.append(pass) }
          if mapping.policy != nil { found[place].hasPolicy = true }
        } else {
          found.append(
            MappingRepetition(
              source: from, destination: to, selection: mapping.sourceSelection, passes: [pass],
              hasPolicy: mapping.policy != nil))
        }
      }
    }
    let taken = found
    func isDivided(_ one: Int, _ other: Int) -> Bool {
      taken.contains { mine in
        guard mine.passes.contains(one) else { return false }
        let theirs = taken.filter {
          $0.source == mine.source && $0.destination == mine.destination
            && $0.passes.contains(other)
        }
        // Which objects a policy makes, its code decides.
        return !theirs.isEmpty
          && (mine.hasPolicy || theirs.allSatisfy { !$0.passes.contains(one) })
      }
    }
    return found.filter { $0.passes.count > 1 }.map { repetition in
      var repetition = repetition
      let passes = repetition.passes
      repetition.isWhole = passes.contains { one in
        passes.contains { one < $0 && !isDivided(one, $0) }
      }
      return repetition
    }
  }
}

extension MappingRepetition {
  private func names(_ files: [MappingFile]) -> String {
    passes.map { files[$0].file }.joined(separator: " and ")
  }

  private var times: String { passes.count == 2 ? "twice" : "\(passes.count) times" }

  func refusal(_ files: [MappingFile]) -> Reason {
    Reason(
      reason: "repeated-mapping", entity: source.rawValue,
      message:
        "\(names(files)) take the same objects of \(source) to \(destination), so each would "
        + "exist \(times). Leave one out; or name in each, as source-model and destination-model, "
        + "the versions that it is for; or divide the objects by filters.")
  }

  /// - Parameter count: Of all objects of the source entity.
  func note(_ files: [MappingFile], count: Int64) -> String {
    let objects = selection == .all ? "the \(count) objects" : "objects"
    return "\(names(files)) take \(objects) of \(source) to \(destination): each exists \(times)"
      + (hasPolicy ? ", unless a policy leaves it out." : ".")
  }
}
