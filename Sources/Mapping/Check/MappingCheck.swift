import GodwitExpressions
import GodwitObjectModel

/// What can be said about a mapping model before a row is read: names, types, coverage, hashes,
/// selectors, policies.
///
/// Source: `core-data-migration.md` §3.3, §3.5, §4.
package struct MappingCheck: Sendable {
  /// What was found, each finding once. Empty for a mapping model without fault.
  package private(set) var findings: [MappingFinding] = []

  private let model: MappingModel
  private let source: EntityHierarchy
  private let destination: EntityHierarchy
  private let policies: [String: Set<String>]
  private let promised: Set<String>
  private let byName: [String: EntityMapping]
  private var found: Set<MappingFinding> = []

  /// Checks a mapping model against a source and a destination model.
  ///
  /// - Parameters:
  ///   - registeredPolicies: The policies at hand, by their class names as the mapping model spells
  ///     them (`Module.Class`), each with the selectors that `FUNCTION($entityPolicy, …)` may name.
  ///   - promisedPolicies: Class names of policies that will be there; nothing else is known of
  ///     them.
  ///   - earlierModels: Mapping models that are run before into the same destination: expressions
  ///     may name their entity mappings where the model has none of the name.
  ///   - held: What a store of one configuration holds of the two models: of no other entity is it said that
  ///     no entity mapping takes or makes its objects. Nil for all.
  package init(
    _ model: MappingModel, source: EntityHierarchy, destination: EntityHierarchy,
    registeredPolicies: [String: Set<String>] = [:], promisedPolicies: Set<String> = [],
    earlierModels: [MappingModel] = [],
    held: (source: EntityHierarchy, destination: EntityHierarchy)? = nil
  ) {
    self.model = model
    self.source = source
    self.destination = destination
    policies = registeredPolicies
    promised = promisedPolicies
    let known = model.entityMappings + earlierModels.flatMap(\.entityMappings)
    byName = Dictionary(known.map { ($0.name, $0) }) { first, _ in first }
    checkNames()
    if model.entityMappings.allSatisfy({ $0.type == .undefined }) { add(.nothingMapped) }
    checkHashes()
    for mapping in model.entityMappings { check(mapping) }
    checkCoverage(held?.source ?? source, held?.destination ?? destination)
  }

  /// True when nothing stands against running it.
  package var isSound: Bool { findings.allSatisfy { $0.severity == .warning } }
}

extension MappingCheck {
  private mutating func find(
    _ kind: MappingFinding.Kind, _ severity: MappingFinding.Severity = .error,
    _ mapping: EntityMapping? = nil, _ property: String? = nil, _ message: String,
    subject: String? = nil
  ) {
    let finding = MappingFinding(
      kind, severity, mapping: mapping?.name, property: property, subject: subject,
      message: message)
    add(finding)
  }

  private mutating func add(_ finding: MappingFinding) {
    if found.insert(finding).inserted { findings.append(finding) }
  }

  private mutating func checkNames() {
    var names: Set<String> = []
    for mapping in model.entityMappings where !names.insert(mapping.name).inserted {
      find(
        .duplicateName, .error, mapping, nil,
        "another entity mapping has this name. Give each its own")
    }
  }

  private mutating func checkHashes() {
    let (old, new) = (source.versionHashes, destination.versionHashes)
    for mapping in model.entityMappings {
      if let entity = mapping.sourceEntity, let hash = mapping.sourceHash, let actual = old[entity],
        hash != actual
      {
        find(
          .hashMismatch, .error, mapping, nil,
          "it was made for another version of the source entity \(entity)")
      }
      if let entity = mapping.destinationEntity, let hash = mapping.destinationHash,
        let actual = new[entity], hash != actual
      {
        find(
          .hashMismatch, .error, mapping, nil,
          "it was made for another version of the destination entity \(entity)")
      }
    }
  }

  /// Unmapped source entities lose their objects, unmapped destination entities start empty: both
  /// are legal, and how a mapping model comes to fit a pair of models that it was not made for.
  private mutating func checkCoverage(_ source: EntityHierarchy, _ destination: EntityHierarchy) {
    let taken = Set(model.entityMappings.compactMap(\.sourceEntity))
    let made = Set(model.entityMappings.compactMap(\.destinationEntity))
    for name in destination.order where destination[name]?.isAbstract == false {
      guard !made.contains(name) else { continue }
      find(
        .uncoveredDestination, .warning, nil, nil,
        "no entity mapping makes objects of the destination entity \(name)")
    }
    for name in source.order where source[name]?.isAbstract == false {
      guard !taken.contains(name) else { continue }
      find(
        .uncoveredSource, .warning, nil, nil,
        "no entity mapping takes the objects of the source entity \(name): they are dropped. "
          + "Add a mapping of type remove if that is meant")
    }
  }

