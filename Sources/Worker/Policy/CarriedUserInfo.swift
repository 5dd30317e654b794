import FoundationEssentials
import GodwitCheckpoints
import GodwitDurableFiles
import GodwitExpressions
import SystemPackage

/// The manager's `userInfo`, on its way from the policies of one stage to those of the next.
package struct CarriedUserInfo {
  private let run: RunDirectory

  package init(run: RunDirectory) { self.run = run }

  private func path(after stage: Stage) -> FilePath {
    run.associations.appending("user-info-after-\(stage.rawValue).json")
  }

  /// What policies find when their stage begins; nothing before the first.
  func read(before stage: Stage) throws -> [String: ExpressionValue] {
    let earlier: Stage? =
      switch stage {
      case .link: .copy
      case .validate: .link
      case .rows, .copy, .audit, .verify, .soundness: nil
      }
    guard let earlier, try DurableFile.exists(path(after: earlier)) else { return [:] }
    let path = path(after: earlier)
    let bytes = try RegularFile.bytes(
      of: path, limit: RunDirectory.largestFileBytes, isPrivate: true)
    do {
      return try JSONDecoder().decode([String: ExpressionValue].self, from: Data(bytes))
    } catch {
      throw StageError.association(path: path.string, reason: "\(error)")
    }
  }

  /// Puts together what the shards have changed, those in front first: the last word counts.
  ///
  /// - Parameter finalKey: The key of a destination object, as the shard of this number knew it.
  package func write(
    _ shards: [[String: ExpressionValue]?], after stage: Stage,
    finalKey: (Int, ObjectReference) -> Int64
  ) throws {
    var merged = try read(before: stage)
    for (number, values) in shards.enumerated() {
      for (key, value) in values ?? [:] {
        merged[key] = value.mapObjects { object in
          guard object.store == .destination else { return object }
          return ObjectReference(object.entity, finalKey(number, object), in: .destination)
        }
      }
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys]
    try DurableFile.write([UInt8](try encoder.encode(merged)), to: path(after: stage))
  }
}
