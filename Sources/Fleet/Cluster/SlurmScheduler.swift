import Foundation
import GodwitDurableFiles
import GodwitPrograms
import SystemPackage

/// Slurm, by its commands. The cluster is the one that `SLURM_CONF` or the machine names.
///
/// Jobs are known by their names, which are used once: a controller that was killed may forget a job
/// and give its number to another.
struct SlurmScheduler: ArrayScheduler {
  let settings: ClusterSettings
  /// What the tasks run.
  let executable: String
  /// Processors of a task.
  let workers: Int
  /// Where Slurm's commands are; nil for the `PATH`.
  var folder: FilePath?

  /// How long a command may take: its own limit for a controller that does not answer is shorter.
  private static let timeoutSeconds = 60

  static func jobName(of array: String) -> String { "godwit-" + array }

  func limits() async throws -> SchedulerLimits {
    let config = try await output("scontrol", ["show", "config"])
    var values: [String: Int] = [:]
    for line in config.split(separator: "\n") {
      let parts = line.split(separator: "=", maxSplits: 1)
        .map { $0.trimmingCharacters(in: .whitespaces) }
      if parts.count == 2, let number = Int(parts[1]) { values[parts[0]] = number }
    }
    var limits = SchedulerLimits(slots: max(1, try await processors() / workers))
    // The highest index is one less than MaxArraySize says.
    let most = (values["MaxArraySize"] ?? 1_001) - 1
    limits.arrayTasks = max(1, min(settings.arrayMax, ClusterSettings.mostTasks, most))
    // Others use the cluster, too.
    limits.tasks = max(1, (values["MaxJobCount"] ?? 10_000) / 2)
    limits.arrayTasks = min(limits.arrayTasks, limits.tasks)
    return limits
  }

  /// Has one machine look at the shared file system.
  func submitProbe(
    _ folder: FilePath, _ roots: [FilePath], node: String, name: String
  ) async throws {
    let arguments =
      common(name: name, log: folder.appending(node + ".log"), folder: folder)
      + ["--nodelist=\(node)", "--time=2"]
    let options = roots.flatMap { ["--root", $0.string] }
    _ = try await submit(
      arguments, [executable, "worker", "--probe", folder.string] + options)
  }

  var partition: [String] { settings.partitionOfTasks.map { ["--partition=\($0)"] } ?? [] }

  func submit(
    _ array: BundleFolder, _ indices: [Int], after: [String], isOfLargeStore: Bool
  ) async throws -> String {
    // What `sbatch` in the pipeline says comes later, and counts.
    var arguments = isOfLargeStore ? [] : ["--nice"]
    arguments += common(name: array.name, log: array.log, folder: array.path)
    var list = "--array=" + Self.text(of: indices)
    if settings.nodes != nil {
      // Arrays follow one another then: together they would use more.
      list += "%\(try await max(1, processors() / workers))"
    }
    arguments += [list, "--cpus-per-task=\(workers)"]
    arguments += try await dependency(on: after)
    let command = [
      executable, "worker", "--manifest", array.manifest.string, "--index-from",
      "SLURM_ARRAY_TASK_ID",
    ]
    return try await submit(arguments, command)
  }

  private func common(name: String, log: FilePath, folder: FilePath) -> [String] {
    var arguments = [
      "--parsable", "--job-name=" + Self.jobName(of: name), "--requeue", "--nodes=1",
      "--ntasks=1",
      // Truncated otherwise when a task is started again; one file, since each costs an inode.
      "--output=" + Self.pattern(of: log), "--open-mode=append", "--chdir=" + folder.string, export,
    ]
    arguments += partition
    if let account = settings.account { arguments.append("--account=\(account)") }
    if let seconds = settings.timeSeconds {
      arguments.append("--time=\(max(1, Int((seconds / 60).rounded(.up))))")
    }
    return arguments + settings.sbatch
  }

  /// A path as sbatch(1) reads file names: a percent sign begins a symbol, and none is one in a name with a
  /// backslash.
  static func pattern(of path: FilePath) -> String {
    path.string.unicodeScalars.contains("\\")
      ? path.string.replacing("\\", by: "\\\\") : path.string.replacing("%", by: "%%")
  }

