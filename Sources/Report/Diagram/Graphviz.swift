import Foundation
import GodwitPrograms

/// Graphviz, which draws diagrams: the program `dot`, found on the `PATH` when it is needed.
package enum Graphviz {
  /// Why a diagram was not drawn.
  package enum Failure: Error, Sendable, Equatable {
    /// There is no `dot` on the `PATH`.
    case notInstalled
    /// It was ended after that many seconds.
    case tookTooLong(seconds: Int)
    /// The first line of what it wrote about it, or why it could not be started.
    case failed(message: String)
  }

  /// The path of `dot`; nil where it is not installed.
  package static var program: String? { HelperProgram(named: "dot")?.path }

  /// Draws a diagram.
  ///
  /// - Parameters:
  ///   - program: The path of `dot`; nil where there is none.
  ///   - timeoutSeconds: After it `dot` is ended: hundreds of entities that are all related may
  ///     take it hours.
  /// - Returns: An SVG document.
  /// - Throws: ``Failure``.
  package static func svg(
    of diagram: EntityDiagram, program: String? = Graphviz.program, timeoutSeconds: Int = 30
  ) throws -> String {
    guard let program else { throw Failure.notInstalled }
    let ending: HelperProgram.Ending
    do {
      ending = try HelperProgram(path: program).run(
        ["-Tsvg"], input: diagram.dot, timeoutSeconds: timeoutSeconds)
    } catch {
      throw Failure.failed(message: "\(error)")
    }
    if ending.tookTooLong { throw Failure.tookTooLong(seconds: timeoutSeconds) }
    guard ending.status == 0, let svg = String(data: ending.output, encoding: .utf8),
      svg.contains("</svg>")
    else { throw Failure.failed(message: ending.message) }
    return svg
  }
}

extension Graphviz.Failure: CustomStringConvertible {
  package var description: String {
    switch self {
    case .notInstalled:
      "The diagram needs Graphviz, and there is no program dot on the PATH. Install Debian's package "
        + "graphviz, or use --format dot and draw it elsewhere."
    case .tookTooLong(let seconds):
      "Graphviz did not draw the diagram within \(seconds) s. Use --format dot, and draw it with "
        + "another of Graphviz's programs, such as sfdp."
    case .failed(let message):
      "Graphviz could not draw the diagram: \(message). Use --format dot to see what it was given."
    }
  }
}