  private mutating func check(_ mapping: EntityMapping) {
    for expression in mapping.unusedExpressions {
      add(.unused(expression, of: mapping.name))
    }
    if mapping.hasUnusedRows { add(.unusedRows(of: mapping.name)) }
    if mapping.type == .undefined {
      find(
        .emptyMapping, .warning, mapping, nil, "it names no entity and does nothing. Remove it")
      return
    }
    let sourceIsKnown = checkEntity(mapping.sourceEntity, in: source, "source", mapping)
    let destinationIsKnown = checkEntity(
      mapping.destinationEntity, in: destination, "destination", mapping)
    if let policy = mapping.policy, policies[policy] == nil, !promised.contains(policy) {
      find(
        .missingPolicy, .error, mapping, nil,
        "the policy \(policy) is not registered. Port it to EntityMigrationPolicy and register it "
          + "under this name", subject: policy)
    }
    guard sourceIsKnown, destinationIsKnown else { return }
    if mapping.sourceEntity == nil,
      let finding = MappingFinding.withoutSource(
        mapping.sourceSelection, of: mapping.name, isAddition: mapping.isAddition)
    {
      add(finding)
    }
    let first = findings.count
    checkSelection(of: mapping)
    if let entity = mapping.destinationEntity {
      checkRows(mapping.properties.attributes, of: mapping, entity, isRelationship: false)
      checkRows(mapping.properties.relationships, of: mapping, entity, isRelationship: true)
      checkRequired(mapping, entity)
    }
    // Without source objects and without a policy nothing of this is ever evaluated.
    if mapping.isAddition {
      for place in first..<findings.count { findings[place].severity = .warning }
    }
  }

  private mutating func checkEntity(
    _ entity: EntityName?, in model: EntityHierarchy, _ side: String, _ mapping: EntityMapping
  ) -> Bool {
    guard let entity else { return true }
    guard let description = model[entity] else {
      let suggestion = Spelling.closest(to: entity.rawValue, among: model.order.map(\.rawValue))
      find(
        .unknownEntity, .error, mapping, nil,
        "the \(side) model has no entity \(entity)"
          + (suggestion.map { ". Did you mean \($0)?" } ?? ""))
      return false
    }
    if description.isAbstract {
      find(
        .abstractEntity, side == "source" || mapping.isAddition ? .warning : .error, mapping, nil,
        "the \(side) entity \(entity) is abstract and has no objects")
    }
    return true
  }

  private mutating func checkSelection(of mapping: EntityMapping) {
    guard mapping.sourceEntity != nil else { return }
    var check = expressionCheck(mapping, nil)
    switch mapping.sourceSelection {
    case .all: return
    case .filter(let predicate):
      check.checkFilter(predicate)
    case .expression(let value):
      check.checkSelection(value)
    }
    take(check)
  }

  private func expressionCheck(_ mapping: EntityMapping, _ property: String?) -> ExpressionCheck {
    ExpressionCheck(
      mappings: byName, source: source, destination: destination, mapping: mapping,
      of: model.entityMappings, property: property)
  }

  private mutating func take(_ check: ExpressionCheck) {
    for finding in check.findings { if let finding = judged(finding) { add(finding) } }
  }

  /// What is left of a missing selector when the policy is known.
  private func judged(_ finding: MappingFinding) -> MappingFinding? {
    guard finding.kind == .missingPolicySelector, let selector = finding.subject,
      let policy = finding.mapping.flatMap({ byName[$0]?.policy })
    else { return finding }
    guard let selectors = policies[policy] else {
      return promised.contains(policy) ? nil : finding
    }
    if selectors.contains(selector) { return nil }
    let known = selectors.sorted { $0.precedesInBytes($1) }
    return MappingFinding(
      .unknownSelector, mapping: finding.mapping, property: finding.property, subject: selector,
      message: "the policy \(policy) has no selector \(selector)"
        + (Spelling.closest(to: selector, among: known).map { ". Did you mean \($0)?" }
          ?? ". Name it in the class's selectors"))
  }

  private mutating func checkRows(
    _ rows: [PropertyMapping], of mapping: EntityMapping, _ entity: EntityName,
    isRelationship: Bool
  ) {
    var names: Set<String> = []
    for (place, row) in rows.enumerated() {
      if !names.insert(row.name).inserted {
        find(.duplicateProperty, .error, mapping, row.name, "the property is mapped twice")
      }
      let property = destination.property(row.name, of: entity)?.property
      guard let property, isRelationship == (property.relationship != nil) else {
        let known = destination.properties(of: entity).map(\.property.name)
        let suggestion = property == nil ? Spelling.closest(to: row.name, among: known) : nil
        find(
          .unknownProperty, .error, mapping, row.name,
          property == nil
            ? "\(entity) has no property of this name"
              + (suggestion.map { ". Did you mean \($0)?" } ?? "")
            : "\(entity).\(row.name) is \(isRelationship ? "no" : "a") relationship")
        continue
      }
      guard let expression = row.expression else { continue }
      var check = expressionCheck(mapping, row.name)
      check.checkAssignment(of: expression, to: property)
      take(check)
      if !isRelationship { checkOrder(expression, row.name, before: rows[(place + 1)...], mapping) }
    }
  }

