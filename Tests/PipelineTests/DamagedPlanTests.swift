import Foundation
import Testing

/// What `plan.json` says when a commit is at its end is not what was written.
@Suite struct `A mapped migration whose plan was damaged after it was killed` {
  @Test func `ends well when it is run again, whatever its commit had come to`() throws {
    var finished = 0
    var step = 60
    while finished < 3, step > 20 {
      defer { step -= 1 }
      let folder = try PipelineFolder.orders(["a"])
      let store = folder.path("stores/a.sqlite")
      let words = [
        "migrate", store, "--models", folder.path("Orders.xcdatamodeld"), "--mapping",
        folder.path("orders.mapping.yaml"), "--workers", "1", "--json",
      ]
      guard try Godwit.run(words, killAfter: step).status == -SIGKILL else { continue }
      let plan = "stores/a.sqlite.godwit/plan.json"
      let journal = folder.path("stores/a.sqlite.godwit/journal.json")
      guard FileManager.default.fileExists(atPath: journal),
        let text = try? String(contentsOfFile: folder.path(plan), encoding: .utf8)
      else { continue }
      let damaged = text.replacing(#""mapping":{"_0":0}"#, with: #""mapping":{"_0":99}"#)
      try #require(damaged != text)
      try damaged.write(toFile: folder.path(plan), atomically: false, encoding: .utf8)
      let again = try Godwit.run(words)
      #expect(again.status == 0, "step \(step): \(again.messages)")
      let result = again.summary
      #expect(result["verdict"] as? String == "migrated", "step \(step)")
      let notes = (result["notes"] as? [String] ?? []).joined(separator: " ")
      if notes.contains("cannot be read as a plan") {
        #expect(result["backup"] as? String != nil, "step \(step)")
        finished += 1
      }
    }
    #expect(finished == 3)
  }
}
