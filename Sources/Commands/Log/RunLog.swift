import GodwitFleet
import Logging

/// The log of a run: when it begins and ends, and what becomes of each store. It has no row data.
struct RunLog: Sendable {
  private let sink: LogSink
  private let logger: Logger

  /// - Parameter path: As of ``LogSink``.
  init(path: String, form: LogForm, pipeline: String) throws {
    let sink = try LogSink(path: path, form: form)
    self.sink = sink
    var logger = Logger(label: "godwit") { _ in SinkLogHandler(sink: sink) }
    logger[metadataKey: "pipeline"] = "\(pipeline)"
    self.logger = logger
  }

  /// Why a line is lost; nil where none is.
  var failure: String? { sink.failure }

  /// Takes an event of the run, on any thread.
  func take(_ event: PipelineEvent) {
    switch event {
    case .found(let found):
      logger.info(
        found.resumed == true ? "run resumed" : "run started",
        metadata: [
          "run": "\(found.run ?? "")", "stores": "\(found.stores)", "bytes": "\(found.bytes)",
        ])
    case .result(_, let result): log(result)
    default: break
    }
  }

  private func log(_ result: MigrationResult) {
    var metadata: Logger.Metadata = [
      "store": "\(result.store)", "verdict": "\(result.verdict.rawValue)",
    ]
    metadata["source"] = result.source.map { "\($0)" }
    metadata["destination"] = result.destination.map { "\($0)" }
    metadata["rows"] = result.rows.map { "\($0)" }
    metadata["seconds"] = result.seconds.map { "\($0)" }
    metadata["code"] = result.code.map { "\($0)" }
    if !result.losses.isEmpty { metadata["losses"] = "\(result.losses.count)" }
    let first = result.reasons.first
    metadata["reason"] = first.map { "\($0.reason)" }
    metadata["detail"] = first.map { "\($0.message)" }
    let level: Logger.Level =
      switch result.verdict {
      case .migrated, .sameModel: .info
      case .pending: .warning
      default: .error
      }
    logger.log(level: level, "store", metadata: metadata)
  }

  func end(_ summary: PipelineSummary, exitCode: Int32) {
    logger.log(
      level: exitCode == 0 ? .info : .warning,
      summary.detached == true ? "run detached" : "run ended",
      metadata: [
        "run": "\(summary.run ?? "")", "exit-code": "\(exitCode)", "found": "\(summary.found)",
        "migrated": "\(summary.migrated)", "same-model": "\(summary.sameModel)",
        "refused": "\(summary.refused)", "needs-mapping": "\(summary.needsMapping)",
        "quarantined": "\(summary.quarantined)", "failed": "\(summary.failed)",
        "pending": "\(summary.pending)",
      ])
  }
}
