import GodwitFleet
import GodwitPersistentStore
import GodwitPlanning
import Synchronization

/// Says once what became of a store: a line of JSON, or a few of text.
final class ResultReport: Sendable {
  private let asJSON: Bool
  private let isQuiet: Bool
  private let isPlan: Bool
  private let losses: LossPolicy
  private let acceptsDamage: Bool
  /// False where it is one store of a pipeline's.
  private let isOne: Bool
  /// Whether the reasons of one that did not end well are told.
  private let explains: Bool
  private let isReported = Mutex(false)

  init(
    asJSON: Bool, isQuiet: Bool, isPlan: Bool, losses: LossPolicy, acceptsDamage: Bool = false,
    isOne: Bool = true, explains: Bool = true
  ) {
    self.acceptsDamage = acceptsDamage
    self.isOne = isOne
    self.explains = explains
    self.asJSON = asJSON
    self.isQuiet = isQuiet
    self.isPlan = isPlan
    self.losses = losses
  }

  convenience init(_ arguments: MigrationArguments, isPlan: Bool = false) {
    self.init(
      asJSON: arguments.json, isQuiet: arguments.quiet, isPlan: isPlan,
      losses: arguments.losses ?? .warn, acceptsDamage: arguments.acceptDamage)
  }

  /// The result of a store whose command failed before there was a run.
  static func failure(of store: String, _ error: any Error) -> MigrationResult {
    guard let own = error as? CommandError else {
      return MigrationResult(failing: store, with: error)
    }
    return MigrationResult(
      store: store, verdict: .failed, ending: own.ending,
      reasons: [Reason(reason: own.reason, message: own.description)])
  }

  /// The first call counts: a run that ends while a second signal ends it says one thing.
  func end(_ result: MigrationResult) {
    let isFirst = isReported.withLock { said in
      defer { said = true }
      return !said
    }
    guard isFirst else { return }
    if result.ending != .done, explains { explain(result) }
    if asJSON {
      Output.result(jsonLine: result.jsonLine())
    } else if isOne ? !isQuiet || result.ending != .done : !isQuiet {
      for line in Self.lines(result, isPlan: isPlan) { Output.result(line) }
    } else if isOne, losses != .allow {
      // A migration that loses something is not a success to be silent about.
      for loss in result.losses { Output.say("\(result.store): loss: \(loss.message)") }
    }
  }

  private func explain(_ result: MigrationResult) {
    let code = result.code.map { " (Core Data \($0))" } ?? ""
    for reason in result.reasons { Output.say("\(result.store)\(code): \(reason.text)") }
    if result.code == 134_150,
      !result.reasons.contains(where: { $0.text.contains("godwit repair") })
    {
      Output.say("\(result.store): \(Self.advice(acceptingDamage: acceptsDamage, result.reasons))")
    }
  }

  /// What to do about a damaged store. Where damage was accepted already, this is none that can be.
  static func advice(acceptingDamage: Bool, _ reasons: [Reason] = []) -> String {
    let kinds = reasons.compactMap { StoreFinding.Kind(rawValue: $0.reason) }
    let isNeverTaken = !kinds.isEmpty && !kinds.contains(where: Damage.isAcceptable)
    return "Restore it from a backup, "
      + (acceptingDamage || isNeverTaken
        ? "or save what can be saved with `godwit repair`. --accept-damage does not take this."
        : "save what can be saved with `godwit repair`, or carry on with --accept-damage, which takes some "
          + "of it.")
  }

