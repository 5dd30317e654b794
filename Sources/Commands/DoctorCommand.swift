import ArgumentParser
import GodwitFleet
import SystemPackage

struct DoctorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Checks limits, file systems, free space, clock and libraries.")

  @Argument(help: "The folder that holds the stores.")
  var folder = "."

  @Flag(help: "JSON Lines: one object a check.")
  var json = false

  func run() throws {
    let findings = Doctor(folder: FilePath(folder)).findings()
    for finding in findings {
      if json {
        Output.result(json: finding)
        continue
      }
      let mark = finding.isGood ? "ok     " : "WARNING"
      Output.result(
        "\(mark)  \(finding.name): \(finding.value)" + (finding.advice.map { ". \($0)" } ?? ""))
    }
    if findings.contains(where: { !$0.isGood }) { throw ExitStatus.configuration.exit }
  }
}
