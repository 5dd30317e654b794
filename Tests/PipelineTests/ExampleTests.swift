import Foundation
import GodwitObjectModel
import GodwitSQLite
import StoreFixtures
import Testing

/// The examples that the documentation of Core Data itself uses, each run by the real program and
/// compared with what is drawn here.
@Suite struct `The examples` {
  @Test func `take an attribute from another one`() throws {
    let folder = try PipelineFolder("total-cost")
    try folder.write(
      "stores/orders.sqlite", "Orders.xcdatamodeld/Orders",
      """
      INSERT INTO ZORDER (Z_PK, Z_ENT, Z_OPT, ZNUMBER, ZAMOUNT) VALUES
        (1, 1, 1, 'A-1', 12.5), (2, 1, 4, 'A-2', NULL), (4, 1, 1, 'B-1', -3)
      """)
    let run = try Godwit.run(folder)
    #expect(run.status == 0)
    #expect(run.counts == "1 found, 1 migrated")
    #expect(
      try folder.table(
        "stores/orders.sqlite", "SELECT Z_PK, Z_OPT, ZNUMBER, ZTOTALCOST FROM ZORDER ORDER BY Z_PK")
        == [
          "1 1 A-1 12.5",
          "2 1 A-2 -",
          "4 1 B-1 -3.0",
        ])
  }

  @Test func `turn Fahrenheit into Celsius, beside the source`() throws {
    let folder = try PipelineFolder("celsius")
    try folder.write(
      "stores/alps/weather.sqlite", "Weather.xcdatamodeld/Weather",
      """
      INSERT INTO ZREADING (Z_PK, Z_ENT, Z_OPT, ZPLACE, ZTAKEN, ZTEMPERATURE) VALUES
        (1, 1, 1, 'Galtür', 700000000, 32), (2, 1, 1, 'Prutz', NULL, 212),
        (3, 1, 1, 'Ischgl', 700000060, -40), (4, 1, 1, 'Kappl', 700000120, 98.6)
      """)
    let before = try folder.bytes("stores/alps/weather.sqlite")
    let run = try Godwit.run(folder)
    #expect(run.status == 0)
    #expect(try folder.bytes("stores/alps/weather.sqlite") == before)
    #expect(folder.storeFiles() == ["alps/weather-celsius.sqlite", "alps/weather.sqlite"])
    #expect(
      try folder.table(
        "stores/alps/weather-celsius.sqlite",
        "SELECT ZPLACE, ZTAKEN, round(ZTEMPERATURE, 9) FROM ZREADING ORDER BY Z_PK") == [
          "Galtür 700000000 0.0",
          "Prutz - 100.0",
          "Ischgl 700000060 -40.0",
          "Kappl 700000120 37.0",
        ])
  }

  @Test func `set a relationship to what became of its source objects`() throws {
    let folder = try PipelineFolder("trades")
    try folder.write(
      "stores/trades.sqlite", "Trades.xcdatamodeld/Trades",
      """
      INSERT INTO ZACCOUNT (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES
        (1, 1, 1, 'joint'), (2, 1, 1, 'empty'), (5, 1, 1, 'savings');
      INSERT INTO ZTRADE (Z_PK, Z_ENT, Z_OPT, ZACCOUNT, ZAMOUNT, ZSYMBOL) VALUES
        (1, 2, 1, 5, 10.25, 'BAR'), (2, 2, 1, 1, 7, 'GOD'), (3, 2, 1, NULL, NULL, 'WIT'),
        (8, 2, 1, 5, 0, 'LIM'), (9, 2, 1, 1, -1.5, 'OSA')
      """)
    let run = try Godwit.run(folder)
    #expect(run.counts == "1 found, 1 migrated")
    #expect(
      try folder.table(
        "stores/trades.sqlite",
        """
        SELECT t.Z_PK, t.ZSYMBOL, t.ZTOTALCOST, a.ZNAME
          FROM ZTRADE AS t LEFT JOIN ZACCOUNT AS a ON a.Z_PK = t.ZACCOUNT
         ORDER BY t.Z_PK
        """) == [
          "1 BAR 10.25 savings",
          "2 GOD 7 joint",
          "3 WIT - -",
          "8 LIM 0 savings",
          "9 OSA -1.5 joint",
        ])
    #expect(
      try folder.table("stores/trades.sqlite", "SELECT Z_PK, ZNAME FROM ZACCOUNT ORDER BY Z_PK")
        == ["1 joint", "2 empty", "5 savings"])
  }

  @Test func `read attributes whose names are words of the language`() throws {
    let folder = try PipelineFolder("escaped-keys")
    try folder.write(
      "stores/parcels.sqlite", "Parcels.xcdatamodeld/Parcels",
      """
      INSERT INTO ZPARCEL (Z_PK, Z_ENT, Z_OPT, ZLABEL, ZSIZE, ZFIRST, ZLAST) VALUES
        (1, 1, 1, 'books', 42, 'Ada', 'Grace'), (2, 1, 1, 'shoes', NULL, NULL, 'Ada')
      """)
    let run = try Godwit.run(folder)
    #expect(run.counts == "1 found, 1 migrated")
    #expect(
      try folder.table(
        "stores/parcels.sqlite",
        "SELECT ZLABEL, ZVOLUME, ZSENDER, ZRECEIVER FROM ZPARCEL ORDER BY Z_PK") == [
          "books 42 Ada Grace",
          "shoes - - Ada",
        ])
  }
}

