import Foundation
import Testing

@testable import GodwitExpressions

/// Where the Python evaluator lies.
private let harness = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
  .deletingLastPathComponent().appendingPathComponent("Harness/expressions/agree.py").path

private let python = ["/usr/bin/python3", "/usr/local/bin/python3"].first {
  FileManager.default.isExecutableFile(atPath: $0)
}

@Suite struct `Two evaluators` {
  /// `GODWIT_EXPRESSIONS` sets another number; `scripts/expressions` asks for 10 000.
  static let count =
    ProcessInfo.processInfo.environment["GODWIT_EXPRESSIONS"].flatMap { Int($0) } ?? 2_000
  static let seed =
    ProcessInfo.processInfo.environment["GODWIT_SEED"].flatMap { UInt64($0) } ?? 1

  @Test(.enabled(if: python != nil))
  func `agree on drawn expressions over drawn objects`() throws {
    let file = FileManager.default.temporaryDirectory
      .appendingPathComponent("expressions-\(ProcessInfo.processInfo.processIdentifier).jsonl")
    defer { try? FileManager.default.removeItem(at: file) }
    try Data(try lines().joined(separator: "\n").utf8).write(to: file)

    let process = Process()
    process.executableURL = URL(fileURLWithPath: try #require(python))
    process.arguments = ["-B", harness, file.path]
    let output = Pipe()
    process.standardOutput = output
    process.standardError = output
    try process.run()
    let said = String(
      decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(process.terminationStatus == 0, "seed \(Self.seed): \(said)")
    #expect(said.hasPrefix("\(Self.count) of \(Self.count) expressions agree"), "\(said)")
    if Self.count != 2_000 { print(said, terminator: "") }
  }

  private func lines() throws -> [String] {
    var result: [String] = []
    var random = Seeded(seed: Self.seed)
    var objects = EvaluationObjects()
    var draw = EvaluationDraw(seed: Self.seed &+ 77)
    for number in 0..<Self.count {
      if number % 10 == 0 {
        objects = EvaluationObjects.drawn(&random)
        result.append(try line(["graph": Self.graph(of: objects)]))
      }
      let text = draw.expression().description
      let people = objects.order.filter { $0.entity == "Person" }
      let source = random.pick(people)
      // What is read back is evaluated, so that the text is the whole question.
      let expression = try ValueExpression(parsing: text)
      let evaluator = Evaluator(access: objects, runDate: 0)
      var entry: [String: Any] = [
        "expression": text, "source": [source.entity.rawValue, source.primaryKey],
      ]
      do {
        let scope = EvaluationScope(source: source, evaluatedObject: .object(source))
        entry["result"] = Self.json(try evaluator.value(of: expression, in: scope))
      } catch let error as EvaluationError {
        entry["error"] = Self.name(of: error.problem)
      }
      result.append(try line(entry))
    }
    return result
  }

  private func line(_ entry: [String: Any]) throws -> String {
    String(
      decoding: try JSONSerialization.data(withJSONObject: entry, options: [.sortedKeys]),
      as: UTF8.self)
  }

  private static func name(of problem: EvaluationProblem) -> String {
    String("\(Mirror(reflecting: problem).children.first?.label ?? caseName(problem))")
  }

  /// Cases without a payload have no mirror.
  private static func caseName(_ problem: EvaluationProblem) -> String {
    switch problem {
    case .divisionByZero: "divisionByZero"
    case .overflow: "overflow"
    case .badIndex: "badIndex"
    default: "tooDeep"
    }
  }

  private static func graph(of objects: EvaluationObjects) -> [[Any]] {
    objects.order.map { object in
      [
        object.entity.rawValue, object.primaryKey,
        (objects.rows[object] ?? [:]).mapValues { json($0) },
      ]
    }
  }

  private static func json(_ value: ExpressionValue) -> [Any] {
    switch value {
    case .null: ["n"]
    case .boolean(let value): ["b", value]
    case .integer(let value): ["i", String(value)]
    case .real(let value): ["r", value.description]
    case .decimal(let value): ["d", value.description]
    case .string(let text): ["s", text]
    case .date(let seconds): ["t", seconds.description]
    case .data(let bytes): ["x", HexadecimalText.text(bytes)]
    case .uuid(let uuid): ["u", uuid.text]
    case .url(let text): ["l", text]
    case .object(let object): ["o", object.entity.rawValue, object.primaryKey]
    case .array(let members): ["a", members.map { json($0) }]
    case .set(let members): ["S", members.map { json($0) }]
    case .orderedSet(let members): ["O", members.map { json($0) }]
    case .dictionary, .helper: ["?"]
    }
  }
}
