import Foundation
import Godwit

/// Validates what no rule of a model can say: the books must balance, before and after.
final class PaymentAuditPolicy: EntityMigrationPolicy {
  /// With a domain and codes, as an application has them that shows its errors to people.
  enum AuditError: CustomNSError, CustomStringConvertible {
    case emptyPayments(count: Int)
    case totalChanged(byCents: Int128)

    static var errorDomain: String { "LibraryErrorDomain" }

    var errorCode: Int {
      switch self {
      case .emptyPayments: 1
      case .totalChanged: 2
      }
    }

    var description: String {
      switch self {
      case .emptyPayments(let count): "\(count) payments are of 0 cents, which the till refuses"
      case .totalChanged(let cents): "the total has changed by \(cents) cents"
      }
    }
  }

  /// Called when the new store is written, after the model's own rules were looked at. Throwing
  /// refuses the store, which stays as it is.
  override func performCustomValidation(
    forMapping mapping: CurrentEntityMapping, manager: MigrationManager
  ) throws {
    // Sums of 64-bit numbers: a store may hold any.
    var difference: Int128 = 0
    var empty = 0
    try manager.forEachSourceObject(ofEntity: "Payment") {
      difference -= Int128($0["cents"] ?? 0 as Int)
    }
    try manager.forEachDestinationObject(ofEntity: "Payment") { payment in
      let cents: Int = payment["cents"] ?? 0
      difference += Int128(cents)
      if cents == 0 { empty += 1 }
    }
    if empty > 0 { throw AuditError.emptyPayments(count: empty) }
    if difference != 0 { throw AuditError.totalChanged(byCents: difference) }
  }
}
