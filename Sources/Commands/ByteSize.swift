import ArgumentParser
import GodwitFleet

extension ByteSize: ExpressibleByArgument {
  package init?(argument: String) { self.init(argument) }

  package var defaultValueDescription: String { Self.text(bytes) }
}

/// Whole numbers in groups of three: `12 345`.
func grouped(_ number: Int64) -> String {
  let digits = String(number.magnitude)
  var text = number < 0 ? "-" : ""
  for (place, digit) in digits.enumerated() {
    if place > 0, (digits.count - place).isMultiple(of: 3) { text += " " }
    text.append(digit)
  }
  return text
}
