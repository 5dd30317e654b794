import GodwitObjectModel
import GodwitSQLite

/// A register before the constants have their places: they come first, temporaries behind them.
enum CompiledRegister {
  case constant(Int)
  case temporary(Int)

  func place(behind constants: Int) -> Int {
    switch self {
    case .constant(let place): place
    case .temporary(let place): constants + place
    }
  }
}

extension CompiledExpressionBuilder {
  /// What is known of a register before any row is read.
  enum Kind: Equatable {
    /// An integer or a real; which, the row tells.
    case number
    case date
    /// What was reckoned with a decimal number; see ``CompiledDecimal``.
    case decimal
    case null
    /// Copied as it is, or compared with nil.
    case other(AttributeType)
  }

  enum Constant {
    case value(RawValue)
    case text(String)
  }

  struct Draft {
    var instruction: CompiledInstruction
    var target: CompiledRegister
    var a: CompiledRegister
    var b: CompiledRegister

    func placed(behind constants: Int) -> CompiledInstruction {
      var result = instruction
      result.target = UInt16(truncatingIfNeeded: target.place(behind: constants))
      result.a = UInt16(truncatingIfNeeded: a.place(behind: constants))
      result.b = UInt16(truncatingIfNeeded: b.place(behind: constants))
      return result
    }
  }
}
