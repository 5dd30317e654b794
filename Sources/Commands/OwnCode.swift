import Foundation
import GodwitDigests
import GodwitPlanning
public import GodwitWorker
import SystemPackage

/// The code that an executable of a team's own brings along; none in `godwit` itself.
public struct OwnCode: Sendable {
  public var policies: PolicyRegistry

  public init(policies: PolicyRegistry = PolicyRegistry()) { self.policies = policies }
}

extension OwnCode {
  /// The policies as planning knows them.
  var registeredPolicies: RegisteredPolicies { policies.registered { Self.digest } }

  /// Every request of this process may call for it.
  func bring(to request: inout MigrationRequest) { request.policies = registeredPolicies }

  /// Of the running executable, hexadecimal: what an older build has made is made anew.
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
