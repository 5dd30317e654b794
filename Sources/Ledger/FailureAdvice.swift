/// What to do about stores that failed for a reason, whichever stores they are.
///
/// Together its tables are the list of the reasons that Godwit gives.
package enum FailureAdvice {
  /// - Parameters:
  ///   - verdict: Of the stores. One that is quarantined stays so, whatever is done about its reason.
  ///   - reason: The word that a result's `reasons` give.
  package static func text(verdict: String, reason: String) -> String {
    known(verdict == quarantined ? verdict : reason)
      ?? "Read the message, fix the cause, and run again. `godwit migrate` with one of the stores "
      + "says more."
  }

  private static let quarantined = "quarantined"

  /// Nil for a reason that only its message explains.
  static func known(_ reason: String) -> String? {
    if reason.hasPrefix("lost-") { return texts["losses"] }
    if damage.contains(reason) { return texts["damaged"] }
    if rows.contains(reason) { return texts["validation"] }
    if models.contains(reason) { return texts["needs-mapping"] }
    return texts[reason]
  }

  /// What is wrong with a store that is not sound.
  private static let damage: Set = [
    "control", "metadata", "modelcache", "schema", "index", "rows", "type", "external",
    "dangling", "targetEntity", "entityColumn", "inverse", "order", "derived",
  ]

  /// Rows that the destination's rules do not allow.
  private static let rows: Set = [
    "required", "required-relationship", "to-many-to-one", "shared-targets", "abstract-with-rows",
  ]

  /// Why no mapping model can be inferred.
  private static let models: Set = [
    "attribute-type", "required-without-default", "relationship-destination", "merge-roots",
    "split-entity", "duplicate-identifier", "missing-mapping",
  ]

  private static let texts = [
    "stopped":
      "Run the same command again. Where it says why it ended early, see to that first.",
    "in-use":
      "Close the applications that have the stores open and run again, or use `stores.in-use: "
      + "{ wait: 10m }` or `snapshot`. Where nobody has them open, run as their owner, who can find that "
      + "out.",
    "changed":
      "An application wrote to the stores, or the pipeline's file, a model or a mapping model changed "
      + "during the run. Run again.",
    "disk-full":
      "Free space on the volume that the message names, with `godwit backups prune` where backups lie there, "
      + "then run again. Finished work is kept.",
    "locked": "Another run works on the stores. Wait for it to end, then run again.",
    "lease":
      "Another run has taken the stores over: see its result. Or the folder with the run's lock was moved: put "
      + "it back.",
    "other-build":
      "Install one build of the executable on every machine, not while a run is under way, and run again.",
    "timeout": "Raise `limits.store-timeout`, or look for a volume that is slow.",
    "workers-lost":
      "See the output of the workers, check the machine's memory and limits with `godwit doctor`, "
      + "then run again.",
    "coordination-lost":
      "See the run's output. Migrate one of the stores with `godwit migrate` to see more.",
    "limits": "Raise the limits that the message names.",
    "damaged":
      "Inspect one with `godwit inspect`. Restore the store from a copy, repair it with `godwit "
      + "repair`, or carry on as it is with `godwit migrate --accept-damage`.",
    // No part of what pages hold can be trusted then.
    "file":
      "Restore the stores from a copy, or save what can be saved with `godwit repair`.",
    "note": "Nothing has to be done.",
    "validation":
      "Correct the rows with the application, use a mapping model, or make the destination's rule "
      + "less strict.",
    "unique": "Make the values unique in the source, or drop the constraint.",
    "uniqueness":
      "Make the values unique in the source or in the mapping model that gives them, or drop the "
      + "constraint.",
    "losses": "Map what would be lost, or allow it with `losses: warn`.",
    "count-out-of-range": "Give the derived attribute a wider type in the destination model.",
    "needs-mapping":
      "Write a mapping model, or change the destination model. `godwit model diff` shows the change.",
    "foreign-store": "These stores belong to another application. Exclude them from the pipeline.",
    "version-hash": "Give the model version that wrote the stores.",
    "plan": "Give the model versions that the message asks for.",
    "unsupported": "The message names what is not supported. Migrate these stores on a device.",
    "model": "Correct the model that the message names.",
    "mapping": "Check the mapping model with `godwit mapping check`.",
    "expression": "Correct the expression, or the rows that the message names.",
    "target-entity": "Correct the mapping model: the relationship does not allow those objects.",
    "incompatible": "Allow migration: `migrate: true`, or no `--no-migrate`.",
    "mapping-mismatch": "Give a mapping model that is for the version of the stores.",
    "store": "Check that the files are Core Data stores, or exclude them.",
    "link": "Put the file or folder itself there, or exclude the store.",
    "unusual-file": "Put a regular file there, or exclude the store.",
    "volume":
      "Mount the same volume with the stores on every machine, see `godwit doctor`, then run again.",
    "gone": "Run again. A store that was deleted or moved away for good is not found then.",
    "long-name": "Rename the store as the message says, or exclude it.",
    "no-stores": "Correct stores.roots, stores.include or stores.exclude.",
    "unreadable-folder": "Let this user read the folder, rename what is not UTF-8, or exclude it.",
    "empty-root": "Mount the volume, or correct stores.roots and stores.include.",
    "output": "Let this user write there, or move away the file that is in the way.",
    "temporary-folder": "Point TMPDIR to a folder that this user may write to, then run again.",
    "io": "Check the rights of the files, the volume and the kernel's log, then run again.",
    "commit": "Check the volume and the kernel's log, then run again.",
    "checkpoint": "Run again; the piece is made again.",
    "run-directory":
      "Do what the message says of the store's run directory, then run again. One that no commit was begun "
      + "in may be removed to start again.",
    "ledger": "Check the volume that holds the ledger and the state folder, then run again.",
    "quarantined":
      "Fix the cause that `godwit quarantine list` names, then `godwit quarantine release`: the next run tries "
      + "what is released. `godwit quarantine export` makes a small copy of one that can be opened.",
    "internal": "This is a defect of Godwit. Report it with the message.",
    "other-store": "Find out who put another store in the place of the one that was migrated.",
    "other-version":
      "Find out who put an older store in the place of the one that was migrated, or run the pipeline again.",
    "missing": "The store that the run wrote is not there any more. Restore it, or run again.",
    "digest":
      "The store is not what the run wrote. Find out who changed it before it is used again.",
    "changed-since":
      "An application wrote to the stores after the migration, or a later run migrated them again: roll "
      + "that back first. Else decide which of the two to keep.",
    "no-backup":
      "The ledger names no backup that could be restored, or it was removed: take the stores from another "
      + "copy.",
    "backup-changed":
      "The backup is not the file that the run made. Check it, and restore by hand, all of its files as "
      + "the message names them.",
    "remains":
      "Move away what is left of the stores that are gone, as the message names it, and roll back again.",
    "unreachable": "Bring the volume or the folder back, or let this user read it, then run again.",
    "outside-roots":
      "The stores lie in no root of the pipeline. Add it to stores.roots to act on them.",
  ]
}
