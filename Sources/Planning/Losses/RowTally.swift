/// Rows that something is said about: how many, and which.
package struct RowTally: Hashable, Codable, Sendable {
  package private(set) var count: Int64 = 0
  /// The lowest `Z_PK`s among them, ``Reason/mostPrimaryKeys`` at most, ascending.
  package private(set) var primaryKeys: [Int64] = []

  package init(_ primaryKeys: [Int64] = []) { primaryKeys.forEach { add($0) } }

  package mutating func add(_ primaryKey: Int64) {
    count += 1
    if primaryKeys.count == Reason.mostPrimaryKeys {
      guard let last = primaryKeys.last, primaryKey < last else { return }
      primaryKeys.removeLast()
    }
    let place = primaryKeys.lastIndex { $0 <= primaryKey }.map { $0 + 1 } ?? 0
    primaryKeys.insert(primaryKey, at: place)
  }

  /// Adds `count` rows of which the lowest are known.
  mutating func add(_ lowest: [Int64], of count: Int64) {
    let total = self.count + count
    lowest.forEach { add($0) }
    self.count = total
  }
}

extension Loss {
  /// References for which a relationship of the destination has no room, as they were set by a
  /// mapping model; nil for none.
  ///
  /// - Parameter rows: The objects of the destination whose references are dropped.
  package init?(withoutRoomIn relationship: String, of entity: String, _ rows: RowTally) {
    guard rows.count > 0 else { return nil }
    self.init(
      .sharedTarget, entity: entity, property: relationship, count: rows.count,
      primaryKeys: rows.primaryKeys,
      message: "\(entity).\(relationship) has no room for all references that the mapping model "
        + "gives: \(Loss.number(rows.count, "reference")) "
        + "\(rows.count == 1 ? "is" : "are") dropped")
  }

  /// References to objects that went through entity mappings which nothing asks for them; nil for none.
  ///
  /// - Parameter rows: The objects of the source that have them.
  package init?(unaskedIn relationship: String, of entity: String, _ rows: RowTally) {
    guard rows.count > 0 else { return nil }
    self.init(
      .reference, entity: entity, property: relationship, count: rows.count,
      primaryKeys: rows.primaryKeys,
      message:
        "\(entity).\(relationship) points to objects of entity mappings that no expression for "
        + "it asks: \(Loss.number(rows.count, "reference")) \(rows.count == 1 ? "is" : "are") dropped."
    )
  }

  /// Values that the entity mappings which took their objects do not keep, where another one of the entity
  /// does; nil for none.
  ///
  /// - Parameter rows: The objects of the source that have them.
  package init?(unreadIn property: String, of entity: String, _ rows: RowTally) {
    guard rows.count > 0 else { return nil }
    self.init(
      .attribute, entity: entity, property: property, count: rows.count,
      primaryKeys: rows.primaryKeys,
      message: "\(entity).\(property) is not kept by the entity mappings that take "
        + "these objects: \(Loss.number(rows.count, "value")) \(rows.count == 1 ? "is" : "are") "
        + "dropped")
  }

  /// Numbers that the entity mappings which took their objects change, where another one of the entity does
  /// not; nil for none.
  ///
  /// - Parameter rows: The objects of the source that have them.
  package init?(narrowedIn property: String, of entity: String, _ rows: RowTally) {
    guard rows.count > 0 else { return nil }
    self.init(
      .narrowing, entity: entity, property: property, count: rows.count,
      primaryKeys: rows.primaryKeys,
      message:
        "\(entity).\(property) has narrower types alone in the entity mappings that take these "
        + "objects: \(Loss.number(rows.count, "number")) "
        + "\(rows.count == 1 ? "changes" : "change").")
  }

  /// Places in a list that the entity mappings which took its owners do not keep, where another one of the
  /// entity does; nil for none.
  ///
  /// - Parameter rows: An owner for each member.
  package init?(unplacedIn relationship: String, of entity: String, _ rows: RowTally) {
    guard rows.count > 0 else { return nil }
    self.init(
      .order, entity: entity, property: relationship, count: rows.count,
      message:
        "The order of \(entity).\(relationship) is not kept by the entity mappings that take "
        + "these objects: the \(rows.count == 1 ? "place" : "places") of "
        + "\(Loss.number(rows.count, "member")) \(rows.count == 1 ? "is" : "are") dropped.")
  }

  /// Both as one, where shards have counted them for one reason; else nil.
  package func adding(_ other: Loss) -> Loss? {
    guard let entity, let property, kind == other.kind, entity == other.entity,
      property == other.property
    else { return nil }
    func made(_ rows: RowTally) -> Loss? {
      switch kind {
      case .sharedTarget: Loss(withoutRoomIn: property, of: entity, rows)
      case .reference: Loss(unaskedIn: property, of: entity, rows)
      case .attribute: Loss(unreadIn: property, of: entity, rows)
      case .narrowing: Loss(narrowedIn: property, of: entity, rows)
      case .order: Loss(unplacedIn: property, of: entity, rows)
      default: nil
      }
    }
    var rows = RowTally()
    rows.add(primaryKeys, of: count)
    // What a plan counted is of the same kind, and says another reason.
    guard kind == .sharedTarget || made(rows)?.message == message else { return nil }
    rows.add(other.primaryKeys, of: other.count)
    return made(rows)
  }
}

extension [Loss] {
  /// Adds what a shard has found to be lost, each property once: in an order that does not depend on which shard tells
  /// it first.
  package mutating func add(_ loss: Loss) {
    for place in indices {
      guard let sum = self[place].adding(loss) else { continue }
      self[place] = sum
      return
    }
    func key(_ loss: Loss) -> (String, String, String) {
      (loss.entity ?? "", loss.property ?? "", loss.kind.rawValue)
    }
    // What a plan counted stays ahead.
    let later = firstIndex { $0.adding($0) != nil && key($0) > key(loss) }
    insert(loss, at: later ?? endIndex)
  }
}
