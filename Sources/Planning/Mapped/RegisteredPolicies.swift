import GodwitObjectModel

/// The entity migration policies that the running executable brings along, as far as planning
/// needs to know them.
public struct RegisteredPolicies: Sendable {
  public struct Policy: Sendable, Equatable {
    /// The class name, as it was registered.
    public var name: String
    /// What `FUNCTION($entityPolicy, …)` may call.
    public var selectors: Set<String>
    /// True when the entity must not be cut into shards.
    public var seesWholeEntity: Bool

    public init(name: String, selectors: Set<String>, seesWholeEntity: Bool) {
      self.name = name
      self.selectors = selectors
      self.seesWholeEntity = seesWholeEntity
    }
  }

  /// SHA-256 of the code, in hexadecimal: checkpoints that another build has made are not mixed
  /// with this one's. Asked only when a mapping model names a policy.
  public let codeDigest: @Sendable () -> String
  private let find: @Sendable (String) -> Policy?

  /// - Parameter find: The policy of a class name as a mapping model gives it.
  public init(
    codeDigest: @escaping @Sendable () -> String, find: @escaping @Sendable (String) -> Policy?
  ) {
    self.codeDigest = codeDigest
    self.find = find
  }

  public static let none = RegisteredPolicies(codeDigest: { "" }, find: { _ in nil })

  public subscript(name: String) -> Policy? { find(name) }

  /// Those of some names that are registered, by the names as they were asked for.
  public func known(among names: some Sequence<String>) -> [String: Set<String>] {
    var known: [String: Set<String>] = [:]
    for name in names { if let policy = self[name] { known[name] = policy.selectors } }
    return known
  }
}