  /// A fixed environment, and what the pipeline names: all of whoever submits would go along otherwise.
  private var export: String {
    let names = [
      "SLURM_CONF", "LD_LIBRARY_PATH", "TZ", "TMPDIR", "GODWIT_LEASE", "GODWIT_WORKER_TIMEOUT",
    ]
    let known = (names + settings.environment).filter {
      ProcessInfo.processInfo.environment[$0] != nil
    }
    return "--export=" + (known + ["PATH"]).joined(separator: ",")
  }

  private func submit(_ arguments: [String], _ command: [String]) async throws -> String {
    let words = command.map { "'" + $0.replacing("'", by: "'\\''") + "'" }
    let script = "#!/bin/sh\nexec \(words.joined(separator: " "))\n"
    let text = try await output("sbatch", arguments, input: script)
    return String(text.prefix { $0 != ";" && $0 != "\n" })
  }

  func submitFollower(
    _ command: [String], name: String, in state: FilePath, after: [String], isLater: Bool
  ) async throws -> String? {
    let dependency = try await dependency(on: after)
    // One that waits for nothing would find what its predecessor has left, and be followed at once.
    let wait: Int? = isLater ? 300 : dependency.isEmpty ? Self.followerSeconds : nil
    let arguments =
      (wait.map { ["--begin=now+\($0)"] } ?? [])
      + common(
        name: name, log: BundleFolder.followerLog(in: state), folder: BundleFolder.all(in: state))
      + dependency
    return try await submit(arguments, command)
  }

  /// 30.
  private static let followerSeconds = 30

  /// Only jobs that are there still: a dependency on one that Slurm has forgotten is refused or counts
  /// as fulfilled.
  private func dependency(on arrays: [String]) async throws -> [String] {
    guard !arrays.isEmpty else { return [] }
    let jobs = try await list(arrays)
    let numbers = Set(jobs.map(\.job)).sorted()
    return numbers.isEmpty
      ? [] : ["--dependency=afterany:" + numbers.joined(separator: ":")]
  }

  func tasks(of arrays: [String]) async throws -> [String: [Int: TaskState]]? {
    guard !arrays.isEmpty else { return [:] }
    var tasks: [String: [Int: TaskState]] = [:]
    for job in try await list(arrays) { tasks[job.array, default: [:]][job.index] = job.state }
    return tasks
  }

  private struct Job {
    var array: String
    var job: String
    var index: Int
    var state: TaskState
  }

  private func list(_ arrays: [String]) async throws -> [Job] {
    var jobs: [Job] = []
    // So many names fit on a command line.
    for start in stride(from: 0, to: arrays.count, by: 200) {
      let names = arrays[start..<min(arrays.count, start + 200)].map(Self.jobName(of:))
      let text = try await output(
        "squeue",
        [
          "--noheader", "--array", "--name=" + names.joined(separator: ","),
          "--format=%j|%F|%K|%T|%r|%N",
        ])
      jobs += text.split(separator: "\n").compactMap(Self.job)
    }
    return jobs
  }

  private static func job(_ line: Substring) -> Job? {
    let fields = line.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
    guard fields.count == 6, fields[0].hasPrefix("godwit-"), let index = Int(fields[2]) else {
      return nil
    }
    return Job(
      array: String(fields[0].dropFirst("godwit-".count)), job: fields[1], index: index,
      state: TaskState(
        state: fields[3], reason: fields[4], node: fields[5], name: "\(fields[1])_\(index)"))
  }

  func cancel(_ arrays: [String]) async {
    // scancel(1) takes one name: of several the last would count.
    for array in arrays where !Task.isCancelled {
      _ = try? await output("scancel", ["--quiet", "--jobname=" + Self.jobName(of: array)])
    }
  }

  func cancel(tasks: [String]) async {
    for start in stride(from: 0, to: tasks.count, by: 500) {
      _ = try? await output(
        "scancel", ["--quiet"] + tasks[start..<min(tasks.count, start + 500)])
    }
  }

  /// Variables in which whoever starts us may keep options for Slurm's commands: states that are left out
  /// of a list, a submission that waits. What these commands do is ours to say.
  ///
  /// Source: the sections "INPUT ENVIRONMENT VARIABLES" of sbatch(1), squeue(1), sinfo(1), scancel(1) and
  /// scontrol(1).
  private static let optionVariables = ["SBATCH_", "SQUEUE_", "SINFO_", "SCANCEL_", "SCONTROL_"]

