import Foundation
import GodwitSQLite
import Testing

/// SQLite keeps no sign of a zero in a column of reals.
@Suite struct `A negative zero` {
  @Test func `that a mapping model computes is written as zero`() throws {
    let folder = try PipelineFolder.orders(["a"])
    let store = folder.path("stores/a.sqlite")
    let connection = try Connection(path: store, mode: .readWrite)
    try connection.execute("UPDATE ZORDER SET ZAMOUNT = 0")
    try connection.close()
    try """
    mapping-model: 1
    entity-mappings:
      - { source: Order, destination: Order, attributes: { totalCost: "$source.amount * -1" } }
    """.write(toFile: folder.path("orders.mapping.yaml"), atomically: true, encoding: .utf8)
    let run = try Godwit.run(folder)
    #expect(run.status == 0, "\(run.messages)")
    let costs = try folder.table("stores/a.sqlite", "SELECT DISTINCT ZTOTALCOST FROM ZORDER")
    #expect(costs == ["0.0"])
  }
}
