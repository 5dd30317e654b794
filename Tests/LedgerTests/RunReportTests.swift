import Foundation
import GodwitLedger
import Testing

@Suite struct `A run report` {
  @Test func `says what to do about every reason, known or not`() {
    for reason in ["in-use", "damaged", "lost-entity", "of-a-later-version"] {
      #expect(FailureAdvice.text(for: reason).hasSuffix("."))
    }
    #expect(FailureAdvice.text(for: "lost-entity") == FailureAdvice.text(for: "losses"))
  }
}