/// Recipes, Apple's own example of what counts as a version.
@Suite struct `The Recipes example` {
  private func write(
    _ store: String, _ version: FixtureModels.Recipes, in folder: PipelineFolder, _ rows: String
  ) throws {
    try DrawnStore(try version.model()).write(to: folder.path(store), rows: rows)
  }

  private static let recipes = """
    INSERT INTO ZRECIPE
      (Z_PK, Z_ENT, Z_OPT, ZCREATED, ZIDENTIFIER, ZINSTRUCTIONS, ZNAME, ZOVERVIEW, ZPREPTIME)
    VALUES
      (1, 6, 1, 7e8, x'000102030405060708090A0B0C0D0E0F', 'Stir.', 'Porridge', 'Warm', 10),
      (2, 6, 3, 7e8, x'100102030405060708090A0B0C0D0E0F', 'Cut.', 'Salad', NULL, 5);
    INSERT INTO ZINGREDIENT (Z_PK, Z_ENT, Z_OPT, ZNAME, ZAMOUNT, ZDISPLAYORDER, ZRECIPE) VALUES
      (1, 5, 1, 'oats', '80 g', 0, 1), (2, 5, 1, 'milk', '0.5 l', 1, 1),
      (3, 5, 1, 'salt', 'a pinch', 2, 1), (4, 5, 1, 'lettuce', NULL, 0, 2)
    """

  @Test func `leaves stores of 1.0 under 1.1 as they are, since only a class name differs`() throws
  {
    let folder = try PipelineFolder("recipes-1.1")
    try write("stores/ada/Recipes.sqlite", .one, in: folder, Self.recipes)
    try write("stores/grace/Recipes.sqlite", .onePointOne, in: folder, Self.recipes)
    let before = try ["ada", "grace"].map { try folder.bytes("stores/\($0)/Recipes.sqlite") }
    let run = try Godwit.run(folder)
    #expect(run.status == 0)
    #expect(run.counts == "2 found, 2 same-model")
    #expect(try ["ada", "grace"].map { try folder.bytes("stores/\($0)/Recipes.sqlite") } == before)
    #expect(folder.storeFiles() == ["ada/Recipes.sqlite", "grace/Recipes.sqlite"])
  }

  @Test func `migrates 1.0 and 1.1 to 2.0, and leaves 2.0`() throws {
    let folder = try PipelineFolder("recipes-2.0")
    try write("stores/ada/Recipes.sqlite", .one, in: folder, Self.recipes)
    try write("stores/grace/Recipes.sqlite", .onePointOne, in: folder, Self.recipes)
    try write("stores/joan/Recipes.sqlite", .two, in: folder, "")
    try write("stores/trash/Recipes.sqlite", .one, in: folder, Self.recipes)
    let run = try Godwit.run(folder)
    #expect(run.status == 0)
    #expect(run.counts == "3 found, 2 migrated, 1 same-model")
    for name in ["ada", "grace"] {
      #expect(
        try folder.table(
          "stores/\(name)/Recipes.sqlite",
          """
          SELECT Z_PK, Z_OPT, ZNAME, ZSUMMARY, ZSERVINGS, ZRATING, ZPREPTIME
            FROM ZRECIPE ORDER BY Z_PK
          """) == [
            "1 1 Porridge Warm 4 0 10",
            "2 3 Salad - 4 0 5",
          ])
    }
    #expect(try folder.names(in: "stores/trash") == ["Recipes.sqlite"])
  }

  @Test func `divides an entity by filters, with its relationships`() throws {
    let folder = try PipelineFolder("recipes-ingredients")
    try write("stores/ada/Recipes.sqlite", .one, in: folder, Self.recipes)
    let run = try Godwit.run(folder)
    #expect(run.status == 0, "\(run.messages)")
    #expect(
      try folder.table(
        "stores/ada/Recipes.sqlite",
        """
        SELECT z.Z_NAME, i.ZNAME, i.ZQUANTITY, i.ZUNIT, i.ZREMARK, r.ZNAME
          FROM ZINGREDIENT AS i
          JOIN Z_PRIMARYKEY AS z ON z.Z_ENT = i.Z_ENT
          JOIN ZRECIPE AS r ON r.Z_PK = i.ZRECIPE
         ORDER BY r.Z_PK, i.ZDISPLAYORDER
        """) == [
          "MeasuredIngredient oats 80 g - Porridge",
          "MeasuredIngredient milk 0.5 l - Porridge",
          "LooseIngredient salt - - a pinch Porridge",
          "LooseIngredient lettuce - - - Salad",
        ])
  }
}
