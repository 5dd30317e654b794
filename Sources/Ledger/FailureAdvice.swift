/// What to do about stores that failed for a reason, whichever stores they are.
public enum FailureAdvice {
  /// - Parameter reason: The word that a result's `reasons` give.
  public static func text(for reason: String) -> String {
    if reason.hasPrefix("lost-") { return texts["losses"] ?? fallback }
    return texts[reason] ?? fallback
  }

  private static let fallback =
    "Read the message, fix the cause, and run again. `godwit migrate` with one of the stores says "
    + "more."

  private static let texts = [
    "stopped": "Run the same command again to resume.",
    "in-use": "Close the applications that have the stores open, then run again.",
    "changed": "An application wrote to the stores during the run. Run again.",
    "disk-full": "Free space on the volume, or set `backups.max`, then run again.",
    "locked": "Another run works on the stores. Wait for it to end, then run again.",
    "workers-lost": "Check the machine's memory and limits with `godwit doctor`, then run again.",
    "coordination-lost":
      "See the run's output. Migrate one of the stores with `godwit migrate` to see more.",
    "damaged":
      "Inspect one with `godwit inspect`. Restore the store from a copy, or repair it.",
    "validation":
      "Correct the values that the message names, or map them with a mapping model.",
    "uniqueness": "Make the values unique in the source, or drop the constraint.",
    "losses": "Map what would be lost, or allow it with `losses: warn`.",
    "foreign": "These stores belong to another application. Exclude them from the pipeline.",
    "model": "Correct the model that the message names.",
    "mapping": "Check the mapping model with `godwit mapping check`.",
    "mapping-mismatch": "Give a mapping model that is for the two versions.",
    "store": "Check that the path is a Core Data store; exclude it otherwise.",
    "link": "Put the file or folder itself there, or exclude the store.",
    "unusual-file": "Put a regular file there, or exclude the store.",
    "unreadable-folder": "Let this user read the folder, or exclude it.",
    "output": "Let this user write there, or move away the file that is in the way.",
    "io": "Check the volume and the kernel's log before the next run.",
    "commit": "Check the volume and the kernel's log before the next run.",
    "checkpoint": "Run again; the piece is made again.",
    "run-directory": "Check the permissions of the state folder, then run again.",
    "ledger": "Check the volume that holds the ledger and the state folder, then run again.",
    "limits": "Raise the limits that the message names.",
    "quarantined":
      "Export one with `godwit quarantine export`, fix the cause, then `godwit quarantine release`.",
    "internal": "This is a defect of Godwit. Report it with the message.",
    "changed-since":
      "An application wrote to the stores after the migration. Decide which of the two to keep.",
    "no-backup": "The ledger names no backup that could be restored.",
    "backup-changed":
      "The backup is not the file that the run made. Check it, and restore by hand.",
  ]
}
