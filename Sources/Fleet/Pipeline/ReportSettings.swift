import GodwitMapping
import SystemPackage

/// The key `report` of a pipeline: what is written, and who is called, at the end of each run.
package struct ReportSettings: Sendable, Equatable {
  /// The page of the run, replaced whole.
  package var html: FilePath?
  /// Metrics for the textfile collector of Prometheus's node exporter, replaced whole.
  package var metrics: FilePath?
  /// The address of a dead man's switch: called at the start, and at the end.
  package var ping: String?

  enum Key: String, CaseIterable { case html, metrics, ping }

  package init(html: FilePath? = nil, metrics: FilePath? = nil, ping: String? = nil) {
    (self.html, self.metrics, self.ping) = (html, metrics, ping)
  }

  /// - Parameter resolve: A path as the file has it, from where the process stands.
  init(_ value: YAMLValue, resolve: (String) -> String) throws {
    let fields = try value.fields(Key.self, of: "report")
    html = try fields[.html].map { try Self.path($0, "html", [".html", ".htm"], resolve) }
    // What the collector reads; it leaves everything else alone.
    metrics = try fields[.metrics].map { try Self.path($0, "metrics", [".prom"], resolve) }
    ping = try fields[.ping].map(Self.address)
  }

  /// What is plainly no address of the web; `DeadManSwitch` looks at the rest.
  private static func address(_ value: YAMLValue) throws -> String {
    let text = try value.text()
    guard ["http://", "https://"].contains(where: text.hasPrefix) else {
      throw value.problem("ping is an address of the web, as in https://hc-ping.com/UUID")
    }
    return text
  }

  private static func path(
    _ value: YAMLValue, _ key: String, _ endings: [String], _ resolve: (String) -> String
  ) throws -> FilePath {
    let text = try value.text()
    guard endings.contains(where: text.hasSuffix), !text.utf8.contains(0) else {
      throw value.problem("\(key) is a path that ends with \(endings[0])")
    }
    return FilePath(resolve(text))
  }
}
