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
    #expect(command.contains("'--state=\(state)'"), "\(command)")
  }

  @Test func `which stores a detached run takes up may have their pattern begin with a dash`()
    throws
  {
    let folder = try PipelineFolder.orders(["-old", "a"])
    let script = folder.path("next.sh")
    let bin = try commands(
      folder,
      sbatch: "case \"$*\" in *--array*) cat >/dev/null;; *) cat >'\(script)';; esac; echo 7")
    let run = try Godwit.run(
      ["run", folder.url.path, "--engine", "slurm", "--detach", "--only=-o*"], programs: bin)
    #expect(run.status == 0, "\(run.messages)")
    try folder.doAll()
    // What the cluster starts.
    let next = try Process.run(
      URL(fileURLWithPath: "/usr/bin/env"), arguments: ["PATH=\(bin):/usr/bin:/bin", "sh", script])
    next.waitUntilExit()
    #expect(next.terminationStatus == 0)
    #expect(try folder.godwit(["status"]).summary["state"] as? String == "ended")
    #expect(folder.storeFiles().count { $0.contains(".godwit-backup-") } == 1)
  }

  @Test func `that it lost a task of a detached run has that submitted again by the next start`()
    throws
  {
    let folder = try PipelineFolder.orders(["a"])
    let calls = folder.path("calls")
    let bin = try commands(folder, sbatch: "cat >/dev/null; echo \"$*\" >>'\(calls)'; echo 7")
    func start() throws -> [Substring] {
      let run = try Godwit.run(
        ["run", folder.url.path, "--engine", "slurm", "--detach", "--json"], programs: bin)
      #expect(run.status == 0 && run.summary["detached"] as? Bool == true, "\(run.messages)")
      defer { try? FileManager.default.removeItem(atPath: calls) }
      return try String(contentsOfFile: calls, encoding: .utf8).split(separator: "\n")
    }
    for _ in 1...2 {
      let found = try start()
      #expect(found.map { $0.contains("--array=0") } == [true, false], "\(found)")
      #expect(found.last?.contains("--begin=now+30") == true, "nothing is there to wait for")
    }
    let jobs = try String(
      contentsOfFile: folder.path("state/cluster/\(arrayName(folder))/jobs.jsonl"), encoding: .utf8)
    #expect(jobs.contains(#""submissions":2"#), "\(jobs)")
  }

  /// The cluster may begin that job again, as when it had to make room, or not, as when its time was over.
  @Test(arguments: [true, false])
  func `that the job that goes on with a run has to end leaves the run to whoever comes next`(
    isBegunAgain: Bool
  ) throws {
    let folder = try PipelineFolder.orders(
      ["a", "b"], "canary: [1, 100%]\nlimits: { failure-budget: 1 }")
    let scripts = folder.path("scripts")
    let bin = try commands(
      folder,
      sbatch: "case \"$*\" in *--array*) cat >/dev/null;; *) cat >>'\(scripts)'; "
        + "printf '\\0' >>'\(scripts)';; esac; echo 7")
    func jobs() throws -> [Substring] {
      try String(contentsOfFile: scripts, encoding: .utf8).split(separator: "\0")
    }
    func begin(_ job: Substring) throws -> Process {
      let script = folder.path("job.sh")
      try String(job).write(toFile: script, atomically: true, encoding: .utf8)
      return try Process.run(
        URL(fileURLWithPath: "/usr/bin/env"),
        arguments: ["PATH=\(bin):/usr/bin:/bin", "sh", script])
    }
    let run = try Godwit.run(
      ["run", folder.url.path, "--engine", "slurm", "--detach"], programs: bin)
    #expect(run.status == 0, "\(run.messages)")
    try folder.doAll()
    #expect(try folder.godwit(["control"], ["pause"]).status == 0)
    let first = try begin(try #require(try jobs().first))
    // It takes the first wave over, and waits before the second.
    for _ in 0..<600 where try !folder.manifests().isEmpty { usleep(100_000) }
    #expect(try folder.manifests().isEmpty)
    first.terminate()
    first.waitUntilExit()
    #expect(first.terminationStatus == 0)
    #expect(try jobs().count == 2, "it has submitted another one")
    let resumed = try folder.godwit(["control"], ["resume"])
    #expect(resumed.status == 0, "\(resumed.messages)")
    let next = try begin(try #require(isBegunAgain ? try jobs().first : try jobs().last))
    next.waitUntilExit()
    #expect(try next.terminationStatus == 0 && !folder.manifests().isEmpty, "the second wave")
    try folder.doAll()
    let last = try begin(try #require(try jobs().last))
    last.waitUntilExit()
    #expect(last.terminationStatus == 0)
    let status = try folder.godwit(["status"]).summary
    #expect(status["state"] as? String == "ended")
    #expect(folder.storeFiles().count { $0.contains(".godwit-backup-") } == 2)
  }

  private func arrayName(_ folder: PipelineFolder) throws -> String {
    let manifest = try #require(try folder.manifests().first)
    return URL(fileURLWithPath: manifest).deletingLastPathComponent().lastPathComponent
  }

  @Test func `that a partition allows less time than tasks ask for has doctor say so`() throws {
    let folder = try PipelineFolder.orders(["a"])
    try folder.addToPipeline("engine: { slurm: { sbatch: [-plong], time: 2h } }")
    let bin = try commands(
      folder, sbatch: "exit 1",
      sinfo:
        "case \"$*\" in *%l*--partition=long*) echo '30:00|long';; *) echo 'n1|2|idle|long';; esac")
    let run = try Godwit.run(["doctor", folder.url.path], programs: bin)
    #expect(run.status == 78, "\(run.output)")
    #expect(run.output.contains("WARNING  time: a task asks for 120 min"), "\(run.messages)")
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