  /// Attributes are set in the order of their rows: `$destination` has no value yet of a later one.
  private mutating func checkOrder(
    _ expression: ValueExpression, _ property: String, before later: ArraySlice<PropertyMapping>,
    _ mapping: EntityMapping
  ) {
    for key in expression.firstKeys(of: "destination")
    where later.contains(where: { $0.name == key && $0.expression != nil }) {
      find(
        .yieldsNothing, .warning, mapping, property,
        "$destination.\(key) is read before it is set. Write the row of \(key) first")
    }
  }

  /// Required attributes that get neither a value nor a default fail in validation (1570), unless
  /// a policy sets them.
  private mutating func checkRequired(_ mapping: EntityMapping, _ entity: EntityName) {
    guard mapping.policy == nil, mapping.sourceEntity != nil else { return }
    var given: [String: ValueExpression] = [:]
    for row in mapping.properties.attributes + mapping.properties.relationships {
      given[row.name] = row.expression ?? given[row.name]
    }
    for declared in destination.properties(of: entity) {
      guard let attribute = declared.property.attribute, declared.property.isStored,
        attribute.defaultValue == nil, given[attribute.name] == nil
      else { continue }
      if !attribute.mayBeNull, attribute.type != .composite {
        let lack =
          attribute.hasUnstorableDefault
          ? "has a default that only the application can store" : "has no default"
        find(
          .requiredWithoutValue, .warning, mapping, attribute.name,
          "the attribute is required, \(lack) and is given no value: every object will fail "
            + "in validation (1570)")
      } else if attribute.hasUnstorableDefault {
        find(
          .yieldsNothing, .warning, mapping, attribute.name,
          "the attribute is given no value, and its default is one that only the application can store: it stays nil"
        )
      }
    }
    for declared in destination.properties(of: entity) {
      guard let relationship = declared.property.relationship, declared.property.isStored,
        !relationship.isToMany, !relationship.traits.isOptional
      else { continue }
      let inverse = destination.inverse(of: relationship)
      if let expression = given[relationship.name] {
        checkFollowed(by: expression, relationship, inverse, mapping)
      } else if !isGiven(inverse) {
        find(
          .requiredWithoutValue, .warning, mapping, relationship.name,
          "the relationship is required, and neither it nor its inverse is given a value: every object "
            + "will fail in validation (1570)")
      }
    }
  }

  /// What an optional relationship of the source leads to may be nothing, and then so does the required one.
  private mutating func checkFollowed(
    by expression: ValueExpression, _ relationship: RelationshipDescription,
    _ inverse: (entity: EntityName, relationship: RelationshipDescription)?,
    _ mapping: EntityMapping
  ) {
    guard let entity = mapping.sourceEntity,
      let key = expression.plainSourceKey ?? expression.followedSourceKey,
      let followed = source.property(key, of: entity)?.property.relationship,
      !followed.isToMany, followed.traits.isOptional,
      // Another value of the inverse may set what this one leaves open.
      !isGiven(inverse, otherwiseThan: source.inverse(of: followed)?.relationship.name)
    else { return }
    find(
      .requiredWithoutValue, .warning, mapping, relationship.name,
      "the relationship is required, and \(entity).\(key) is optional: an object without one fails in "
        + "validation (1570). Leave such objects out with a filter, or give them one in a policy")
  }

  /// Whether some entity mapping, or a policy, sets a relationship.
  ///
  /// - Parameter key: A relationship of the source; what only follows that does not count.
  private func isGiven(
    _ inverse: (entity: EntityName, relationship: RelationshipDescription)?,
    otherwiseThan key: String? = nil
  ) -> Bool {
    guard let inverse else { return false }
    return model.entityMappings.contains { mapping in
      guard let made = mapping.destinationEntity,
        destination.isKind(made, of: inverse.entity)
      else { return false }
      return mapping.policy != nil
        || mapping.properties.relationships.contains {
          guard $0.name == inverse.relationship.name, let expression = $0.expression else {
            return false
          }
          return key == nil || (expression.plainSourceKey ?? expression.followedSourceKey) != key
        }
    }
  }
}

extension EntityMapping {
  /// True for a new destination entity, which gets no objects.
  fileprivate var isAddition: Bool { if case .add = type { true } else { false } }
}
