import Foundation
import StoreFixtures
import Testing

/// Slurm's commands, as scripts that say what a test has them say.
@Suite struct `A cluster whose commands say` {
  /// Where the commands lie.
  private func commands(_ folder: PipelineFolder, sbatch: String, sinfo: String? = nil) throws
    -> String
  {
    let bin = folder.path("bin")
    try FileManager.default.createDirectory(atPath: bin, withIntermediateDirectories: true)
    let programs = [
      "sinfo": sinfo ?? "echo 'n1|2|idle|all*'", "scontrol": "echo 'MaxArraySize = 1001'",
      "squeue": "true", "scancel": "true", "sbatch": sbatch,
    ]
    for (name, body) in programs {
      try "#!/bin/sh\n\(body)\n".write(toFile: "\(bin)/\(name)", atomically: true, encoding: .utf8)
      try FileManager.default.setAttributes(
        [.posixPermissions: 0o755], ofItemAtPath: "\(bin)/\(name)")
    }
    return bin
  }

  @Test func `that it refuses keeps no other command away`() throws {
    let folder = try PipelineFolder.orders(["a"])
    let bin = try commands(folder, sbatch: "echo 'sbatch: error: invalid account' >&2; exit 1")
    let run = try Godwit.run(
      ["run", folder.url.path, "--engine", "slurm", "--json"], programs: bin)
    #expect(run.status == 69, "\(run.messages)")
    #expect(run.messages.contains("invalid account"))
    #expect(try folder.godwit(["run"]).counts == "1 found, 1 migrated")
  }

  @Test func `that it refuses what goes on with the run has the bundles named that are submitted`()
    throws
  {
    let folder = try PipelineFolder.orders(["a"])
    let refusal = "cat >/dev/null; echo 'sbatch: error: Invalid qos.' >&2; exit 1"
    let bin = try commands(
      folder, sbatch: "case \"$*\" in *--array*) cat >/dev/null; echo 7;; *) \(refusal);; esac")
    let run = try Godwit.run(
      ["run", folder.url.path, "--engine", "slurm", "--detach", "--json"], programs: bin)
    #expect(run.status == 69, "\(run.messages)")
    #expect(run.messages.contains("Invalid qos. Check"), "\(run.messages)")
    #expect(run.messages.contains("(000001-") && run.messages.contains("are worked on"))
  }

  @Test func `which state folder a detached run has begins at the root`() throws {
    let folder = try PipelineFolder.orders(["a"])
    let script = folder.path("next.sh")
    let bin = try commands(
      folder,
      sbatch: "case \"$*\" in *--array*) cat >/dev/null;; *) cat >'\(script)';; esac; echo 7")
    let run = try Godwit.run(
      ["run", folder.url.path, "--engine", "slurm", "--detach", "--state", "st"],
      programs: bin, workingFolder: folder.url.path)
    #expect(run.status == 0, "\(run.messages)")
    let command = try String(contentsOfFile: script, encoding: .utf8)
    let state = URL(fileURLWithPath: folder.path("st")).resolvingSymlinksInPath().path
    #expect(command.contains("'--state' '\(state)'"), "\(command)")
  }

  @Test func `that a partition is not there has its name in the doctor's words`() throws {
    let folder = try PipelineFolder.orders(["a"])
    try folder.addToPipeline("engine: { slurm: { partition: nihgt } }")
    let bin = try commands(
      folder, sbatch: "exit 1", sinfo: "case \"$*\" in *%R*) echo night; echo day;; esac")
    let run = try Godwit.run(["doctor", folder.url.path], programs: bin)
    #expect(run.status == 78, "\(run.output)")
    let said = run.output + run.messages
    #expect(said.contains("there is no nihgt") && said.contains("the cluster has day, night"))
  }
}
