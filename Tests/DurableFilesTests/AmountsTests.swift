import GodwitDurableFiles
import Testing

@Suite struct `What files say of their sizes` {
  private static let most = Int64.max

  @Test(
    arguments: [
      (1, 2, 3), (most, 0, most), (most, 1, most), (most, most, most), (-most, -2, .min),
      (.min, -1, .min), (most, -most, 0), (5 << 60, 5 << 60, most),
    ] as [(Int64, Int64, Int64)])
  func `adds up, to the largest number at most`(one: Int64, other: Int64, sum: Int64) {
    #expect(one.added(other) == sum && other.added(one) == sum && [one, other].total == sum)
  }

  @Test(
    arguments: [
      (3, 4, 12), (3, most, most), (-1, most, -most), (-2, most, .min), (-2, .min, most),
      (0, most, 0),
    ] as [(Int64, Int64, Int64)])
  func `is multiplied likewise`(one: Int64, other: Int64, product: Int64) {
    #expect(one.times(other) == product && other.times(one) == product)
  }

  @Test(
    arguments: [
      (1.9, 1), (-1.9, -1), (9.3e18, most), (-9.3e18, .min), (.infinity, most), (.nan, 0),
      (9_223_372_036_854_775_807.0, most),
    ] as [(Double, Int64)])
  func `is a whole number whatever it was divided by`(number: Double, whole: Int64) {
    #expect(Int64(nearest: number) == whole)
  }

  @Test func `is nothing where there is none`() { #expect([Int64]().total == 0) }
}
