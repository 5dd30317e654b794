import GodwitFleet
import GodwitLedger

/// A plan of a pipeline for people.
enum FleetPlanText {
  static func lines(_ plan: FleetPlan, _ summary: PipelineSummary) -> [String] {
    var lines = ["\(plan.pipeline): \(stores(summary.found)) found"]
    for cohort in plan.cohorts {
      let isNamedAlone = !plan.cohorts.contains {
        ($0.source, $0.destination) == (cohort.source, cohort.destination)
          && $0.sourceChecksum != nil && $0.sourceChecksum != cohort.sourceChecksum
      }
      lines += self.cohort(cohort, isNamedAlone: isNamedAlone)
    }
    lines += PipelineReport.lines(plan.reasons)
    lines += losses(plan)
    if let forecast = plan.forecast {
      lines += self.lines(forecast)
      if let free = plan.freeBytes, free < forecast.peakBytes {
        lines.append("  WARNING: only \(ByteSize.text(free)) are free")
      }
    }
    return lines
  }

  /// What would be lost, and what a sample shows beside that.
  static func losses(_ plan: FleetPlan) -> [String] {
    lines(plan.losses) + (plan.trial.map { lines($0) } ?? [])
  }

  /// What only a migration finds out.
  private static func lines(_ trial: FleetPlan.Trial) -> [String] {
    let failed = trial.reasons.reduce(0) { $0 + $1.count }
    guard failed > 0 || !trial.losses.isEmpty else { return [] }
    var lines = ["Of a sample of \(stores(trial.stores)), migrated privately:"]
    lines += PipelineReport.lines(trial.reasons).map { "  " + $0 }
    return lines + trial.losses.map(loss)
  }

  /// What the destination has no place for.
  static func lines(_ losses: [FleetPlan.LossTotal]) -> [String] {
    losses.isEmpty ? [] : ["What the destination has no place for:"] + losses.map(loss)
  }

  /// - Parameter isNamedAlone: False where versions of another model have the same names.
  private static func cohort(_ cohort: FleetPlan.Cohort, isNamedAlone: Bool) -> [String] {
    let size = "\(stores(cohort.stores)), \(ByteSize.text(cohort.bytes))"
    guard cohort.verdict == .migrated else {
      return ["  of the destination's version already: \(size)"] + notes(cohort)
    }
    var line = "  \(cohort.source ?? "unknown") → \(cohort.destination ?? "unknown")"
    if !isNamedAlone, let checksum = cohort.sourceChecksum { line += " (checksum \(checksum))" }
    line += ": \(size)"
    if let way = cohort.way { line += way == "inferred" ? ", inferred" : ", by \(way)" }
    return [line] + (cohort.path ?? []).enumerated().map { "    \($0.offset + 1). \($0.element)" }
      + notes(cohort)
  }

  /// What is to be known of stores of the destination's version.
  static func lines(_ notes: [String: Int]) -> [String] {
    notes.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { note, count in
      "note: \(note) (\(stores(count)))"
    }
  }

  private static func notes(_ cohort: FleetPlan.Cohort) -> [String] {
    cohort.notes.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { note, count in
      "    note: \(note)" + (count == cohort.stores ? "" : " (\(stores(count)))")
    }
  }

  private static func loss(_ loss: FleetPlan.LossTotal) -> String {
    let place = [loss.entity, loss.property].compactMap { $0 }.joined(separator: ".")
    let what = LossWords.what(loss.kind.rawValue, count: loss.count)
    let name = place.isEmpty ? "" : "\(place): "
    return "  \(name)\(grouped(loss.count)) \(what) in \(stores(loss.stores))"
  }

  private static func lines(_ forecast: FleetForecast) -> [String] {
    let least = ProgressDisplay.text(seconds: forecast.leastSeconds)
    let most = ProgressDisplay.text(seconds: forecast.mostSeconds)
    return [
      "Forecast, from \(stores(forecast.sampled)) migrated privately:",
      "  about \(ProgressDisplay.text(seconds: forecast.seconds)), between \(least) and \(most)",
      "  \(ByteSize.text(forecast.bytes)) written; \(ByteSize.text(forecast.keptBytes)) more on disk "
        + "afterwards, \(ByteSize.text(forecast.peakBytes)) at most meanwhile",
    ]
  }

  private static func stores(_ count: Int) -> String {
    count == 1 ? "1 store" : "\(grouped(Int64(count))) stores"
  }
}
