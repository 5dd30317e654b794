import Foundation
import Glibc
import GodwitDurableFiles
import SystemPackage

/// Looks at a cluster before a run does: its limits, and the shared file system from every machine.
package struct ClusterDoctor: Sendable {
  private let pipeline: Pipeline
  private let places: PipelinePlaces
  private let scheduler: SlurmScheduler

  /// - Parameter executable: What is started on the machines.
  package init(_ pipeline: Pipeline, _ places: PipelinePlaces, executable: FilePath) {
    self.pipeline = pipeline
    self.places = places
    scheduler = SlurmScheduler(
      settings: pipeline.cluster, executable: executable.string, workers: 1)
  }

  /// 60 s. Machines that are busy for longer are not looked at, and that is said.
  private static let patienceSeconds = 60.0

  package func findings() async -> [Doctor.Finding] {
    do {
      let limits = try await scheduler.limits()
      var findings = [
        Doctor.Finding(
          name: "slurm",
          value: "\(limits.slots) tasks at a time, arrays of at most \(limits.arrayTasks)",
          isGood: true)
      ]
      if let problem = try await scheduler.timeProblem() {
        findings.append(
          Doctor.Finding(
            name: "time", value: problem, isGood: false,
            advice: "It would wait for ever. Lower engine.slurm.time, or name another partition."))
      }
      findings += try await machines()
      return findings
    } catch {
      return [
        Doctor.Finding(
          name: "slurm", value: "\(error)", isGood: false,
          advice: "Check SLURM_CONF, sinfo, and the keys of engine: slurm.")
      ]
    }
  }

  private func machines() async throws -> [Doctor.Finding] {
    let machines = try await scheduler.machines()
    let nodes = machines.filter(\.isUsable).map(\.name)
    let away = machines.filter { !$0.isUsable }.map { "\($0.name) (\($0.state))" }
    guard !nodes.isEmpty else {
      if let unknown = try await unknownPartitions(), away.isEmpty {
        return [unknown]
      }
      return [
        Doctor.Finding(
          name: "nodes", value: (["none that can be used"] + away).joined(separator: ", "),
          isGood: false, advice: "See `sinfo -R`.")
      ]
    }
    try DurableFile.makeFolder(places.state.absolute)
    let folder = places.state.absolute.appending("doctor-\(getpid())")
    try DurableFile.makeFolder(folder)
    let name = "doctor-\(String(UInt32.random(in: .min ... .max), radix: 16))"
    var findings: [Doctor.Finding] = []
    do {
      findings = try await look(at: nodes, name, in: folder)
    } catch {
      await end(name, folder)
      throw error
    }
    await end(name, folder)
    if !away.isEmpty {
      // A run does without them.
      findings.append(
        Doctor.Finding(
          name: "nodes that cannot be used", value: away.joined(separator: ", "), isGood: true,
          advice: "They were not looked at, and a run does without them. See `sinfo -R`"))
    }
    return findings
  }

  /// Nil where the partition is there, or none was given.
  private func unknownPartitions() async throws -> Doctor.Finding? {
    guard let partition = pipeline.cluster.partitionOfTasks else { return nil }
    let all = try await scheduler.partitions()
    let unknown = partition.split(separator: ",").map(String.init).filter { !all.contains($0) }
    guard !unknown.isEmpty else { return nil }
    return Doctor.Finding(
      name: "partition", value: "there is no \(unknown.joined(separator: ", "))", isGood: false,
      advice:
        "Correct the partition of engine.slurm: the cluster has \(all.joined(separator: ", ")).")
  }

  /// Leaves nothing, however it ended: jobs that are cancelled may still be writing for a moment.
  private func end(_ name: String, _ folder: FilePath) async {
    let scheduler = scheduler
    // Also where somebody has interrupted us, which would end the commands of a task of ours.
    await Task.detached { await scheduler.cancel([name]) }.value
    for _ in 0..<30 {
      if (try? DurableFile.removeTree(folder)) != nil { return }
      _ = try? await onOwnThread { usleep(100_000) }
    }
  }

  private func look(
    at nodes: [String], _ name: String, in folder: FilePath
  ) async throws -> [Doctor.Finding] {
    let lock = try FileLock(acquiring: ClusterProbe.lock(folder))
    let roots = pipeline.stores.roots.compactMap(\.resolved)
    var signs = ClusterProbe.Signs()
    defer { signs.remove() }
    try signs.put(into: roots, folder)
    var asked: [String] = []
    var refused: [Doctor.Finding] = []
    for node in nodes where !Task.isCancelled {
      do {
        try await scheduler.submitProbe(folder, roots, node: node, name: name)
        asked.append(node)
      } catch let error as ClusterError {
        refused.append(
          Doctor.Finding(
            name: "node \(node)", value: "\(error)", isGood: false,
            advice: "No task can be sent to it. See `scontrol show node \(node)`."))
      }
    }
    guard !asked.isEmpty else { return refused }
    let (answers, torn) = try await answers(from: asked, in: folder)
    withExtendedLifetime(lock) {}
    let own = try FileMark(ClusterProbe.lock(folder))?.device
    return refused
      + Self.findings(
        answers, missing: asked.filter { node in !answers.contains { $0.node == node } },
        torn: torn, device: own, isOffline: pipeline.stores.inUse == .offline,
        isReplacing: pipeline.commit == .replace, leaseSeconds: LeaseTime.seconds)
  }

  /// Waits for the machines' answers, and reads meanwhile what they replace.
  private func answers(
    from nodes: [String], in folder: FilePath
  ) async throws -> ([ClusterProbe.Answer], torn: [String]) {
    let end = ContinuousClock.now + .seconds(Self.patienceSeconds)
    var answers: [ClusterProbe.Answer] = []
    var torn: Set<String> = []
    var seen: Set<String> = []
    while answers.count < nodes.count, ContinuousClock.now < end, !Task.isCancelled {
      for node in nodes where !answers.contains(where: { $0.node == node }) {
        let flip = folder.appending(node + ".flip")
        let bytes = try? RegularFile.bytesIfPresent(of: flip, limit: ClusterProbe.flipBytes)
        if let bytes {
          seen.insert(node)
          if bytes.count != ClusterProbe.flipBytes || Set(bytes).count != 1 { torn.insert(node) }
        } else if seen.contains(node) {
          torn.insert(node)
        }
        let answer = try? RegularFile.bytesIfPresent(
          of: ClusterProbe.answer(folder, node), limit: 1 << 20)
        if let answer {
          answers.append(try JSONDecoder().decode(ClusterProbe.Answer.self, from: Data(answer)))
        }
      }
      try? await Task.sleep(for: .milliseconds(20))
    }
    return (answers, torn.sorted())
  }

  /// - Parameter device: The number of the volume on this machine.
  static func findings(
    _ answers: [ClusterProbe.Answer], missing: [String], torn: [String], device: UInt64?,
    isOffline: Bool, isReplacing: Bool, leaseSeconds: Double
  ) -> [Doctor.Finding] {
    func names(_ isBad: (ClusterProbe.Answer) -> Bool) -> [String] {
      answers.filter(isBad).map(\.node).sorted()
    }
    func finding(_ name: String, bad: [String], good: String, advice: String) -> Doctor.Finding {
      Doctor.Finding(
        name: name, value: bad.isEmpty ? good : "not on \(bad.joined(separator: ", "))",
        isGood: bad.isEmpty, advice: bad.isEmpty ? nil : advice)
    }
    let all = answers.map(\.node).sorted().joined(separator: ", ")
    let slowest = answers.map(\.durableMilliseconds).max() ?? 0
    let there = finding(
      "nodes", bad: missing, good: all,
      advice: "They did not answer in time: busy, down, or without this executable or the state "
        + "folder at the same path.")
    let whole = finding(
      "renames between nodes", bad: torn, good: "whole",
      advice: "A file that is replaced is seen torn or missing. Results could be lost.")
    // What nobody has looked at is not good either. A machine may be seen to replace a file, and not answer.
    guard !answers.isEmpty else { return [there] + (whole.isGood ? [] : [whole]) }
    var findings = [
      there,
      finding(
        "locks between nodes", bad: names(\.gotLock), good: "flock holds",
        advice: "Two machines could work on one store. Mount the volume so that flock(2) holds for "
          + "all of them, or use --engine local."),
      whole,
      finding(
        "new files", bad: answers.count { $0.madeOnce } <= 1 ? [] : names(\.madeOnce),
        good: "made by one node only",
        advice: "Two machines made the same file. Use another volume for the state."),
      finding(
        "durable write from nodes", bad: names { $0.failure != nil },
        good: "\((slowest * 10).rounded() / 10) ms",
        advice: answers.compactMap(\.failure).first ?? ""),
      finding(
        "clocks and file times", bad: names { abs($0.clockSkew) > leaseSeconds / 4 },
        good:
          "within \(Int64(nearest: (answers.map { abs($0.clockSkew) }.max() ?? 0).rounded(.up))) s",
        advice: "Leases compare a file's time with the clock. Keep the clocks of machines and file "
          + "server together, or raise GODWIT_LEASE."),
      finding(
        "volume number", bad: names { device != nil && $0.device != 0 && $0.device != device },
        good: "the same everywhere",
        advice:
          "A commit that one machine began could not be finished by another. Mount the volume "
          + "so that its device number is the same, and run every command on one machine."),
      finding(
        "stores from nodes", bad: names { !$0.roots.isEmpty }, good: "writable",
        advice: answers.flatMap(\.roots).first.map { "\($0.key): \($0.value)" } ?? ""),
    ]
    let other = answers.filter { $0.otherRoots?.isEmpty == false }
    findings.append(
      finding(
        "stores are the same", bad: other.map(\.node).sorted(), good: "on every node",
        advice:
          "\(other.flatMap { $0.otherRoots ?? [] }.first ?? "") leads to another volume there, or "
          + "to none. Mount the same one on every machine, or leave that one out with sbatch: "
          + "[--exclude=…]."))
    let danger = answers.compactMap(\.danger).first
    findings.append(
      Doctor.Finding(
        name: "shared file system", value: danger ?? "nothing known against it",
        isGood: danger == nil, advice: danger.map { _ in "Mount it otherwise." }))
    if isReplacing {
      let without = names { !$0.withoutLeases.isEmpty }
      findings.append(
        Doctor.Finding(
          name: "file leases from nodes",
          value: without.isEmpty ? "available" : "not on \(without.joined(separator: ", "))",
          isGood: without.isEmpty || isOffline,
          advice: without.isEmpty || isOffline
            ? nil
            : "Stores cannot be replaced safely while applications may have them open. Close them, "
              + "and say so with stores.in-use: offline."))
    }
    return findings
  }
}
