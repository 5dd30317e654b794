import GodwitSQLite

/// Random numbers that a seed repeats: SplitMix64.
struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64
  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

/// Every integer at which the size of a serial type changes, with its neighbours.
let boundaryIntegers: [Int64] = {
  var integers: Set<Int64> = [0, 1, 2, -1, -2, .min, .min + 1, .max, .max - 1]
  for bits in [7, 8, 15, 16, 23, 24, 31, 32, 47, 48, 62] {
    for distance in Int64(-2)...2 {
      integers.insert((1 << Int64(bits)) + distance)
      integers.insert(-(1 << Int64(bits)) + distance)
    }
  }
  return integers.sorted()
}()

/// A value of any kind, boundaries more often than chance would have it.
func drawValue(from generator: inout SeededGenerator) -> SQLiteValue {
  switch Int.random(in: 0..<6, using: &generator) {
  case 0: .null
  case 1: .integer(boundaryIntegers.randomElement(using: &generator) ?? 0)
  case 2: .integer(.random(in: .min ... .max, using: &generator))
  case 3: .real(Double(bitPattern: .random(in: 0 ... .max, using: &generator)))
  case 4:
    .text(
      String(
        (0..<Int.random(in: 0...70, using: &generator)).map { _ in
          "aZ é漢🍲\u{0}".randomElement(using: &generator) ?? "a"
        }))
  default:
    .blob(
      (0..<Int.random(in: 0...200, using: &generator)).map { _ in
        .random(in: 0...255, using: &generator)
      })
  }
}

/// Hands the values as raw values to the body; their bytes live as long as it runs.
func withRaw<Result>(
  _ values: [SQLiteValue], _ body: (UnsafePointer<RawValue>, Int) throws -> Result
) rethrows -> Result {
  var bytes: [[UInt8]] = []
  for value in values {
    switch value {
    case .text(let text): bytes.append(Array(text.utf8))
    case .blob(let blob): bytes.append(blob)
    case .null, .integer, .real: bytes.append([])
    }
  }
  let pool = UnsafeMutableRawBufferPointer.allocate(
    byteCount: max(1, bytes.reduce(0) { $0 + $1.count }), alignment: 1)
  let raw = UnsafeMutablePointer<RawValue>.allocate(capacity: max(1, values.count))
  defer {
    pool.deallocate()
    raw.deallocate()
  }
  var offset = 0
  for (index, value) in values.enumerated() {
    let count = bytes[index].count
    UnsafeMutableRawBufferPointer(rebasing: pool[offset..<offset + count])
      .copyBytes(from: bytes[index])
    let place = UnsafeRawPointer(pool.baseAddress).map { $0 + offset }
    offset += count
    switch value {
    case .null: raw[index] = .null
    case .integer(let integer): raw[index] = .integer(integer)
    case .real(let number): raw[index] = .real(number)
    case .text: raw[index] = .text(count == 0 ? nil : place, count: count)
    case .blob: raw[index] = .blob(count == 0 ? nil : place, count: count)
    }
  }
  return try body(raw, values.count)
}

/// The record of the values, as our encoder writes it.
func record(of values: [SQLiteValue]) -> [UInt8] {
  withRaw(values) { raw, count in
    var buffer = RawBuffer()
    let size = RecordFormat.encode(raw, count: count, into: &buffer)
    precondition(size == buffer.count)
    return Array(buffer.bytes)
  }
}

/// The first `count` values of a record, or `nil` if it is malformed.
///
/// The record is copied to memory of just its size, so that a sanitizer sees a read beyond it.
func values(of record: [UInt8], count: Int) -> [SQLiteValue]? {
  let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: record.count, alignment: 1)
  let raw = UnsafeMutablePointer<RawValue>.allocate(capacity: max(1, count))
  defer {
    memory.deallocate()
    raw.deallocate()
  }
  memory.copyBytes(from: record)
  guard RecordFormat.decode(record: UnsafeRawBufferPointer(memory), into: raw, count: count) else {
    return nil
  }
  return (0..<count).map { index in
    let bytes = raw[index].buffer
    // A text or blob lies in the record, whatever the record says.
    if !bytes.isEmpty, let start = bytes.baseAddress, let whole = memory.baseAddress {
      precondition(start >= whole && start + bytes.count <= whole + record.count)
    }
    return SQLiteValue(raw[index])
  }
}
