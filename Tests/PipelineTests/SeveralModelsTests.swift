import Foundation
import Testing

@Suite struct `Models of several applications` {
  @Test(arguments: [true, false])
  func `bring a store to the current version of its own model, whichever was given last`(
    isLast: Bool
  ) throws {
    let folder = try PipelineFolder.orders(["a"])
    let models = [
      folder.root.appendingPathComponent("Fixtures/Recipes.xcdatamodeld").path,
      folder.path("Orders.xcdatamodeld"),
    ]
    let run = try Godwit.run(
      ["migrate", folder.path("stores/a.sqlite"), "--json"]
        + (isLast ? models : models.reversed()).flatMap { ["--models", $0] }
        + ["--mapping", folder.path("orders.mapping.yaml")])
    #expect(run.status == 0, "\(run.messages)")
    let result = try #require(run.results.values.first)
    #expect((result["destination"] as? String)?.hasPrefix("Orders") == true, "\(result)")
    #expect(try folder.table("stores/a.sqlite", "SELECT count(*) FROM ZORDER") == ["1"])
  }
}
