/// What a change to files survives once the call that made it has returned.
package enum Durability: Sendable {
  /// The end of this process, but no power cut: nothing is flushed. For files whose reader notices
  /// that they are torn or missing, and can do without.
  case processCrash
  /// Both: the bytes and the names are on the disk.
  case powerCut
}
