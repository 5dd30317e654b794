import GodwitObjectModel
import GodwitPlanning
import GodwitSQLite

/// An ``AttributeProgram`` made ready for the row loop: trivial, without ownership.
struct AttributeOperation: BitwiseCopyable {
  enum Code: UInt8, BitwiseCopyable {
    case constant, source, sourceOr, converted, markedInline, unmarked, refiled
  }

  var code: Code
  var source: Int32
  var type: Int32
  /// A constant, or what takes the place of NULL.
  var value: RawValue
}

/// The operations of one entity, and the memory of their constants.
final class AttributeProgramCode {
  let operations: UnsafeMutableBufferPointer<AttributeOperation>
  /// True when some value cannot be taken over as it is found, external data for example.
  let needsScratch: Bool
  private var constants: [UnsafeMutableRawBufferPointer] = []

  init(_ programs: [AttributeProgram]) {
    operations = .allocate(capacity: programs.count)
    var needsScratch = false
    var owned: [UnsafeMutableRawBufferPointer] = []
    func raw(_ value: StoredDefault?) -> RawValue {
      switch value {
      case nil: return .null
      case .integer(let integer): return .integer(integer)
      case .real(let real): return .real(real)
      case .text(let text):
        let bytes = Self.keep(Array(text.utf8), in: &owned)
        return .text(UnsafeRawPointer(bytes.baseAddress), count: bytes.count)
      case .blob(let blob):
        let bytes = Self.keep(blob, in: &owned)
        return .blob(UnsafeRawPointer(bytes.baseAddress), count: bytes.count)
      }
    }
    for (index, program) in programs.enumerated() {
      var operation = AttributeOperation(code: .constant, source: 0, type: 0, value: .null)
      switch program {
      case .null: break
      case .constant(let value): operation.value = raw(value)
      case .source(let place):
        operation.code = .source
        operation.source = Int32(place)
      case .sourceOr(let place, let value):
        operation.code = .sourceOr
        operation.source = Int32(place)
        operation.value = raw(value)
      case .converted(let place, let type, let value):
        operation.code = .converted
        operation.source = Int32(place)
        operation.type = Int32(type.rawValue)
        operation.value = raw(value)
      case .markedInline(let place):
        operation.code = .markedInline
        operation.source = Int32(place)
        needsScratch = true
      case .unmarked(let place):
        operation.code = .unmarked
        operation.source = Int32(place)
        needsScratch = true
      case .refiled(let place):
        operation.code = .refiled
        operation.source = Int32(place)
        needsScratch = true
      }
      operations.initializeElement(at: index, to: operation)
    }
    self.needsScratch = needsScratch
    constants = owned
  }

  deinit {
    operations.deallocate()
    for bytes in constants { bytes.deallocate() }
  }

  private static func keep(
    _ bytes: [UInt8], in owned: inout [UnsafeMutableRawBufferPointer]
  ) -> UnsafeMutableRawBufferPointer {
    // One byte at least: a value of no bytes still needs a place, or it would be NULL.
    let kept = UnsafeMutableRawBufferPointer.allocate(byteCount: max(bytes.count, 1), alignment: 1)
    kept.copyBytes(from: bytes)
    owned.append(kept)
    return UnsafeMutableRawBufferPointer(rebasing: kept[..<bytes.count])
  }
}

/// Converts a number to another numeric attribute type, as its column would hold it.
///
/// Apple documents that inference converts between numeric types and not how a value that does
/// not fit is narrowed: integers and booleans are truncated toward zero and clamped to the
/// type's range, so that the result is always a value of the type.
/// Source: `core-data-migration.md` §2.2; storage classes: `core-data-sqlite-format.md` §5.
enum NumericConversion {
  @inline(__always)
  static func convert(_ value: RawValue, to type: Int32) -> RawValue {
    switch value.kind {
    case .integer: convert(integer: value.bits, to: type)
    case .real: convert(real: value.real, to: type)
    case .null, .text, .blob: value
    }
  }

  @inline(__always)
  private static func convert(integer: Int64, to type: Int32) -> RawValue {
    switch type {
    case 100: .integer(max(-0x8000, min(0x7FFF, integer)))
    case 200: .integer(max(-0x8000_0000, min(0x7FFF_FFFF, integer)))
    case 300, 400: .integer(integer)
    case 500: .real(Double(integer))
    case 600: .real(Double(Float(integer)))
    case 800: .integer(integer == 0 ? 0 : 1)
    default: .integer(integer)
    }
  }

  @inline(__always)
  private static func convert(real: Double, to type: Int32) -> RawValue {
    switch type {
    case 100: return .integer(clamp(real, -0x8000, 0x7FFF))
    case 200: return .integer(clamp(real, -0x8000_0000, 0x7FFF_FFFF))
    case 300: return .integer(clamp(real, .min, .max))
    case 400:
      // DECIMAL has numeric affinity: integral values are integers.
      if let integral = Int64(exactly: real) { return .integer(integral) }
      return .real(real)
    case 500: return .real(real)
    case 600: return .real(Double(Float(real)))
    case 800: return .integer(real == 0 ? 0 : 1)
    default: return .real(real)
    }
  }

  @inline(__always)
  private static func clamp(_ real: Double, _ low: Int64, _ high: Int64) -> Int64 {
    if real.isNaN { return 0 }
    if real <= Double(low) { return low }
    if real >= Double(high) { return high }
    return Int64(real)
  }
}
