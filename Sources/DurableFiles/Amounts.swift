// Sums of what files say of themselves. A file without a byte on the disk may have a size of 8 EiB, and anybody can
// make several of these: a sum that traps ends the work on everybody's stores.
extension FixedWidthInteger {
  /// The sum, or the nearest number that there is.
  package func added(_ other: Self) -> Self {
    let sum = addingReportingOverflow(other)
    return sum.overflow ? (other < 0 ? .min : .max) : sum.partialValue
  }

  /// The product, or the nearest number that there is.
  package func times(_ other: Self) -> Self {
    let product = multipliedReportingOverflow(by: other)
    return product.overflow ? ((self < 0) == (other < 0) ? .max : .min) : product.partialValue
  }
}

extension Sequence where Element: FixedWidthInteger {
  /// The sum of all, or the nearest number that there is.
  package var total: Element { reduce(0) { $0.added($1) } }
}

extension Int64 {
  /// The whole number below, or the nearest that there is; 0 for what is no number.
  package init(nearest number: Double) {
    guard !number.isNaN else {
      self = 0
      return
    }
    self = Int64(exactly: number.rounded(.towardZero)) ?? (number < 0 ? .min : .max)
  }
}
