extension MappingDocument {
  /// What can be said without the two models: names, and the policies that are needed.
  ///
  /// - Parameters:
  ///   - registeredPolicies: As for ``MappingCheck``.
  ///   - promisedPolicies: Class names of policies that will be there.
  package func findings(
    registeredPolicies: [String: Set<String>] = [:], promisedPolicies: Set<String> = []
  ) -> [MappingFinding] {
    var findings: [MappingFinding] = []
    if entityMappings.allSatisfy(\.namesNothing) { findings.append(.nothingMapped) }
    var names: Set<String> = []
    for entry in entityMappings {
      let name = entry.effectiveName
      if !names.insert(name).inserted {
        findings.append(
          MappingFinding(
            .duplicateName, mapping: name,
            message: "another entity mapping has this name. Give each its own"))
      }
      if let policy = entry.policy, registeredPolicies[policy] == nil,
        !promisedPolicies.contains(policy)
      {
        findings.append(
          MappingFinding(
            .missingPolicy, mapping: name, subject: policy,
            message: "the policy \(policy) is not registered. Port it to EntityMigrationPolicy "
              + "and register it under this name"))
      }
      if entry.namesNothing {
        findings.append(
          MappingFinding(
            .emptyMapping, .warning, mapping: name,
            message: "it names no entity and does nothing. Remove it"))
      }
      if entry.source == nil, !entry.namesNothing,
        let finding = MappingFinding.withoutSource(
          entry.selection, of: name, isAddition: entry.evaluatesNothing)
      {
        findings.append(finding)
      }
      findings += entry.unusedExpressions.map { .unused($0, of: name) }
      if entry.hasUnusedRows { findings.append(.unusedRows(of: name)) }
      let known = entry.policy.flatMap { registeredPolicies[$0] } ?? []
      let isPromised = entry.policy.map(promisedPolicies.contains) ?? false
      for (property, selector) in entry.policySelectors
      where !isPromised && !known.contains(selector) {
        findings.append(
          MappingFinding(
            .missingPolicySelector, entry.evaluatesNothing ? .warning : .error, mapping: name,
            property: property, subject: selector,
            message: MappingFinding.missingSelector(selector, of: entry.policy)))
      }
      var properties: Set<String> = []
      for row in entry.attributes + entry.relationships
      where !properties.insert(row.name).inserted {
        findings.append(
          MappingFinding(
            .duplicateProperty, mapping: name, property: row.name,
            message: "the property is mapped twice"))
      }
    }
    return findings + unsaidRemovals
  }
}

extension MappingDocument.Entry {
  fileprivate var namesNothing: Bool { source == nil && destination == nil && policy == nil }

  /// What expressions ask `$entityPolicy` for, with the property; nil for the source expression.
  fileprivate var policySelectors: [(property: String?, selector: String)] {
    var found: [(String?, String)] = []
    switch selection {
    case .all: break
    case .filter(let predicate): found += predicate.policySelectors.map { (nil, $0) }
    case .expression(let value): found += value.policySelectors.map { (nil, $0) }
    }
    for row in hasUnusedRows ? [] : attributes + relationships {
      switch row.value {
      case .expression(let value), .along(let value):
        found += value.policySelectors.map { (row.name, $0) }
      case .automatic, .unset: break
      }
    }
    return found
  }
}
