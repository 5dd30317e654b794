import Testing

@testable import GodwitFleet

@Suite struct `A text about settings` {
  /// One of an earlier version is the first part alone; of a commit of an earlier run nothing is known.
  @Test(
    arguments: [
      ("a-m", "a-m", true, true), ("b-m", "a-m", false, true), ("b-n", "a-m", false, false),
      ("a", "a-m", true, true), ("b", "a-m", false, false), ("b", "a", false, false),
      ("m", "a-m", false, false), ("", "a-m", false, false),
    ] as [(String, String, Bool, Bool)])
  func `is compared as a whole, and by the models`(
    known: String, now: String, areSame: Bool, areOfSameModels: Bool
  ) {
    #expect(SettingsDigest.areSame(known, now) == areSame)
    #expect(SettingsDigest.areSame(now, known) == areSame)
    #expect(SettingsDigest.areOfSameModels(known, now) == areOfSameModels)
    #expect(SettingsDigest.areOfSameModels(now, known) == areOfSameModels)
  }

  /// Nothing is known where there is none.
  @Test(arguments: [("a", true), ("a-m", false), ("", false)])
  func `tells an earlier version by its one part`(text: String, isOfEarlierVersion: Bool) {
    #expect(SettingsDigest.isOfEarlierVersion(text) == isOfEarlierVersion)
  }

  @Test func `has a digest of everything, and one of the models`() {
    let text = SettingsDigest.text(whole: [1, 2], models: [2])
    let others = SettingsDigest.text(whole: [3, 2], models: [2])
    #expect(text.count == 129 && SettingsDigest.whole(text).count == 64)
    #expect(!SettingsDigest.areSame(text, others))
    #expect(SettingsDigest.areOfSameModels(text, others))
  }
}