  private static var environment: [String: String] {
    ProcessInfo.processInfo.environment.filter { variable in
      variable.key != "SLURM_CLUSTERS" && !optionVariables.contains(where: variable.key.hasPrefix)
    }
  }

  /// Runs a command of Slurm's to its end.
  ///
  /// - Throws: ``ClusterError/scheduler(message:)``, ``ClusterError/unanswered(message:)``: a command
  ///   that fails and says nothing says nothing of any job either. ``ClusterError/full(message:)``;
  ///   `CancellationError`; the command was ended then.
  func output(_ name: String, _ arguments: [String], input: String = "") async throws
    -> String
  {
    let known = folder.map { HelperProgram(path: $0.appending(name).string) }
    guard let program = known ?? HelperProgram(named: name) else {
      throw ClusterError.scheduler(
        message: "\(name) is not on the PATH. Install Slurm's client commands (slurm-client on "
          + "Debian), or use --engine local.")
    }
    let ending: HelperProgram.Ending
    let stop = HelperProgram.Stop()
    do {
      ending = try await withTaskCancellationHandler {
        try await onOwnThread {
          try program.run(
            arguments, input: input, environment: Self.environment,
            timeoutSeconds: Self.timeoutSeconds, stop: stop)
        }
      } onCancel: {
        stop.end()
      }
    } catch {
      throw ClusterError.scheduler(message: "\(name) could not be started: \(error)")
    }
    guard ending.status == 0 else {
      try Task.checkCancellation()
      if Self.isFullness(ending.message) {
        throw ClusterError.full(
          message:
            "\(name): \(ending.message.sentence) Jobs that have ended count for some minutes, too: see "
            + "MaxJobCount and MinJobAge in `scontrol show config`.")
      }
      let message =
        "\(name) failed: \((ending.tookTooLong ? "no answer" : ending.message).sentence) Check the cluster "
        + "with sinfo, and the keys of engine: slurm."
      throw ending.tookTooLong || Self.isSilence(ending.message)
        ? ClusterError.unanswered(message: message) : .scheduler(message: message)
    }
    return String(decoding: ending.output, as: UTF8.self)
  }

  /// Whether a command failed because the controller could not be reached: slurm_strerror(3).
  static func isSilence(_ message: String) -> Bool {
    let lower = message.lowercased()
    return [
      "unable to contact slurm controller", "connect failure", "connection refused", "timed out",
      "zero bytes were transmitted", "communication connection", "in standby mode",
      "connection reset",
    ].contains { lower.contains($0) }
  }

  /// Whether there are as many jobs as the controller keeps. sbatch tries again by itself for longer than
  /// we wait for it.
  ///
  /// Source: seen with Slurm 22.05 and MaxJobCount=4.
  static func isFullness(_ message: String) -> Bool {
    message.lowercased().contains("temporarily unable to accept")
  }

  /// `0-3,7`: as sbatch reads it.
  static func text(of indices: [Int]) -> String {
    var parts: [String] = []
    var place = 0
    while place < indices.count {
      var end = place
      while end + 1 < indices.count, indices[end + 1] == indices[end] + 1 { end += 1 }
      parts.append(place == end ? "\(indices[place])" : "\(indices[place])-\(indices[end])")
      place = end + 1
    }
    return parts.joined(separator: ",")
  }
}

extension TaskState {
  /// As squeue(1) gives them by `%T`, `%r` and `%N`.
  init(state: String, reason: String, node: String, name: String = "") {
    self.name = name
    self.reason = reason
    self.node = node.isEmpty ? nil : node
    let lower = reason.lowercased()
    // "launch failed requeued held", JobHeldUser, JobHeldAdmin, DependencyNeverSatisfied.
    let isHeld = lower.contains("held") || lower.contains("neversatisfied")
    phase =
      switch state {
      case "RUNNING", "COMPLETING", "CONFIGURING", "STAGE_OUT", "SIGNALING", "SUSPENDED": .running
      default: isHeld ? .held : .waiting
      }
  }
}
