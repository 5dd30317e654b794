import GodwitMapping
import GodwitPlanning

/// Where the work of a run is done: the key `engine` of a pipeline's file.
package enum Engine: String, Sendable, CaseIterable {
  /// Processes of the machine on which `godwit run` was started.
  case local
  /// Job arrays of the Slurm cluster that `SLURM_CONF` or the machine names.
  case slurm
  /// Manifests, which somebody else runs: GNU parallel, an array scheduler.
  case array
}

/// How work is cut and submitted where it leaves the machine.
package struct ClusterSettings: Sendable, Equatable {
  /// Nil for the cluster's default. The key `sbatch` may name another: ``partitionOfTasks``.
  package var partition: String?
  /// Likewise.
  package var account: String?
  /// On how many machines tasks run at a time; nil for as many as there are.
  package var nodes: Int?
  /// How long a task may take, in seconds; nil for the partition's default.
  package var timeSeconds: Double?
  /// The most stores of a bundle.
  package var bundleStores = 2_000
  /// The most bytes of a bundle. A store that has more is cut over machines.
  package var bundleBytes: Int64 = 1 << 30
  /// The most tasks of an array.
  package var arrayMax = mostTasks
  /// Further arguments of sbatch.
  package var sbatch: [String] = []
  /// Environment variables of the coordinator that tasks get, beside those that godwit itself reads.
  package var environment: [String] = []

  /// 1 000: Slurm's own default is one more.
  package static let mostTasks = 1_000

  package init() {}

  /// Where tasks are sent; nil for the cluster's default. What the key `sbatch` says comes later, and counts.
  var partitionOfTasks: String? { option("partition", "p") ?? partition }

  /// The value of an option of the key `sbatch`, by its full or its short name; nil where it is not given. Of
  /// several the last counts, as it does for sbatch.
  func option(_ name: String, _ short: Character) -> String? {
    let given = sbatch.last { $0.hasPrefix("--\(name)=") || $0.hasPrefix("-\(short)") }
    return given.map { String($0.dropFirst($0.hasPrefix("--") ? name.count + 3 : 2)) }
  }
}

extension ClusterSettings {
  private enum Kind: String, CaseIterable { case slurm, array }
  private enum Key: String, CaseIterable {
    case partition, account, nodes, time, bundle, sbatch, environment
    case arrayMax = "array-max"
  }
  private enum ArrayKey: String, CaseIterable {
    case bundle
    case arrayMax = "array-max"
  }
  private enum BundleKey: String, CaseIterable { case stores, bytes }

  /// Reads the key `engine`: a word, or `slurm` or `array` with its keys.
  static func engine(_ value: YAMLValue) throws -> (Engine, ClusterSettings) {
    guard value.pairs != nil else { return (try value.word(Engine.self), ClusterSettings()) }
    let fields = try value.fields(Kind.self, of: "engine")
    guard fields.count == 1 else {
      throw value.problem("engine is local, slurm or array, or one of the last two with its keys")
    }
    if let slurm = fields[.slurm] { return (.slurm, try ClusterSettings(slurm: slurm)) }
    return (.array, try fields[.array].map(ClusterSettings.init(array:)) ?? ClusterSettings())
  }

  private init(slurm value: YAMLValue) throws {
    let fields = try value.fields(Key.self, of: "slurm")
    partition = try fields[.partition].map(Self.name)
    account = try fields[.account].map(Self.name)
    nodes = try fields[.nodes].map { try Self.count($0, "nodes", 1...100_000) }
    timeSeconds = try fields[.time].map { try TimeSpan.seconds($0) }
    try fields[.bundle].map { try takeBundle($0) }
    arrayMax =
      try fields[.arrayMax].map { try Self.count($0, "array-max", 1...Self.mostTasks) } ?? arrayMax
    sbatch = try fields[.sbatch].map(Self.arguments) ?? []
    environment = try fields[.environment].map(Self.variables) ?? []
  }

  private init(array value: YAMLValue) throws {
    let fields = try value.fields(ArrayKey.self, of: "array")
    try fields[.bundle].map { try takeBundle($0) }
    arrayMax =
      try fields[.arrayMax].map { try Self.count($0, "array-max", 1...Self.mostTasks) } ?? arrayMax
  }

  private mutating func takeBundle(_ value: YAMLValue) throws {
    let fields = try value.fields(BundleKey.self, of: "bundle")
    guard !fields.isEmpty else { throw value.problem("bundle needs the key stores, or bytes") }
    bundleStores =
      try fields[.stores].map { try Self.count($0, "stores", 1...1_000_000) } ?? bundleStores
    if let bytes = fields[.bytes] {
      guard let size = ByteSize(try bytes.text()) else {
        throw bytes.problem("the bytes of a bundle are a number such as 1GiB")
      }
      bundleBytes = size.bytes
    }
  }

