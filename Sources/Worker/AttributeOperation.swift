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

  /// - Parameter columnCount: Columns of the source that are read; where a plan has expressions,
  ///   they follow them.
  init(_ programs: [AttributeProgram], columnCount: Int = 0) {
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
      case .expression(let place):
        operation.code = .source
        operation.source = Int32(columnCount + place)
      case .sourceOr(let place, let value):
        operation.code = .sourceOr
        operation.source = Int32(place)
        operation.value = raw(value)
      case .converted(let place, let type, let value):
        operation.code = .converted
        operation.source = Int32(place)
        operation.type = Int32(type.rawValue)
        operation.value = raw(value)
      case .markedInline(let place, let value):
        operation.code = .markedInline
        operation.source = Int32(place)
        operation.value = raw(value)
        needsScratch = true
      case .unmarked(let place, let value):
        operation.code = .unmarked
        operation.source = Int32(place)
        operation.value = raw(value)
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
