import ArgumentParser
import GodwitMapping
import GodwitObjectModel

extension MappingCommand {
  struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "check",
      abstract: "Checks a mapping model before a row is read (exit code 65 when it has errors).",
      discussion: """
        Names, types, coverage, version hashes, expressions, policies: those of the executable \
        that is called. Without the two models, only what the file itself says.
        """)

    @Argument(help: "A mapping model: .xcmappingmodel, .cdm or text.", completion: .file())
    var file: String

    @Argument(
      help: ArgumentHelp("The source's MODEL, then the destination's.", valueName: "a b"),
      completion: .file())
    var models: [String] = []

    @Option(
      help: ArgumentHelp(
        "The class name of a policy that will be registered; its selectors are not checked. "
          + "May repeat.", valueName: "name"))
    var policy: [String] = []

    @Option(
      help: ArgumentHelp(
        "A mapping model that is run before it into the same store, whose entity mappings it may "
          + "name. May repeat.", valueName: "file"), completion: .file())
    var after: [String] = []

    @Flag(help: "JSON Lines: one object a finding; the last one is the result.")
    var json = false

    func validate() throws {
      try ModelPair.validate(models)
      if !after.isEmpty, models.isEmpty {
        throw ValidationError("--after needs the two models: only with them names are followed.")
      }
    }

    func run() throws {
      let document = try MappingDocument(path: file)
      let findings = try findings(document)
      let record = MappingCheckLine(findings, file: file)
      if json {
        for finding in findings { Output.result(json: MappingFindingLine(finding)) }
        Output.result(json: record)
      } else {
        for finding in findings { Output.result(finding.description) }
        Output.result("\(file): \(record.summary)")
      }
      if !record.isSound { throw ExitStatus.badInput.exit }
    }

    private func findings(_ document: MappingDocument) throws -> [MappingFinding] {
      let registered = CommandLineTool.code.registeredPolicies.known(
        among: document.entityMappings.compactMap(\.policy))
      guard !models.isEmpty else {
        return document.findings(registeredPolicies: registered, promisedPolicies: Set(policy))
      }
      let pair = try ModelPair(models[0], models[1]).inference
      let model = MappingModel(document, source: pair.source, destination: pair.destination)
      let earlier = try after.map {
        MappingModel(
          try MappingDocument(path: $0), source: pair.source, destination: pair.destination)
      }
      return MappingCheck(
        model, source: pair.source, destination: pair.destination, registeredPolicies: registered,
        promisedPolicies: Set(policy), earlierModels: earlier
      ).findings + document.unsaidRemovals
    }
  }
}

/// One line of `mapping check --json`.
struct MappingFindingLine: Encodable {
  var event = "finding"
  var kind: MappingFinding.Kind
  var severity: MappingFinding.Severity
  var mapping: String?
  var property: String?
  var subject: String?
  var message: String

  init(_ finding: MappingFinding) {
    kind = finding.kind
    severity = finding.severity
    mapping = finding.mapping
    property = finding.property
    subject = finding.subject
    message = finding.message
  }
}

/// The last line of `mapping check --json`.
struct MappingCheckLine: Encodable {
  var event = "result"
  var file: String
  var isSound: Bool
  var errors: Int
  var warnings: Int
  /// Class names of policies that are not registered.
  var missingPolicies: [String]
  /// Selectors and keys of such policies that expressions call or read.
  var missingSelectors: [String]

  init(_ findings: [MappingFinding], file: String) {
    self.file = file
    errors = findings.count { $0.severity == .error }
    warnings = findings.count - errors
    isSound = errors == 0
    func subjects(_ kind: MappingFinding.Kind) -> [String] {
      Set(findings.filter { $0.kind == kind }.compactMap(\.subject)).sorted {
        $0.precedesInBytes($1)
      }
    }
    missingPolicies = subjects(.missingPolicy)
    missingSelectors = subjects(.missingPolicySelector)
  }

  var summary: String {
    func counted(_ count: Int, _ word: String) -> String {
      "\(count) \(word)\(count == 1 ? "" : "s")"
    }
    if errors + warnings == 0 { return "sound" }
    return "\(isSound ? "sound" : "not sound"): \(counted(errors, "error")), "
      + counted(warnings, "warning")
  }
}
