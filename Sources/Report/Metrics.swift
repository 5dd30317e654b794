import GodwitDurableFiles
import GodwitLedger

/// A run's figures in Prometheus's text format, for the textfile collector of its node exporter.
/// Source: https://prometheus.io/docs/instrumenting/exposition_formats/
///
/// The only labels are the pipeline's name, verdicts and stages: one for each store would be too many
/// series for any monitoring.
package enum Metrics {
  /// - Parameter now: Seconds since 1970 in UTC.
  package static func text(of report: RunReport, now: Double) -> String {
    var text = Writer(pipeline: report.pipeline)
    text.add(report.run)
    // A run over some of the stores says nothing of the others.
    let counts = report.fleet ?? report.counts
    text.add(
      "godwit_stores",
      "Stores of the pipeline by verdict, as the last run that came to each left it.",
      [
        ("migrated", counts.migrated), ("same-model", counts.sameModel),
        ("refused", counts.refused), ("needs-mapping", counts.needsMapping),
        ("quarantined", counts.quarantined), ("failed", counts.failed),
        ("pending", counts.pending), ("restored", counts.restored),
      ].map { ([("verdict", $0.0)], Double($0.1)) })
    text.add(
      "godwit_snapshots",
      "Of those migrated, snapshots of stores in use, which stay at their version.",
      [([], Double(counts.snapshots))])
    text.add(
      "godwit_stores_with_losses", "Stores that lost rows, values or references.",
      [([], Double(report.totals.storesWithLosses))])
    text.add("godwit_rows", "Rows that were migrated.", [([], Double(report.totals.rows))])
    text.add(
      "godwit_source_bytes", "Bytes of the stores that were worked on.",
      [([], Double(report.totals.sourceBytes))])
    text.add(
      "godwit_backup_bytes", "Bytes of the backups that the last run made.",
      [([], Double(report.totals.backupBytes))])
    text.add(
      "godwit_stage_seconds", "Time in a stage, of all stores together.",
      report.stages.map { ([("stage", $0.stage)], $0.seconds) })
    text.addTime(now)
    return text.text
  }

  /// Of a start that failed before it had a result, where the ledger is not there to tell more.
  ///
  /// - Parameter now: Seconds since 1970 in UTC.
  package static func text(ofStart run: RunReport.Run, pipeline: String, now: Double) -> String {
    var text = Writer(pipeline: pipeline)
    text.add(run)
    text.addTime(now)
    return text.text
  }

  private struct Writer {
    let pipeline: String
    private(set) var text = ""

    init(pipeline: String) { self.pipeline = pipeline }

    mutating func add(_ run: RunReport.Run) {
      add("godwit_run_start_timestamp_seconds", "When the last run started.", [([], run.started)])
      if let ended = run.ended {
        add("godwit_run_end_timestamp_seconds", "When the last run ended.", [([], ended)])
      }
      if let seconds = run.workedSeconds {
        add(
          "godwit_run_duration_seconds",
          "How long the last run was at work, without the time between its starts.",
          [([], seconds)])
      }
      if let code = run.exitCode {
        add("godwit_run_exit_code", "The exit code of the last run.", [([], Double(code))])
      }
    }

    mutating func addTime(_ now: Double) {
      add("godwit_metrics_timestamp_seconds", "When these figures were written.", [([], now)])
    }

    mutating func add(
      _ name: String, _ help: String, _ values: [(labels: [(String, String)], value: Double)]
    ) {
      guard !values.isEmpty else { return }
      text += "# HELP \(name) \(help)\n# TYPE \(name) gauge\n"
      for (labels, value) in values {
        let words = ([("pipeline", pipeline)] + labels).map { "\($0.0)=\"\(Self.escaped($0.1))\"" }
        text += "\(name){\(words.joined(separator: ","))} \(Self.number(value))\n"
      }
    }

    private static func number(_ value: Double) -> String {
      Int64(exactly: value).map(String.init) ?? "\(value)"
    }

    private static func escaped(_ text: String) -> String {
      text.replacingSigns { scalar in
        switch scalar {
        case "\\", "\"": "\\\(scalar)"
        case "\n": "\\n"
        default: nil
        }
      }
    }
  }
}
