import GodwitDurableFiles
import SystemPackage

/// What the folders of a pipeline's arrays say, for whoever asks on any machine. Nothing is changed.
package struct ClusterStatus: Codable, Sendable, Equatable {
  package struct Array: Codable, Sendable, Equatable {
    package var name: String
    package var bundles: Int
    package var finished: Int
    /// How many have begun and are not finished; an attempt may be at work on them or not.
    package var begun: Int
    /// Tasks that have begun, in all: more than bundles where some were started again.
    package var starts: Int
    /// Stores that have a result; nil for an array of units.
    package var results: Int?
    /// The store whose units they are, and their stage.
    package var store: String?
    package var stage: String?
  }

  package var arrays: [Array]

  package var bundles: Int { arrays.reduce(0) { $0 + $1.bundles } }
  package var finished: Int { arrays.reduce(0) { $0 + $1.finished } }
  package var begun: Int { arrays.reduce(0) { $0 + $1.begun } }
  package var results: Int { arrays.reduce(0) { $0 + ($1.results ?? 0) } }

  /// Nil where nothing of the pipeline is on a cluster.
  package init?(of places: PipelinePlaces) throws {
    arrays = []
    let file = FilePath(places.owner.file)
    for folder in try BundleFolder.permitted(in: places.state)
    where folder.otherPipeline(than: file) == nil {
      // One that is being made or removed.
      guard var array = try? ClusterArray(at: folder), let markers = try? folder.markers() else {
        continue
      }
      let lines = (try? array.read(changing: false)) ?? []
      let results = Set(
        lines.compactMap { $0.result?.isFinal == true ? $0.result.map { FilePath($0.store) } : nil }
      )
      arrays.append(
        Array(
          name: array.name, bundles: array.header.bundles.count, finished: markers.done.count,
          begun: markers.started.keys.count { !markers.done.contains($0) },
          starts: markers.started.values.reduce(0) { $0 + $1.count },
          results: array.isOfUnits ? nil : results.count, store: array.header.units?.store,
          stage: array.header.units?.stage.rawValue))
    }
    if arrays.isEmpty { return nil }
  }
}
