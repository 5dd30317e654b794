extension MappingDocument {
  /// What can be said without the two models: names, and the policies that are needed.
  ///
  /// - Parameter registeredPolicies: The class names of the policies that are or will be there.
  public func findings(registeredPolicies: Set<String> = []) -> [MappingFinding] {
    var findings: [MappingFinding] = []
    var names: Set<String> = []
    for entry in entityMappings {
      let name = entry.effectiveName
      if !names.insert(name).inserted {
        findings.append(
          MappingFinding(
            .duplicateName, mapping: name,
            message: "another entity mapping has this name. Give each its own"))
      }
      if let policy = entry.policy, !registeredPolicies.contains(policy) {
        findings.append(
          MappingFinding(
            .missingPolicy, mapping: name, subject: policy,
            message: "the policy \(policy) is not registered. Port it to EntityMigrationPolicy "
              + "and register it under this name"))
      }
      if entry.source == nil, entry.destination == nil, entry.policy == nil {
        findings.append(
          MappingFinding(
            .emptyMapping, .warning, mapping: name,
            message: "it names no entity and does nothing. Remove it"))
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
    return findings
  }
}
