import GodwitFleet

extension PipelineReport {
  /// What was wrong, by reason.
  static func lines(_ groups: [ReasonGroups.Group]) -> [String] {
    groups.flatMap { group in
      let stores = group.count == 1 ? "1 store" : "\(grouped(Int64(group.count))) stores"
      var lines = ["\(stores) \(group.verdict.words): \(group.reason)"]
      lines += group.examples.map { "  \($0)" }
      if group.count > group.examples.count {
        lines.append("  and \(grouped(Int64(group.count - group.examples.count))) more")
      }
      if let advice = group.advice { lines.append("  → \(advice)") }
      return lines
    }
  }

  static func line(_ summary: PipelineSummary) -> String {
    var parts = [(summary.migrated, "migrated"), (summary.sameModel, "same model")]
    parts += [(summary.refused, "refused"), (summary.needsMapping, "need a mapping model")]
    parts += [(summary.quarantined, "quarantined"), (summary.failed, "failed")]
    parts += [(summary.pending, "not done yet")]
    let said = parts.enumerated().filter { $0.element.0 > 0 || $0.offset == 0 }
    let text = said.map { "\(grouped(Int64($0.element.0))) \($0.element.1)" }
    let earlier = summary.earlier.map { $0 > 0 ? " (\(grouped(Int64($0))) before)" : "" } ?? ""
    let stores = summary.found == 1 ? "1 store" : "\(grouped(Int64(summary.found))) stores"
    return "\(summary.pipeline): \(stores): \(text[0])\(earlier)"
      + text.dropFirst().map { ", " + $0 }.joined()
  }

  /// What is to be known of stores that count as migrated, and are not at the destination's version.
  static func snapshotLine(_ count: Int) -> String {
    count == 1
      ? "1 of those migrated is a snapshot beside its store, which was in use and stays as it is"
      : "\(grouped(Int64(count))) of those migrated are snapshots beside their stores, which were in use "
        + "and stay as they are"
  }
}
