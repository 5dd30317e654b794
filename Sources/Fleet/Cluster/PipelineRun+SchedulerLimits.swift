extension PipelineRun {
  /// Where tasks of an earlier start may have results, these wait for a scheduler that is silent for a moment
  /// alone: arrays are short then, and cut for as many tasks at a time as the last ones.
  func schedulerLimits(_ scheduler: any ArrayScheduler) async throws -> SchedulerLimits {
    let last = try BundleFolder.folders(in: clusterState).last
    let patience = SchedulerPatience()
    do {
      let asked = last == nil ? patience : SchedulerPatience(total: patience.pause)
      return try await asked.asking(observe) { try await scheduler.limits() }
    } catch  where Task.isCancelled {
      return SchedulerLimits(slots: 1)  // nothing is submitted any more
    } catch ClusterError.unanswered(let message) {
      guard let last else { throw ClusterError.unanswered(message: message) }
      return SchedulerLimits(
        arrayTasks: min(pipeline.cluster.arrayMax, Self.fewTasks), tasks: Self.fewTasks,
        slots: try BundleManifest(at: last.manifest).header.slots)
    }
  }

  private static let fewTasks = 100
}
