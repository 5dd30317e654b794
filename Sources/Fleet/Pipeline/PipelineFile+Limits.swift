import GodwitMapping

// The keys that say what a run may take, and in which order it goes.
extension RunLimits {
  init(_ value: YAMLValue) throws {
    let fields = try value.fields(PipelineFile.LimitsKey.self, of: "limits")
    storeTimeoutSeconds = try fields[.storeTimeout].map { try TimeSpan.seconds($0) }
    failureBudget = try fields[.failureBudget].map { value in
      let text = try value.text()
      guard let budget = FailureBudget(text) else {
        throw value.problem(
          "\(text) is not a failure budget: a count such as 10, or a share from 0% to 100%")
      }
      return budget
    }
    window = try fields[.window].map { value in
      let text = try value.text()
      guard let window = DailyWindow(text) else {
        throw value.problem("\(text) is not a part of a day, such as \"01:00-05:00\"")
      }
      return window
    }
    ioBytesPerSecond = try fields[.io].map { value in
      let text = try value.text()
      guard let rate = ByteSize(rate: text) else {
        throw value.problem(
          "\(text) is not a number of bytes a second, such as 80MiB/s",
          // A bare number is hardly meant in bytes.
          [text + (Int(text) == nil ? "/s" : "MiB/s")].first { ByteSize(rate: $0) != nil })
      }
      return rate.bytes
    }
    load = try fields[.load].map { value in
      let text = try value.text()
      guard let load = Double(text), load > 0, load <= 10_000 else {
        throw value.problem("\(text) is not a load average, such as 4 or 1.5")
      }
      return load
    }
  }
}

extension TimeSpan {
  /// - Parameter unit: That which is meant where a number has none: the one to suggest.
  static func seconds(
    _ value: YAMLValue, such examples: String = "90s, 30m or 1h30m", unit: String = "m",
    mayBeNone: Bool = false
  ) throws -> Double {
    let text = try value.text()
    guard let span = TimeSpan(text), mayBeNone || span.seconds > 0 else {
      throw value.problem(
        "\(text) is not a length of time, such as \(examples)",
        TimeSpan(text + unit) == nil ? nil : text + unit)
    }
    return span.seconds
  }
}

extension ByteSize {
  /// A number of bytes a second: `80MiB/s`.
  package init?(rate text: String) {
    guard text.hasSuffix("/s") else { return nil }
    self.init(String(text.dropLast(2)))
  }
}

extension Pipeline {
  static func canary(_ value: YAMLValue) throws -> [WaveSize] {
    guard let list = value.list, !list.isEmpty else {
      throw value.problem("canary is a list of waves, such as [1, 1%, 10%, 100%]")
    }
    let sizes = try list.map { item in
      let text = try item.text()
      guard let size = WaveSize(text) else {
        throw item.problem("\(text) is not a wave: a count such as 1, or a share up to 100%")
      }
      return size
    }
    guard sizes.last == .percent(100) else {
      throw value.problem("the last wave of canary is 100%")
    }
    return sizes
  }

  static func inUse(_ value: YAMLValue) throws -> InUsePolicy {
    guard value.pairs != nil else {
      switch try value.word(PipelineFile.InUseWord.self) {
      case .skip: return .skip
      case .offline: return .offline
      case .snapshot: return .snapshot
      }
    }
    let fields = try value.fields(PipelineFile.InUseKey.self, of: "in-use")
    guard let wait = fields[.wait] else { throw value.problem("in-use is empty") }
    return .wait(seconds: try TimeSpan.seconds(wait))
  }
}
