import Foundation
import GodwitDurableFiles
import GodwitPlanning
import GodwitPrograms
import SystemPackage

/// The start of a detached run that waits in the scheduler's queue for the arrays to end:
/// `state/cluster/follower.json`.
///
/// A job that was submitted may begin at any time, also after somebody has attached, stopped the run or
/// rolled it back. So it counts only while the file names its token.
package struct ClusterFollower: Codable, Sendable, Equatable {
  /// As arrays have them: a part of the name of its job.
  var name: String
  package private(set) var token: String
  /// Of the follower that submits it: it counts, too, until the scheduler has taken this one.
  var former: String?

  init(name: String, after former: String? = nil) {
    self.name = name
    self.former = former
    token = UUID().uuidString
  }

  private static func path(_ state: FilePath) -> FilePath {
    BundleFolder.all(in: state).appending("follower.json")
  }

  /// The one that is to come; nil where none is.
  static func read(in state: FilePath) throws -> ClusterFollower? {
    let bytes = try RegularFile.bytesIfPresent(of: path(state), limit: 64 << 10, isPrivate: true)
    return bytes.flatMap { try? JSONDecoder().decode(ClusterFollower.self, from: Data($0)) }
  }

  /// Whether the start with that token is still to go on with the run.
  package static func isWanted(_ token: String, in state: FilePath) throws -> Bool {
    guard let known = try read(in: state.absolute) else { return false }
    return known.token == token || known.former == token
  }

  /// Makes it the one that counts.
  func write(in state: FilePath) throws {
    try DurableFile.write(Array(JSONLine.text(of: self).utf8), to: Self.path(state))
  }

  /// From here on none that was submitted does anything.
  static func remove(in state: FilePath) throws { try DurableFile.removeIfPresent(path(state)) }

  /// Likewise, and takes its job out of the queue, where that can be done at once.
  static func dismiss(in state: FilePath) throws {
    let known = try read(in: state)
    try remove(in: state)
    guard let known, let program = HelperProgram(named: "scancel") else { return }
    _ = try? program.run(
      ["--quiet", "--jobname=" + SlurmScheduler.jobName(of: known.name)], input: "",
      timeoutSeconds: cancelSeconds)
  }

  /// 3. Without its token the job ends by itself.
  private static let cancelSeconds = 3
}

extension ClusterError {
  /// The same of the scheduler, and more.
  fileprivate func adding(_ text: String) -> ClusterError {
    switch self {
    case .scheduler(let message): .scheduler(message: "\(message) \(text)")
    case .unanswered(let message): .unanswered(message: "\(message) \(text)")
    case .full(let message): .full(message: "\(message) \(text)")
    default: self
    }
  }
}

/// The start was the follower of another one, and is not wanted any more. Nothing was changed.
package struct FollowerDismissed: Error {}

extension PipelineRun {
  /// Whether the start is a job of the scheduler's. A signal is no operator's word then: the job has to make room,
  /// or its time is over, and the run goes on without it.
  var isFollower: Bool { context.followerToken != nil && !context.follower.isEmpty }

  /// The right to work in the state folder.
  ///
  /// A follower waits for whoever has it: the start that submitted it may be about to end, and nobody
  /// else starts the run again.
  ///
  /// - Throws: `DurabilityError.locked`, ``FollowerDismissed``.
  func takeLease() async throws -> HeldLease {
    let path = state.appending("lock")
    let end = ContinuousClock.now + .seconds(Self.followerPatienceSeconds)
    while true {
      try checkFollower()
      do {
        // Somebody who only looks whether a run is going on holds it for a moment.
        let lease = try await onOwnThread {
          try HeldLease(
            acquiring: path, patienceSeconds: PipelineHistory.lockPatienceSeconds)
        }
        try checkFollower()
        return lease
      } catch DurabilityError.locked
        where context.followerToken != nil && ContinuousClock.now < end && !Task.isCancelled
      {
        continue
      }
    }
  }

  /// 15 minutes.
  private static let followerPatienceSeconds = 900

  private func checkFollower() throws {
    if let token = context.followerToken,
      try !ClusterFollower.isWanted(token, in: clusterState)
    {
      throw FollowerDismissed()
    }
  }

  /// The run is in our hands now. A start that is the follower itself stays the one that counts until it
  /// ends or has a follower of its own: the cluster may begin it again.
  func dismissFollower() async throws {
    guard context.followerToken == nil else { return }
    let state = clusterState
    try await onOwnThread { try ClusterFollower.dismiss(in: state) }
  }

  /// Leaves the work to the cluster. Where it can, it starts this command again when the work is over.
  ///
  /// - Parameter isLater: Whether it is to wait some minutes, too.
  func submitFollower(isLater: Bool = false) async throws {
    guard !context.follower.isEmpty else { return }
    let arrays = try BundleFolder.permitted(in: clusterState).map(\.name)
    let chance = String(UInt32.random(in: 0x1000_0000 ... .max), radix: 16)
    var follower = ClusterFollower(
      name: "next-" + (arrays.last ?? "") + "-" + chance, after: context.followerToken)
    try follower.write(in: clusterState)
    let job: String?
    do {
      let (name, token) = (follower.name, follower.token)
      let submission = Task.detached {
        try await submit(name, token, after: arrays, isLater: isLater)
      }
      // A signal ends the submission of an operator's start alone.
      job = try await withTaskCancellationHandler {
        try await submission.value
      } onCancel: {
        if !isFollower { submission.cancel() }
      }
    } catch let error as ClusterError {
      throw error.adding(
        "That was the job that goes on with the run. The bundles that were submitted before "
          + "(\(arrays.joined(separator: ", "))) are worked on: run the same command again when they are over, "
          + "or now, and stop it with Ctrl-C to cancel them.")
    }
    if let job { observe(.note("Job \(job) runs this command again when the bundles are over.")) }
    // The cluster may begin again a job that it has told to end: whichever of the two comes first goes on.
    guard follower.former != nil, !Task.isCancelled else { return }
    follower.former = nil
    try follower.write(in: clusterState)
  }

  private func submit(
    _ name: String, _ token: String, after arrays: [String], isLater: Bool
  ) async throws -> String? {
    let scheduler = scheduler()
    return try await SchedulerPatience().asking(observe) {
      try await scheduler.submitFollower(
        context.follower + ["--follower-token", token], name: name,
        in: clusterState, after: arrays, isLater: isLater)
    }
  }

  /// Submits the follower's own follower where it could not reach its scheduler, or was told to end: nobody
  /// else would start the run again.
  func submitAgain(after error: any Error) async {
    guard context.followerToken != nil else { return }
    switch error {
    case ClusterError.scheduler, ClusterError.unanswered, ClusterError.full, is CancellationError:
      try? await submitFollower(isLater: true)
    default: return
    }
  }
}
