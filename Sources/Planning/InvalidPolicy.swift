/// What is done about rows that the destination's validation rules refuse. Only migrations by a mapping
/// model validate rows, as Core Data does.
package enum InvalidPolicy: String, Codable, Sendable, CaseIterable {
  /// The migration is refused.
  case fail
  /// An attribute that breaks a rule gets its default value. A row that breaks one all the same
  /// refuses the migration.
  case `default`
  /// The row is left out of the destination and noted in a store of rejects. References to it are
  /// nullified.
  case setAside = "set-aside"
}
