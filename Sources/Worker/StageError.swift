import GodwitObjectModel
import GodwitPlanning

/// Why a stage cannot finish a shard. Nothing but the shard's own unfinished checkpoint is lost.
package enum StageError: Error, Sendable, Equatable {
  /// A message came before the run was opened, or names something that the plan does not have.
  case outOfOrder(String)
  /// A checkpoint that this stage builds upon does not fit the plan.
  case checkpointMismatch(table: String, unit: Int, what: String)
  /// The plan in the run directory cannot be read.
  case unreadablePlan(path: String, reason: String)
  /// A file of the external data folder that a row refers to cannot be read.
  case externalData(entity: String, primaryKey: Int64, reason: String)
  /// An association file of the run directory cannot be used.
  case association(path: String, reason: String)
  /// An expression gave an object that the relationship may not point to.
  case wrongTarget(entity: String, primaryKey: Int64, relationship: String, found: String)
  /// An object has more members than a derived attribute can count.
  case countOutOfRange(CountLimit, primaryKey: Int64)
  /// The plan was made by an executable that has this policy.
  case missingPolicy(String, mapping: String)
}

extension StageError {
  /// True when a file of the run directory is at fault, which a redo cures.
  package var isOfRunDirectory: Bool {
    switch self {
    case .checkpointMismatch, .unreadablePlan, .association: true
    case .outOfOrder, .externalData, .wrongTarget, .countOutOfRange, .missingPolicy: false
    }
  }
}

extension StageError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .outOfOrder(let what):
      "The worker was asked for \(what). This is a fault of Godwit; run the same command again."
    case .checkpointMismatch(let table, let unit, let what):
      "The checkpoints of \(table), shard \(unit), disagree: \(what). "
        + "Run again; the shard is redone. The source is unchanged."
    case .unreadablePlan(let path, let reason):
      "\(path) cannot be read as a plan: \(reason). Run again; the plan is made again."
    case .externalData(let entity, let key, let reason):
      "\(entity), Z_PK \(key): its external data cannot be read: \(reason)."
    case .association(let path, let reason):
      "\(path) cannot be used: \(reason). Run again; the file is made again."
    case .wrongTarget(let entity, let key, let relationship, let found):
      "\(entity) with Z_PK \(key), property \(relationship): its expression gives an object of "
        + "\(found), to which the relationship may not point: that is neither its destination entity nor "
        + "one of its sub-entities. Correct the expression, or the relationship."
    case .countOutOfRange(let limit, let key):
      "\(limit.entity) with Z_PK \(key), property \(limit.attribute): the derived attribute counts "
        + "\(limit.relationship), and the object has more objects in it than \(limit.type.xmlName) "
        + "can hold. Give \(limit.attribute) a wider type in the destination model, such as Integer 64."
    case .missingPolicy(let policy, let mapping):
      "The entity mapping \(mapping) needs the policy \(policy), which is not registered. Run the "
        + "executable that registers it."
    }
  }
}
