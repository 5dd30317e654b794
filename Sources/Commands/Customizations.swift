import ArgumentParser
import Foundation
import GodwitDigests
import GodwitPlanning
import GodwitWorker
import SystemPackage

/// The code that an executable of a team's own brings along; none in `godwit` itself.
package struct Customizations: Sendable {
  package var policies: PolicyRegistry
  /// What stores go through, unless stated otherwise.
  package var stages: StagedMigration?

  package init(policies: PolicyRegistry = PolicyRegistry(), stages: StagedMigration? = nil) {
    self.policies = policies
    self.stages = stages
  }
}

extension Customizations {
  /// The policies as planning knows them.
  var registeredPolicies: RegisteredPolicies { policies.registered { Self.digest } }

  /// Every request of this process may call for it.
  func bring(to request: inout MigrationRequest) {
    request.policies = registeredPolicies
    request.stages = stages
  }

  /// How a store comes over several versions. Core Data goes by stages wherever it is given some,
  /// so that is the default here, too.
  ///
  /// - Parameters:
  ///   - wanted: What was asked for; nil for nothing.
  ///   - mappings: How many mapping models were given.
  func chain(_ wanted: Chain?, mappings: Int) throws(ChainObstacle) -> Chain {
    let chain = wanted ?? (stages == nil ? .direct : .staged)
    guard chain == .staged else { return chain }
    guard stages != nil else { throw .noStages }
    guard mappings == 0 else { throw .mappings }
    return .staged
  }

  /// The same where options ask for it.
  ///
  /// - Throws: `ValidationError`.
  func chain(ofOptions wanted: Chain?, mappings: Int) throws -> Chain {
    do throws(ChainObstacle) {
      return try chain(wanted, mappings: mappings)
    } catch {
      throw error.ofOptions
    }
  }

  /// Of the running executable, hexadecimal: what an older build has made is made again.
  ///
  /// Not of libraries that it loads. Where it cannot be read it counts as another each time: work
  /// is then done again, and never mixed.
  static let digest: String = {
    var digest = SHA256()
    do {
      let file = try FileDescriptor.open("/proc/self/exe", .readOnly)
      try file.closeAfter {
        // 1 MiB: large enough that reading costs nothing beside the digest.
        let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
        defer { piece.deallocate() }
        while true {
          let count = try file.read(into: piece)
          if count == 0 { break }
          digest.update(UnsafeRawBufferPointer(rebasing: piece[..<count]))
        }
      }
    } catch {
      return UUID().uuidString
    }
    return Hexadecimal.text(of: digest.finish())
  }()
}

/// Why a store cannot come over several versions by stages. Each is said where it was asked for: by options,
/// or by the keys of a pipeline's file.
enum ChainObstacle: Error {
  case noStages, mappings

  var ofOptions: ValidationError {
    switch self {
    case .noStages:
      ValidationError(
        "--chain staged requires an executable that registers stages. Run that executable.")
    case .mappings:
      ValidationError(
        "A stage has no mapping model. Leave mapping models out, or take the chain direct or "
          + "progressive.")
    }
  }

  var ofPipeline: String {
    switch self {
    case .noStages:
      "`chain: staged` requires an executable that registers stages. Run that executable, or correct "
        + "the key chain."
    case .mappings:
      "A stage has no mapping model. Leave the key mappings out, or write `chain: direct` or "
        + "`chain: progressive`."
    }
  }
}