  private static func count(
    _ value: YAMLValue, _ name: String, _ range: ClosedRange<Int>
  ) throws -> Int {
    guard let count = Int(try value.text()), range.contains(count) else {
      throw value.problem(
        "\(name) is a number from \(range.lowerBound) to \(range.upperBound)")
    }
    return count
  }

  /// A name of Slurm's, which becomes a part of an argument.
  private static func name(_ value: YAMLValue) throws -> String {
    let text = try value.text()
    let isName = text.utf8.allSatisfy { byte in
      (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
        || [UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: ",")]
          .contains(byte)
    }
    guard isName, !text.isEmpty, text.utf8.count <= 200 else {
      throw value.problem("\(text) is not a name of Slurm's")
    }
    return text
  }

  /// Names of environment variables: of any other `sbatch --export` would make something else.
  private static func variables(_ value: YAMLValue) throws -> [String] {
    guard let list = value.list else {
      throw value.problem("environment is a list of names, such as [LIBRARY_HOME]")
    }
    return try list.map { item in
      let text = try item.text()
      let isName = text.utf8.allSatisfy { byte in
        (0x30...0x39).contains(byte) || (0x41...0x5A).contains(byte)
          || (0x61...0x7A).contains(byte) || byte == UInt8(ascii: "_")
      }
      guard isName, text.first?.isNumber == false, !["ALL", "NIL", "NONE"].contains(text) else {
        throw item.problem("\(text) is not the name of an environment variable")
      }
      return text
    }
  }

  /// Options of sbatch that say where and how well a task runs, with a value. Others may keep tasks from
  /// being submitted, begun or found again; a shortened name or short options together could be any.
  ///
  /// Source: sbatch(1).
  private static let valued: Set<String> = [
    "account", "acctg-freq", "begin", "cluster-constraint", "comment", "constraint",
    "core-spec", "cores-per-socket", "deadline", "exclude", "gpu-bind", "gpu-freq", "gpus",
    "gpus-per-node", "gpus-per-task", "gres", "gres-flags", "hint", "licenses", "mail-type",
    "mail-user", "mcs-label", "mem", "mem-bind", "mem-per-cpu", "mem-per-gpu", "mincpus",
    "network", "nodelist", "partition", "power", "prefer", "priority", "profile", "qos",
    "reservation", "sockets-per-node", "switches", "thread-spec", "threads-per-core", "time",
    "time-min", "tmp", "wckey",
  ]
  /// Those that need none.
  private static let bare: Set<String> = ["contiguous", "exclusive", "nice", "oversubscribe"]
  /// Short forms, whose value follows at once.
  private static let short: Set<Character> = ["A", "C", "G", "L", "b", "p", "q", "t", "w", "x"]

  private static func isAllowed(_ option: String) -> Bool {
    guard option.hasPrefix("--") else {
      return option.count > 2 && short.contains(option.dropFirst().first ?? "-")
    }
    let parts = option.dropFirst(2).split(
      separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let name = String(parts[0])
    if bare.contains(name) { return parts.count == 1 || !parts[1].isEmpty }
    return valued.contains(name) && parts.count == 2 && !parts[1].isEmpty
  }

  /// Whether an option may ask for several machines: a list, a range, a file. A task has one, and Slurm gives a
  /// job all that are named, or refuses it.
  ///
  /// Source: sbatch(1), `--nodelist`.
  private static func mayNameSeveralMachines(_ option: String) -> Bool {
    guard option.hasPrefix("--nodelist=") || option.hasPrefix("-w") else { return false }
    return option.unicodeScalars.contains {
      [",", "[", "/"].contains($0) || $0.properties.isWhitespace
    }
  }

  private static func arguments(_ value: YAMLValue) throws -> [String] {
    guard let list = value.list else {
      throw value.problem("sbatch is a list of arguments, such as [--qos=low, --mem=4G]")
    }
    return try list.map { item in
      let text = try item.text()
      guard text.hasPrefix("-"), !text.utf8.contains(0) else {
        throw item.problem("\(text) is not an option. Write it as in --qos=low")
      }
      guard isAllowed(text) else {
        let long = valued.map { "--\($0)=" } + bare.map { "--\($0)" }
        throw item.problem(
          "\(text) is not an option of sbatch that a pipeline may give. These are, by their full names "
            + "and with their values: \(long.sorted().joined(separator: " ")) "
            + short.sorted().map { "-\($0)" }.joined(separator: " "))
      }
      guard !mayNameSeveralMachines(text) else {
        throw item.problem(
          "\(text) may ask for several machines, and a task has one: Slurm would give it all of them. "
            + "Leave the other machines out with --exclude, or name a partition")
      }
      return text
    }
  }
}
