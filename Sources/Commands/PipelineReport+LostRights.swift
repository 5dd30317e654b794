import GodwitFleet

extension PipelineReport {
  /// What is said at the end even to somebody who wants to hear of nothing that ends well: an application may no
  /// longer be able to open its store.
  static func warnings(_ totals: LostRightsTotals) -> [String] {
    var warnings: [String] = []
    if totals.owners.count > 0 {
      warnings.append(
        "the owner of \(stores(totals.owners, "user ")). The new files belong to this user. Set the owner "
          + "(chown). To keep it, run as that user or as root.")
    }
    if totals.groups.count > 0 {
      warnings.append(
        "the group of \(stores(totals.groups, "group ")). The new files belong to another group, which has no more "
          + "rights to them than everybody. Set the group (chgrp) and its rights. To keep them, run as a member of "
          + "the group or as root.")
    }
    if totals.attributes.count > 0 {
      warnings.append(
        "extended attributes of \(stores(totals.attributes, "")). Set them (setfattr, setfacl, setcap), or run "
          + "as root.")
    }
    return warnings
  }

  /// Such as `3 stores could not be kept: /a (group 12), /b (group 13) and 1 more`.
  private static func stores(_ total: LostRightsTotals.Total, _ word: String) -> String {
    let stores = total.count == 1 ? "1 store" : "\(grouped(Int64(total.count))) stores"
    let examples = total.examples.map { "\($0.store) (\(word)\($0.lost))" }
    let more = total.count - examples.count
    return "\(stores) could not be kept: \(examples.joined(separator: ", "))"
      + (more > 0 ? " and \(grouped(Int64(more))) more" : "")
  }
}
