import GodwitObjectModel
import SystemPackage

/// One migration of several: from one version of a model to another.
package struct MigrationStep: Sendable {
  package var source: ModelVersion
  package var destination: ModelVersion
  /// Empty where the mapping is inferred.
  package var mappings: [MappingFile]

  package init(source: ModelVersion, destination: ModelVersion, mappings: [MappingFile] = []) {
    self.source = source
    self.destination = destination
    self.mappings = mappings
  }
}

extension MigrationRequest {
  /// The request of one step.
  ///
  /// - Parameters:
  ///   - store: The run's own store for the first step, else what the step before has written.
  ///   - output: Where this step writes.
  package func leg(_ leg: MigrationStep, store: FilePath, output: FilePath?) -> MigrationRequest {
    var request = self
    request.store = store
    request.models = [leg.source, leg.destination]
    request.given = .none
    request.named = []
    request.line = nil
    request.destination = leg.destination
    request.mappings = leg.mappings
    request.output = output
    request.chain = .direct
    request.stages = nil
    return request
  }
}
