extension SlurmScheduler {
  /// Of the machines that may be used.
  func processors() async throws -> Int {
    let machines = try await machines().filter(\.isUsable).map(\.processors).sorted(by: >)
    return machines.prefix(settings.nodes ?? machines.count).reduce(0, +)
  }

  /// A machine that tasks could be sent to.
  struct Machine: Sendable, Equatable {
    var name: String
    var processors: Int
    /// Slurm's word, such as `idle` or `down*`.
    var state: String

    /// Whether it is there, and takes tasks now or later.
    var isUsable: Bool {
      ["idle", "mixed", "allocated", "completing"].contains { state.hasPrefix($0) }
        && !state.hasSuffix("*")
    }
  }

  /// The machines of the partition that tasks may be sent to, each once.
  func machines() async throws -> [Machine] {
    // A line for each machine and partition.
    var machines: [String: Machine] = [:]
    for line in try await lines(["%N", "%c", "%T"], ["-N"]) {
      guard let count = Int(line[1]) else { continue }
      machines[line[0]] = Machine(name: line[0], processors: count, state: line[2])
    }
    let (only, excluded) = (settings.option("nodelist", "w"), try await leftOut())
    return machines.values.sorted { $0.name < $1.name }.filter {
      (only == nil || only == $0.name) && !excluded.contains($0.name)
    }
  }

  /// What sinfo(1) says in its fields of the partitions that tasks are sent to; the last field is the partition.
  func lines(_ fields: [String], _ options: [String] = []) async throws -> [[String]] {
    let format = (fields + ["%P"]).joined(separator: "|")
    let text = try await output("sinfo", ["-h"] + options + ["-o", format] + partition)
    let lines = text.split(separator: "\n").map {
      $0.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
    }.filter { $0.count == fields.count + 1 }
    // The default one has an asterisk.
    let ofDefault = lines.filter { $0[fields.count].hasSuffix("*") }
    return settings.partitionOfTasks != nil || ofDefault.isEmpty ? lines : ofDefault
  }

  /// The machines that `--exclude` of the key `sbatch` names, unless it names a file that has them.
  private func leftOut() async throws -> Set<String> {
    guard let list = settings.option("exclude", "x"), !list.contains("/") else { return [] }
    let names = try await output("scontrol", ["show", "hostnames", list])
    return Set(names.split(separator: "\n").map(String.init))
  }

  /// The names of all partitions.
  func partitions() async throws -> [String] {
    let text = try await output("sinfo", ["-h", "-o", "%R"])
    return Set(text.split(separator: "\n").map(String.init)).sorted()
  }
}