  static func lines(_ result: MigrationResult, isPlan: Bool) -> [String] {
    var lines: [String] = []
    switch result.verdict {
    case .sameModel:
      lines.append("\(result.store): same model, nothing to do")
    case .migrated where isPlan && result.output == nil:
      lines.append("\(result.store): would be migrated\(versions(result))")
    case .migrated:
      var line = "\(result.store): migrated\(versions(result))"
      if let rows = result.rows { line += ", \(grouped(rows)) \(rows == 1 ? "row" : "rows")" }
      if let seconds = result.seconds { line += " in \(ProgressDisplay.text(seconds: seconds))" }
      lines.append(line)
      if let backup = result.backup {
        lines.append("  the source is kept as \(backup)")
      } else if let output = result.output, output != result.store {
        lines.append("  written to \(output)")
      }
      if let setAside = Self.setAside(result) { lines.append("  \(setAside)") }
      if let table = result.uriTable {
        lines.append(
          "  \(grouped(table.pairs)) \(table.pairs == 1 ? "pair" : "pairs") of object URIs in \(table.path)"
        )
      }
    case .refused, .needsMapping, .quarantined, .pending, .failed:
      lines.append("\(result.store): \(result.verdict.rawValue)")
    }
    for (number, step) in (result.path ?? []).enumerated() where result.path?.count != 1 {
      lines.append("  \(number + 1). \(step)")
    }
    if isPlan, let plan = result.plan { lines += planLines(plan) }
    // Of a refused migration, the reasons name them.
    if result.verdict != .refused { lines += result.losses.map { "  loss: \($0.message)" } }
    lines += result.notes.map { "  note: \($0)" }
    if result.ending == .done { lines += result.findings.map { "  found: \($0.description)" } }
    return lines
  }

  /// How many objects were left out, and where they are noted; nil for none.
  static func setAside(_ result: MigrationResult) -> String? {
    guard let rejects = result.rejects, let count = result.setAside else { return nil }
    return
      "\(grouped(count)) \(count == 1 ? "object is" : "objects are") set aside, noted in \(rejects)"
  }

  private static func versions(_ result: MigrationResult) -> String {
    guard let source = result.source, let destination = result.destination else { return "" }
    return " from \(source) to \(destination)"
  }

  private static func planLines(_ plan: MigrationResult.Plan) -> [String] {
    var lines = [
      "  \(plan.shards) \(plan.shards == 1 ? "shard" : "shards"), \(ByteSize.text(plan.bytes)) of rows"
        + (plan.diskBytes.map { ", \(ByteSize.text($0)) of free space needed" } ?? "")
    ]
    let tables = plan.tables ?? []
    let width = tables.map(\.name.count).max() ?? 0
    for table in tables {
      let name = table.name + String(repeating: " ", count: width - table.name.count)
      let size =
        table.shards == 0
        ? ""
        : "  \(table.shards) \(table.shards == 1 ? "shard" : "shards")"
          + (table.bytes == 0 ? "" : ", \(ByteSize.text(table.bytes))")
      lines.append("  \(name)  \(table.way)\(size)")
    }
    return lines + mappingLines(plan)
  }

  /// Which mapping models are run, and what becomes of what.
  private static func mappingLines(_ plan: MigrationResult.Plan) -> [String] {
    guard let models = plan.mappingModels else { return [] }
    guard !models.isEmpty else { return ["  the mapping is inferred"] }
    let mappings = plan.mappings ?? []
    let width = mappings.map(\.name.count).max() ?? 0
    return ["  by \(models.joined(separator: ", then "))"]
      + mappings.map { mapping in
        let name = mapping.name + String(repeating: " ", count: width - mapping.name.count)
        var words = [
          "    \(name)  \(mapping.source ?? "nothing") → \(mapping.destination ?? "nothing")"
        ]
        if let takes = mapping.takes { words.append("where \(takes)") }
        if let policy = mapping.policy { words.append("policy \(policy)") }
        if mapping.hasNewKeys { words.append("new keys") }
        return words.joined(separator: ", ")
      }
  }
}

extension Reason {
  /// The message with its place before it, where the message does not name it itself.
  var text: String {
    guard let entity, !names(entity) else { return message }
    return "\(entity)\(property.map { "." + $0 } ?? ""): \(message)"
  }

  /// An entity's name may be a word of the message, or a part of one: `Date cannot become String`.
  private func names(_ entity: String) -> Bool {
    if message.hasPrefix("\(entity) with Z_PK") { return true }
    if let property { return message.contains("\(entity).\(property)") }
    return [" ", ".", ",", ":"].contains { message.hasPrefix(entity + $0) }
  }
}

extension MigrationResult.Verdict {
  /// After a number of stores.
  var words: String {
    switch self {
    case .migrated: "migrated"
    case .sameModel: "of the same model"
    case .refused: "refused"
    case .needsMapping: "without a mapping model"
    case .quarantined: "quarantined"
    case .pending: "not done yet"
    case .failed: "failed"
    }
  }
}
