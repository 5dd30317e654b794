import GodwitLedger

// What the page says in words.
extension View {
  /// What a person needs first: whether all is well, and if not, how much is not.
  static func headline(_ report: RunReport) -> String {
    let counts = report.counts
    let (snapshots, restored) = (counts.snapshots, report.restored ?? 0)
    let good = max(
      0, counts.migrated + counts.sameModel + counts.restored - snapshots - restored)
    let bad = counts.found - good - snapshots
    if counts.found == 0 {
      if report.run.message != nil || ![0, 3].contains(report.run.exitCode ?? 0) {
        return "This start did not begin with any store"
      }
      return report.fleet.map { $0.found > 0 } == true
        ? "No store of the pipeline was selected" : "No store was found"
    }
    let done =
      report.run.kind == "rollback"
      ? "restored"
      : report.destinationVersion.map { "at version \($0)" } ?? "at the destination's version"
    if bad == 0, snapshots == 0 {
      return counts.found == 1
        ? "The store is \(done)" : "All \(Figures.stores(counts.found)) are \(done)"
    }
    var parts = [
      "\(Figures.count(good)) of \(Figures.stores(counts.found)) \(good == 1 ? "is" : "are") \(done)"
    ]
    if snapshots > 0 {
      parts.append(
        "\(Figures.count(snapshots)) \(snapshots == 1 ? "has" : "have") a snapshot beside "
          + "\(snapshots == 1 ? "it" : "them")")
    }
    if bad > 0 { parts.append("\(Figures.count(bad)) \(bad == 1 ? "is" : "are") not") }
    return parts.joined(separator: "; ")
  }

  static func ending(_ run: RunReport.Run) -> String {
    let isRollback = run.kind == "rollback"
    guard let code = run.exitCode else {
      if run.ended != nil {
        return
          "The \(isRollback ? "rollback" : "run") was killed. A later one has brought it to its end."
      }
      return
        "The \(isRollback ? "rollback" : "run") has not ended: it is under way, or it was killed. Running "
        + "the same command again resumes it."
    }
    let words =
      switch code {
      case 0: "Everything is done."
      case 3: "Finished; some stores are not \(isRollback ? "restored" : "migrated")."
      case 4: "Stopped by the failure budget."
      case 69: "Stopped: worker processes could not be started."
      case 75: "Stopped early. Running the same command again resumes it."
      default: "Ended with an error."
      }
    return "\(words) \(run.message.map { $0 + " " } ?? "")Exit code \(code)."
  }

  /// What the run's own counts do not say: the stores that were put back since, those of the pipeline that
  /// the run was not about, as it left them or as later runs did, and those that are snapshots. Nil where
  /// there are none.
  static func rest(_ report: RunReport) -> String? {
    var sentences: [String] = []
    if let restored = report.restored {
      sentences.append(
        "A rollback has put \(Figures.stores(restored)) back since: \(restored == 1 ? "it is" : "they are") "
          + "at the version from before.")
    }
    if let fleet = report.fleet, fleet.found > report.counts.found {
      let bad = fleet.found - fleet.migrated - fleet.sameModel
      sentences.append(
        "The pipeline has \(Figures.stores(fleet.found)), of which \(Figures.count(bad)) "
          + "\(bad == 1 ? "is" : "are") not migrated as far as is known.")
    }
    if report.counts.snapshots > 0 {
      sentences.append(
        "A store in use stays at its version; the snapshot beside it is migrated, and a later run migrates "
          + "the store itself once nobody has it open.")
    }
    return sentences.isEmpty ? nil : sentences.joined(separator: " ")
  }

  static func tiles(_ report: RunReport) -> [Tile] {
    let counts = report.counts
    let good = counts.migrated + counts.sameModel + counts.restored
    let bad = counts.found - good + (report.restored ?? 0)
    var tiles = [
      Tile(
        value: Figures.count(counts.found), name: counts.found == 1 ? "store found" : "stores found"
      ),
      report.run.kind == "rollback"
        ? Tile(value: Figures.count(counts.restored), name: "restored")
        : Tile(value: Figures.count(counts.migrated), name: "migrated"),
      Tile(value: Figures.count(bad), name: "not done"),
      Tile(
        value: Figures.count(report.totals.rows), name: report.totals.rows == 1 ? "row" : "rows"),
      Tile(value: Figures.bytes(report.totals.sourceBytes), name: "of stores"),
      Tile(
        value: Figures.count(report.totals.storesWithLosses),
        name: report.totals.storesWithLosses == 1 ? "store with losses" : "stores with losses"),
      Tile(value: Figures.bytes(report.totals.backupBytes), name: "of backups"),
    ]
    if let seconds = report.run.workedSeconds {
      tiles.append(Tile(value: Figures.seconds(seconds), name: "at work"))
    }
    return tiles
  }

  static func verdicts(_ report: RunReport) -> [Verdict] {
    let counts = report.counts
    let isRollback = report.run.kind == "rollback"
    return [
      isRollback
        ? ("restored", counts.restored, "Restored") : ("migrated", counts.migrated, "Migrated"),
      ("same-model", counts.sameModel, "At the version already"),
      ("refused", counts.refused, "Refused"),
      ("needs-mapping", counts.needsMapping, "Need a mapping model"),
      ("quarantined", counts.quarantined, "Quarantined"),
      ("failed", counts.failed, "Failed"),
      ("pending", counts.pending, "Not done yet"),
    ].filter { $0.1 > 0 }.map {
      Verdict(verdict: $0.0, count: $0.1, countText: Figures.count($0.1), words: $0.2)
    }
  }

  static func failure(_ failure: RunReport.Failure) -> Failure {
    var title = "\(Figures.stores(failure.count)): \(failure.verdict), \(failure.reason)"
    if let code = failure.code { title += " (Core Data \(code))" }
    let more = failure.count - failure.examples.count
    return Failure(
      verdict: failure.verdict, title: title, advice: failure.advice, message: failure.message,
      examples: failure.examples,
      more: more > 0 ? "And \(Figures.stores(more)) more: see the table below." : nil)
  }

  static func loss(_ loss: RunReport.Loss) -> Loss {
    Loss(
      kind: loss.kind,
      place: [loss.entity, loss.property].compactMap { $0 }.joined(separator: "."),
      count: Figures.count(loss.count), stores: Figures.count(loss.stores),
      message: loss.stores > 1 ? meanings[loss.kind] ?? loss.message : loss.message)
  }

  /// Of a loss in several stores; the message of one has that one's counts.
  private static let meanings = [
    "entity": "Objects of an entity that has no successor were dropped.",
    "attribute": "Values of an attribute that has no successor were dropped.",
    "relationship": "References of a relationship that has no successor were dropped.",
    "reference": "References to dropped objects became NULL.",
    "shared-target": "References that the destination has no room for were dropped.",
    "narrowing": "Numbers that the new type cannot hold were changed.",
    "table": "Rows of a table that is none of the model's were dropped.",
    "column": "Values of a column that is none of the model's were dropped.",
    "history": "Persistent history or CloudKit mirroring was not carried.",
    "left-out": "Objects that no entity mapping selects are dropped.",
    "order": "The order of a relationship is not kept.",
    "set-aside": "Objects that break the destination's rules were set aside.",
    "defaulted": "Values that break the destination's rules gave way to default values.",
  ]

  /// An SVG document as an element of a page: without what stands before it.
  static func inline(_ svg: String) -> String {
    svg.firstRange(of: "<svg").map { String(svg[$0.lowerBound...]) } ?? ""
  }
}
