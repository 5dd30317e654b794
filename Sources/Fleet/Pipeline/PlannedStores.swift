import Foundation
import GodwitDurableFiles
import GodwitPersistentStore
import SystemPackage

/// The stores of a plan, each in the state in which it was planned for: what `plan --out` writes and
/// `run --plan` compares.
package struct PlannedStores: Codable, Sendable, Equatable {
  struct Store: Codable, Sendable, Equatable {
    var store: String
    /// The name of the state it was in; nil for one that could not be looked at.
    var identity: String?
    /// The name of the state of its external data; nil where it has none.
    var external: String?
    var verdict: MigrationResult.Verdict
  }

  private static let formatVersion = 1
  private static let byteLimit = 1 << 30

  private(set) var formatVersion = PlannedStores.formatVersion
  var pipeline: String
  /// ``PipelineRun/planSettings(_:)``.
  var settings: String
  var stores: [Store]

  /// - Throws: ``PlanDrift/unreadable(file:reason:)``.
  package init(file: FilePath) throws {
    do {
      let bytes = try RegularFile.bytes(of: file, limit: Self.byteLimit, links: .followed)
      self = try JSONDecoder().decode(PlannedStores.self, from: Data(bytes))
    } catch let error as DurabilityError where error.isOfMachine {
      throw error
    } catch is DecodingError {
      throw PlanDrift.unreadable(file: file.string, reason: "it is not a plan of a pipeline")
    } catch {
      let reason = "\(error)"
      throw PlanDrift.unreadable(
        file: file.string, reason: reason.hasSuffix(".") ? String(reason.dropLast()) : reason)
    }
    guard formatVersion == Self.formatVersion else {
      throw PlanDrift.unreadable(file: file.string, reason: "another version of Godwit wrote it")
    }
  }

  init(pipeline: String, settings: String, stores: [Store]) {
    (self.pipeline, self.settings, self.stores) = (pipeline, settings, stores)
  }

  /// The whole file.
  package var text: String { JSONLine.text(of: self) + "\n" }

  /// Compares with what is there now.
  ///
  /// - Parameters:
  ///   - found: The pipeline's stores that are meant.
  ///   - isMeant: Whether a store that is not there is, too.
  ///   - isOurs: Whether a state of a store is what a run of these settings made of it.
  /// - Throws: ``PlanDrift``.
  func check(
    _ found: [FoundStore], settings: String, isMeant: (FilePath) -> Bool,
    isOurs: (FoundStore, String) -> Bool
  ) throws {
    guard settings == self.settings else { throw PlanDrift.otherSettings(pipeline: pipeline) }
    var planned = Dictionary(
      stores.map { (FilePath($0.store), $0) }, uniquingKeysWith: { $1 })
    var (new, changed): ([String], [String]) = ([], [])
    for store in found {
      guard let known = planned.removeValue(forKey: store.path) else {
        new.append(store.path.string)
        continue
      }
      let files = StoreFiles(store.path)
      let identity = try? files.identity().name
      let isAsPlanned =
        identity == known.identity && (try? files.externalState()) == known.external
      if !isAsPlanned, !(identity.map { isOurs(store, $0) } ?? false) {
        changed.append(store.path.string)
      }
    }
    let vanished = planned.filter { isMeant($0.key) }.map(\.value.store).sorted()
    guard new.isEmpty, changed.isEmpty, vanished.isEmpty else {
      throw PlanDrift.stores(changed: changed, vanished: vanished, new: new)
    }
  }
}

/// Why a plan is not carried out: it is of other stores, or of another state of them. Nothing was
/// changed.
package enum PlanDrift: Error, Sendable, Equatable {
  case unreadable(file: String, reason: String)
  case otherSettings(pipeline: String)
  case stores(changed: [String], vanished: [String], new: [String])
}

extension PlanDrift: CustomStringConvertible {
  private static let mostNames = 10

  package var description: String {
    switch self {
    case .unreadable(let file, let reason):
      return "\(file) cannot be read as a plan: \(reason). Make one with `godwit plan --out`."
    case .otherSettings(let pipeline):
      return "The models, mapping models or options of \(pipeline) are not those of the plan. Make "
        + "the plan again."
    case .stores(let changed, let vanished, let new):
      let parts = [("changed", changed), ("vanished", vanished), ("new", new)]
        .filter { !$0.1.isEmpty }
        .map { word, stores in
          let more =
            stores.count > Self.mostNames ? " and \(stores.count - Self.mostNames) more" : ""
          return "\(stores.count) \(word): "
            + stores.prefix(Self.mostNames).joined(separator: ", ") + more
        }
      return "The stores are not those of the plan. " + parts.joined(separator: "; ")
        + ". Nothing was changed. Make the plan again, or run without it."
    }
  }
}
