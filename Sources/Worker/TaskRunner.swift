import GodwitCheckpoints
import GodwitPersistentStore
import GodwitPlanning
import GodwitSQLite

/// Performs the tasks of a run: in a worker process, or where a small store is coordinated.
///
/// It opens the source store read-only and writes nothing but checkpoints. Belongs to one thread.
package final class TaskRunner {
  private let policies: PolicyRegistry
  private var context: ShardContext?
  private var failure: WorkerFailure?

  /// - Parameter policies: The entity migration policies of the running executable.
  package init(policies: PolicyRegistry) { self.policies = policies }

  /// Opens a run; again with the assembled store before tasks that read it. Where that fails, the
  /// tasks say why.
  ///
  /// - Parameters:
  ///   - plan: Nil for the one in the run directory.
  ///   - source: The file that the plan says is read, where it is open.
  package func open(
    _ run: RunDirectory, plan: MigrationPlan? = nil, source: Connection? = nil, assembled: String?
  ) {
    do {
      if context?.run.path != run.path {
        TemporaryFiles.useFolder(run.path.string)
        context = try ShardContext(run: run, plan: plan, policies: policies, source: source)
      }
      failure = nil
    } catch {
      context = nil
      failure = WorkerFailure(error)
    }
    if let assembled { opening { try context?.openAssembled(assembled) } }
  }

  /// Gives the tasks an assembled store that others may read, too.
  package func open(assembled: () throws -> AssembledStore) {
    opening { try context?.openAssembled(assembled()) }
  }

  private func opening(_ body: () throws -> Void) {
    do {
      try body()
    } catch {
      context = nil
      failure = WorkerFailure(assembled: error)
    }
  }

  /// The checkpoint is there before the answer.
  package func perform(_ task: WorkerTask) -> Result<FinishedTask, FailedTask> {
    do {
      if let failure { throw failure }
      guard let context else { throw StageError.outOfOrder("a task before a run was opened") }
      do {
        return .success(try perform(task, context))
      } catch  where task.stage.readsAssembled {
        throw WorkerFailure(assembled: error)
      } catch let error as SQLiteError {
        throw DamageProbe.explained(error, path: error.database ?? context.plan.readPath)
      }
    } catch {
      return .failure(
        FailedTask(task: task, error: WorkerFailure(error, source: context?.plan.readPath)))
    }
  }

  private func perform(_ task: WorkerTask, _ context: ShardContext) throws -> FinishedTask {
    let clock = ContinuousClock()
    let (start, processorStart) = (clock.now, ThreadTime.processorSeconds)
    let summary: ShardSummary
    var shares: StageClock?
    if task.stage == .rows {
      (summary, shares) = try RowPass(context: context).run(task.unit)
    } else {
      summary = try stage(of: task, context)
    }
    let elapsed = (clock.now - start).components
    return FinishedTask(
      task: task, summary,
      seconds: Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18, shares: shares,
      processorSeconds: ThreadTime.processorSeconds - processorStart)
  }

  private func stage(of task: WorkerTask, _ context: ShardContext) throws -> ShardSummary {
    switch task.stage {
    case .rows: throw StageError.outOfOrder("a pass over rows")
    case .copy: try MappedCopyStage(context: context).run(task.unit)
    case .link: try MappedLinkStage(context: context).run(task.unit)
    case .validate: try MappedValidateStage(context: context).run(task.unit)
    case .audit: try AuditStage(context: context).run(task.unit)
    case .verify: try VerifyStage(context: context).run(task.unit)
    case .soundness: try SoundnessStage(context: context).run(task.unit)
    }
  }
}
