import GodwitObjectModel

/// The entity migration policies that the running executable brings along, as far as planning
/// needs to know them.
package struct RegisteredPolicies: Sendable {
  package struct Policy: Sendable, Equatable {
    /// The class name, as it was registered.
    package var name: String
    /// What `FUNCTION($entityPolicy, …)` may call.
    package var selectors: Set<String>
    /// True when the entity must not be cut into shards.
    package var seesWholeEntity: Bool

    package init(name: String, selectors: Set<String>, seesWholeEntity: Bool) {
      self.name = name
      self.selectors = selectors
      self.seesWholeEntity = seesWholeEntity
    }
  }

  /// SHA-256 of the code, in hexadecimal: checkpoints that another build has made are not mixed
  /// with this one's. Asked only when a mapping model names a policy.
  package let codeDigest: @Sendable () -> String
  private let find: @Sendable (String) -> Policy?

  /// - Parameter find: The policy of a class name as a mapping model gives it.
  package init(
    codeDigest: @escaping @Sendable () -> String, find: @escaping @Sendable (String) -> Policy?
  ) {
    self.codeDigest = codeDigest
    self.find = find
  }

  package static let none = RegisteredPolicies(codeDigest: { "" }, find: { _ in nil })

  package subscript(name: String) -> Policy? { find(name) }

  /// Those of some names that are registered, by the names as they were asked for.
  package func known(among names: some Sequence<String>) -> [String: Set<String>] {
    var known: [String: Set<String>] = [:]
    for name in names { if let policy = self[name] { known[name] = policy.selectors } }
    return known
  }
}
