import GodwitDurableFiles

extension SlurmScheduler {
  /// What is wrong with the time that a task asks for: Slurm takes such a task, and never begins it. Nil where
  /// nothing is known to be.
  func timeProblem() async throws -> String? {
    // A quality of service may allow more than its partition, and a least time has a task get less.
    guard let asked = settings.minutesOfTasks, settings.option("qos", "q") == nil,
      !settings.sbatch.contains(where: { $0.hasPrefix("--time-min=") })
    else { return nil }
    // A line for each partition.
    let known = try await lines(["%l"])
    let allowed = known.compactMap { Self.minutes($0[0]) }
    // Of several partitions one is enough.
    guard allowed.count == known.count, let most = allowed.max(), asked > most else { return nil }
    let words = asked.isFinite ? "\(Int64(nearest: asked)) min" : "time without a limit"
    return "a task asks for \(words), and may take \(Int64(nearest: most)) min in its partition"
  }

  /// A time in minutes, as sbatch(1) reads and sinfo(1) writes it; infinite for no limit, nil for anything else.
  static func minutes(_ text: String) -> Double? {
    if ["infinite", "unlimited", "-1"].contains(text.lowercased()) { return .infinity }
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    let clock = parts[parts.count - 1].split(separator: ":", omittingEmptySubsequences: false)
    let numbers = clock.compactMap { UInt32($0) }
    let days: UInt32? = parts.count == 1 ? 0 : UInt32(parts[0])
    guard let days, parts.count <= 2, numbers.count == clock.count, numbers.count <= 3 else {
      return nil
    }
    // Without days one number is minutes, and two are minutes and seconds.
    let units = parts.count == 2 || numbers.count == 3 ? [3_600.0, 60, 1] : [60.0, 1]
    let seconds = zip(numbers, units).reduce(Double(days) * 86_400) { $0 + Double($1.0) * $1.1 }
    return (seconds / 60).rounded(.up)
  }
}

extension ClusterSettings {
  /// What a task asks for; infinite for no limit, nil for the partition's default, or where it cannot be told.
  var minutesOfTasks: Double? {
    guard let text = option("time", "t") else {
      return timeSeconds.map { max(1, ($0 / 60).rounded(.up)) }
    }
    // 0 asks for no limit.
    return SlurmScheduler.minutes(text).map { $0 == 0 ? .infinity : $0 }
  }
}
