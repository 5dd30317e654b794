import Foundation
import GodwitDurableFiles
import SystemPackage
import Testing

@testable import GodwitFleet

/// Slurm's commands are scripts here, which say what Slurm may say, and write down how they were called.
@Suite final class `Slurm's commands` {
  private let folder = FilePath(
    FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path)

  init() throws {
    try DurableFile.makeFolder(folder)
    try say(
      "sinfo",
      "echo 'n1|4|idle|main*'; echo 'n2|4|mixed|main*'; echo 'n3|4|down*|main*'"
        + "; echo 'n4|2|drained|main*'")
    try say("scontrol", "echo 'MaxArraySize = 1001'; echo 'MaxJobCount = 10000'")
    try say("sbatch", "cat > \"$0.script\"; echo '17;cluster'")
    try say("squeue", "true")
    try say("scancel", "true")
  }

  deinit { try? FileManager.default.removeItem(atPath: folder.string) }

  /// Makes a command that writes its arguments down and then does something. A process of its own writes it: what
  /// other tests start meanwhile has files open that this one writes, and nobody can run such a file.
  private func say(_ command: String, _ script: String) throws {
    let text = "#!/bin/sh\nprintf '%s\\n' \"$@\" >> \"$0.arguments\"\n\(script)\n"
    let (place, draft) = (folder.appending(command).string, folder.appending("draft").string)
    try text.write(toFile: draft, atomically: true, encoding: .utf8)
    let install = try Process.run(
      URL(fileURLWithPath: "/usr/bin/install"), arguments: ["-m", "700", draft, place])
    install.waitUntilExit()
    #expect(install.terminationStatus == 0)
  }

  private func arguments(of command: String) throws -> [String] {
    try String(contentsOfFile: folder.appending("\(command).arguments").string, encoding: .utf8)
      .split(separator: "\n").map(String.init)
  }

  private func scheduler(_ change: (inout ClusterSettings) -> Void = { _ in }) -> SlurmScheduler {
    var settings = ClusterSettings()
    change(&settings)
    return SlurmScheduler(
      settings: settings, executable: "/opt/it's/godwit", workers: 2, folder: folder)
  }

  private let array = BundleFolder("/p/state/cluster/000001-ab")

  @Test(arguments: [
    (1_001, 10_000, 1_000, 1_000, 5_000),  // Slurm's defaults
    (101, 10_000, 1_000, 100, 5_000),  // a cluster with short arrays
    (100_000, 10_000, 1_000, 1_000, 5_000),  // one with long ones: no more than we are tried with
    (1_001, 10_000, 50, 50, 5_000),  // what the pipeline says
    (1_001, 200, 1_000, 100, 100),  // a cluster with room for few jobs, half of it
    (1_001, 1, 1_000, 1, 1),  // or for one
  ])
  func `tell the limits`(size: Int, jobs: Int, most: Int, tasks: Int, pending: Int) async throws {
    try say("scontrol", "echo 'MaxArraySize = \(size)'; echo 'MaxJobCount = \(jobs)'")
    let limits = try await scheduler { $0.arrayMax = most }.limits()
    #expect(limits == SchedulerLimits(arrayTasks: tasks, tasks: pending, slots: 4))
  }

  @Test func `get every task of an array, and nothing of the caller's surroundings`() async throws {
    let job = try await scheduler {
      ($0.partition, $0.account, $0.timeSeconds) = ("night", "team", 90)
      $0.sbatch = ["--qos=low"]
    }.submit(array, [0, 1, 2, 7], after: [], isOfLargeStore: false)
    #expect(job == "17")
    let found = try arguments(of: "sbatch")
    let wanted = [
      "--array=0-2,7", "--job-name=godwit-000001-ab", "--requeue", "--open-mode=append",
      "--partition=night", "--account=team", "--time=2", "--qos=low", "--cpus-per-task=2",
      "--nice",
    ]
    for argument in wanted { #expect(found.contains(argument), "\(found)") }
    let export = try #require(found.first { $0.hasPrefix("--export=") })
    #expect(!export.contains("ALL"))
    let script = try String(
      contentsOfFile: folder.appending("sbatch.script").string, encoding: .utf8)
    #expect(script.contains("exec '/opt/it'\\''s/godwit' 'worker' '--manifest'"))
    #expect(script.contains("SLURM_ARRAY_TASK_ID"))
  }

  @Test func `get what names have, whatever follows on a quotation mark or a percent sign`()
    async throws
  {
    _ = try await scheduler().submit(
      BundleFolder("/p/it'\u{301}s/%\u{301}/cluster/000001-ab"), [0], after: [],
      isOfLargeStore: false)
    let script = try String(
      contentsOfFile: folder.appending("sbatch.script").string, encoding: .utf8)
    #expect(script.utf8.contains("/p/it'\\''\u{301}s/".utf8), "\(script)")
    let output = try arguments(of: "sbatch").first { $0.hasPrefix("--output=") } ?? ""
    #expect(output.utf8.contains("/%%\u{301}/".utf8), "\(output)")
  }

  @Test func `get the variables that the pipeline names, where they are set`() async throws {
    setenv("LIBRARY_HOME", "/l", 1)
    defer { unsetenv("LIBRARY_HOME") }
    _ = try await scheduler { $0.environment = ["LIBRARY_HOME", "LIBRARY_NOWHERE"] }
      .submit(array, [0], after: [], isOfLargeStore: false)
    let export = try arguments(of: "sbatch").first { $0.hasPrefix("--export=") }
    let names = try #require(export?.dropFirst("--export=".count)).split(separator: ",")
    #expect(names.contains("LIBRARY_HOME") && names.contains("PATH"))
    #expect(!names.contains("LIBRARY_NOWHERE"))
  }

  @Test func `are told of the machines of the default partition, each once`() async throws {
    try say(
      "sinfo",
      "echo 'n1|4|idle|main*'; echo 'n1|4|idle|gpu'; echo 'n2|4|idle|gpu'; echo 'n3|2|down*|main*'")
    let machines = try await scheduler().machines()
    #expect(machines.map(\.name) == ["n1", "n3"])
    #expect(machines.map(\.isUsable) == [true, false])
    #expect(try await scheduler().limits().slots == 2)
    try say("sinfo", "echo 'n1|4|idle|gpu'; echo 'n2|4|idle|gpu'; echo 'n2|4|idle|all'")
    #expect(
      try await scheduler { $0.partition = "gpu,all" }.machines().map(\.name) == ["n1", "n2"])
  }

  @Test(arguments: [
    (["--exclude=n2"], ["n1", "n3", "n4"]), (["-xn2"], ["n1", "n3", "n4"]),
    (["--nodelist=n2"], ["n2"]), (["--qos=low"], ["n1", "n2", "n3", "n4"]),
    (["--exclude=/etc/nodes"], ["n1", "n2", "n3", "n4"]), (["-wn3"], ["n3"]),
    (["--nodelist=n1", "-wn3"], ["n3"]),  // the last one counts
    (["--nodelist=n2", "-xn2"], []),
  ])
  func `are told of the machines that the key sbatch leaves`(options: [String], names: [String])
    async throws
  {
    try say("scontrol", "echo n2")
    #expect(try await scheduler { $0.sbatch = options }.machines().map(\.name) == names)
  }

  @Test(
    arguments: [
      (nil, [], nil, ["n1"]),  // the cluster's default
      ("night", [], "night", ["n2"]),
      (nil, ["--partition=long"], "long", ["n3"]), (nil, ["-plong"], "long", ["n3"]),
      ("night", ["--qos=low", "-plong"], "long", ["n3"]),  // before the key, as for sbatch
      ("night", ["--partition=long", "-pnight"], "night", ["n2"]),  // the last one
      (nil, ["-plong,night"], "long,night", ["n2", "n3"]),
    ] as [(String?, [String], String?, [String])])
  func `are told of the machines of the partition that tasks are sent to, whatever names it`(
    key: String?, options: [String], asked: String?, names: [String]
  ) async throws {
    try say(
      "sinfo",
      "case \"$*\" in *=night*) ;; *=long*) ;; *) echo 'n1|4|idle|main*';; esac; "
        + "case \"$*\" in *night*) echo 'n2|4|idle|night';; esac; "
        + "case \"$*\" in *long*) echo 'n3|4|idle|long';; esac")
    let scheduler = scheduler { ($0.partition, $0.sbatch) = (key, options) }
    #expect(try await scheduler.machines().map(\.name) == names)
    #expect(
      try arguments(of: "sinfo").filter { $0.hasPrefix("--partition") }
        == asked.map { ["--partition=\($0)"] } ?? [])
    _ = try await scheduler.submit(array, [0], after: [], isOfLargeStore: false)
    let last = try arguments(of: "sbatch").last {
      $0.hasPrefix("--partition=") || $0.hasPrefix("-p")
    }
    #expect(last?.hasSuffix(asked ?? "none") ?? (asked == nil))
  }

  @Test(
    arguments: [
      (nil, [], "1:00", false),  // the partition's default
      (1_800, [], "30:00", false), (1_801, [], "30:00", true), (1, [], "1:00", false),
      (7_200, [], "1-00:00:00", false), (7_200, [], "infinite", false), (7_200, [], "n/a", false),
      (60, ["--time=2:00:00"], "30:00", true),  // before the key, as for sbatch
      (7_200, ["--time=30"], "30:00", false), (7_200, ["-t31", "-t30"], "30:00", false),
      (nil, ["--time=0"], "30:00", true), (nil, ["-tUNLIMITED"], "30:00", true),
      (nil, ["-tsoon"], "30:00", false),  // sbatch says what is wrong
      (7_200, ["--qos=long"], "30:00", false),  // may allow more
      (7_200, ["--time-min=10"], "30:00", false),  // begins with less
    ] as [(Double?, [String], String, Bool)])
  func `are told of a time that no partition of the tasks allows`(
    seconds: Double?, options: [String], limit: String, isTooLong: Bool
  ) async throws {
    try say("sinfo", "echo '\(limit)|main*'; echo '30-00:00:00|other'")
    let problem = try await scheduler { ($0.timeSeconds, $0.sbatch) = (seconds, options) }
      .timeProblem()
    #expect((problem != nil) == isTooLong, "\(problem ?? "")")
  }

  @Test func `are told of a time where one of several partitions allows it`() async throws {
    try say("sinfo", "echo '30:00|long'; echo '2:00:00|night'")
    func problem(_ seconds: Double) async throws -> String? {
      try await scheduler { ($0.partition, $0.timeSeconds) = ("long,night", seconds) }.timeProblem()
    }
    #expect(try await problem(7_200) == nil)
    #expect(
      try await problem(7_201) == "a task asks for 121 min, and may take 120 min in its partition")
  }

  @Test(
    arguments: [
      ("30", 30), ("30:00", 30), ("30:01", 31), ("1:00:00", 60), ("2-3", 3_060),
      ("2-3:04", 3_064), ("1-00:00:00", 1_440), ("0", 0), ("infinite", .infinity),
      ("INFINITE", .infinity), ("", nil), ("n/a", nil), ("1:2:3:4", nil), ("1-2-3", nil),
      ("-5", nil), ("1-", nil), ("1:", nil),
    ] as [(String, Double?)])
  func `have times of days, hours, minutes and seconds`(text: String, minutes: Double?) {
    #expect(SlurmScheduler.minutes(text) == minutes)
  }

  @Test func `get no options from the surroundings of whoever starts them`() async throws {
    let names = ["SQUEUE_STATES", "SBATCH_WAIT", "SINFO_FORMAT", "SCANCEL_STATE"]
    for name in names { setenv(name, "x", 1) }
    defer { for name in names { unsetenv(name) } }
    for command in ["squeue", "sbatch", "sinfo", "scancel"] {
      try say(command, "env > \"$0.environment\"")
    }
    _ = try? await scheduler().tasks(of: ["000001-ab"])
    _ = try? await scheduler().submit(array, [0], after: [], isOfLargeStore: false)
    _ = try? await scheduler().machines()
    await scheduler().cancel(["000001-ab"])
    for command in ["squeue", "sbatch", "sinfo", "scancel"] {
      let text = try String(
        contentsOfFile: folder.appending("\(command).environment").string, encoding: .utf8)
      #expect(text.contains("PATH="))
      for name in names { #expect(!text.contains(name + "="), "\(command)") }
    }
  }

  /// As Slurm 22.05 was seen to take them.
  @Test(arguments: [
    ("/p/a b", "/p/a b"),
    ("/p/50%j", "/p/50%%j"),  // else the number of the job
    ("/p/a\\b", "/p/a\\\\b"),  // else none
    ("/p/50%j\\b", "/p/50%j\\\\b"),  // no symbol where there is a backslash
  ])
  func `write where the array is, whatever its folder's name has in it`(
    folder: String, pattern: String
  ) async throws {
    _ = try await scheduler().submit(
      BundleFolder(FilePath(folder)), [0], after: [], isOfLargeStore: false)
    let found = try arguments(of: "sbatch")
    #expect(found.contains("--output=\(pattern)/tasks.log"))
    #expect(found.contains("--chdir=\(folder)"))
  }

  @Test func `throttle arrays where the machines are counted`() async throws {
    try say("squeue", "echo 'godwit-000001-ab|12|3|RUNNING|None|n1'")
    _ = try await scheduler { $0.nodes = 1 }.submit(
      array, [0, 1], after: ["000001-ab"], isOfLargeStore: true)
    let found = try arguments(of: "sbatch")
    #expect(found.contains("--array=0-1%2"), "\(found)")
    #expect(found.contains("--dependency=afterany:12"))
    // Small stores give way to the steps of a large one, and nobody else's task to those.
    #expect(!found.contains("--nice"))
  }

  @Test func `name no job as a dependency that Slurm has forgotten`() async throws {
    _ = try await scheduler().submitFollower(
      ["godwit", "run"], name: "next", in: "/p", after: ["000001-ab"], isLater: false)
    #expect(try !arguments(of: "sbatch").contains { $0.hasPrefix("--dependency") })
  }

  @Test(arguments: [
    (["000001-ab"], false, ["--dependency=afterany:12"]),
    (["000001-ab"], true, ["--begin=now+300", "--dependency=afterany:12"]),
    ([], false, ["--begin=now+30"]), ([], true, ["--begin=now+300"]),
  ])
  func `begin no next start at once`(after: [String], isLater: Bool, waits: [String]) async throws {
    try say("squeue", "echo 'godwit-000001-ab|12|3|RUNNING|None|n1'")
    _ = try await scheduler().submitFollower(
      ["godwit", "run"], name: "next", in: "/p", after: after, isLater: isLater)
    let found = try arguments(of: "sbatch")
    #expect(
      found.filter { $0.hasPrefix("--begin") || $0.hasPrefix("--dependency") } == waits)
  }

  @Test func `say which tasks are there, by the array's number and never by the job's`()
    async throws
  {
    // The last task of an array has the number of the array itself.
    try say(
      "squeue",
      "echo 'godwit-000001-ab|12|0|RUNNING|None|n1'; echo 'godwit-000001-ab|12|9|PENDING|Resources|'"
        + "; echo 'other|13|0|RUNNING|None|n1'; echo 'godwit-000001-ab|12|N/A|PENDING|x|'")
    let tasks = try #require(try await scheduler().tasks(of: ["000001-ab"]))
    #expect(tasks.keys.sorted() == ["000001-ab"])
    #expect(tasks["000001-ab"]?[0]?.phase == .running)
    #expect(tasks["000001-ab"]?[9]?.phase == .waiting)
    #expect(tasks["000001-ab"]?[9]?.name == "12_9")
    #expect(tasks["000001-ab"]?.count == 2)
  }

  @Test func `that fail are not an empty queue`() async throws {
    try say("squeue", "exit 1")
    await #expect(throws: ClusterError.self) { try await scheduler().tasks(of: ["000001-ab"]) }
    try say("squeue", "true")
    #expect(try await scheduler().tasks(of: ["000001-ab"]) == [:])
  }

  @Test func `that take no more now are not refused`() async throws {
    try say(
      "sbatch",
      "echo 'sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying' >&2; exit 1"
    )
    do {
      _ = try await scheduler().submit(array, [0], after: [], isOfLargeStore: false)
      Issue.record("it was submitted")
    } catch ClusterError.full(let message) {
      #expect(message.contains("MaxJobCount"))
    }
  }

  @Test(arguments: [
    ("Unable to contact slurm controller (connect failure)", true),
    ("Batch job submission failed: Socket timed out on send/recv operation", true),
    ("Batch job submission failed: Invalid account specified", false),
  ])
  func `that reach nobody are not refused`(message: String, isSilent: Bool) async throws {
    try say("sbatch", "echo 'sbatch: error: \(message)' >&2; exit 1")
    do {
      _ = try await scheduler().submit(array, [0], after: [], isOfLargeStore: false)
      Issue.record("it was submitted")
    } catch ClusterError.unanswered {
      #expect(isSilent)
    } catch ClusterError.scheduler {
      #expect(!isSilent)
    }
  }

  @Test(.timeLimit(.minutes(5))) func `are ended with whoever waits for them`() async throws {
    try say("squeue", "exec sleep 1000")
    let scheduler = scheduler()
    let task = Task { try await scheduler.tasks(of: ["000001-ab"]) }
    try await Task.sleep(for: .milliseconds(300))
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test func `that refuse say why`() async throws {
    try say("sbatch", "echo 'sbatch: error: invalid partition specified: nihgt' >&2; exit 1")
    let error = await #expect(throws: ClusterError.self) {
      try await scheduler().submit(array, [0], after: [], isOfLargeStore: false)
    }
    #expect("\(error.map(String.init(describing:)) ?? "")".contains("nihgt"))
  }

  @Test func `cancel by names, which no other job has`() async throws {
    await scheduler().cancel(["000001-ab", "000002-cd"])
    #expect(
      try arguments(of: "scancel")
        == ["--quiet", "--jobname=godwit-000001-ab", "--quiet", "--jobname=godwit-000002-cd"])
  }
}

@Suite struct `A shared volume` {
  @Test(arguments: [
    ("nfs4", "rw,vers=4.2,local_lock=none", false),
    ("nfs", "rw,vers=3,local_lock=all", true),  // locks of one machine alone
    ("nfs", "rw,vers=3,nolock", true),
    ("lustre", "rw,flock,lazystatfs", false),
    ("lustre", "rw,localflock", true),
    ("lustre", "rw", true),  // flock fails
    ("cifs", "rw", true),
    ("ext4", "rw", false),  // one that is exported, or a trial on one machine
  ])
  func `is refused where its locks hold on one machine alone`(
    type: String, options: String, isRefused: Bool
  ) throws {
    let mounts = """
      22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
      40 22 0:50 / /srv rw,relatime shared:1 - \(type) server:/srv \(options)
      """
    let volume = try #require(MountTable(mounts).volume(of: "/srv/p/state" as String))
    #expect(volume.type == type)
    #expect((volume.danger != nil) == isRefused)
    #expect(MountTable(mounts).volume(of: "/srvother" as String)?.type == "ext4")
  }

  @Test(arguments: [
    (#"/srv/two\040words"#, "/srv/two words/s"), (#"/srv/a\134b"#, #"/srv/a\b"#),
    (#"/srv/a\012b"#, "/srv/a\nb/c"), (#"/srv/é"#, "/srv/é/s"),
  ])
  func `is found by the name that the kernel writes with digits`(place: String, path: String) {
    let mounts = """
      22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw
      40 22 0:50 / \(place) rw,relatime shared:1 master:2 - fuse.sshfs u@h:/ rw
      """
    #expect(MountTable(mounts).volume(of: path)?.type == "fuse.sshfs")
  }

  @Test func `is the one mounted last where two are at one place`() {
    let mounts = """
      40 22 0:50 / /srv rw - nfs4 server:/srv rw
      41 40 0:51 / /srv rw - cifs //server/srv rw
      42 41 0:52 / / rw - ext4 /dev/sda1 rw
      """
    #expect(MountTable(mounts).volume(of: "/srv/s" as String)?.type == "cifs")
  }

  @Test func `is that of the mount below which a path lies, whatever their names`() {
    let mounts = """
      22 1 8:1 / / rw - ext4 /dev/sda1 rw
      40 22 0:50 / /srv\u{6DD} rw,relatime shared:1 - nfs server:/srv rw,nolock
      41 22 0:51 / /srv/e\u{301} rw - tmpfs  rw
      """
    for (path, type) in [
      ("/srv\u{6DD}/a", "nfs"), ("/srv\u{6DD}", "nfs"), ("/srv/e\u{301}/a", "tmpfs"),
      ("/srv/\u{E9}/a", "ext4"), ("/srv", "ext4"),
    ] {
      #expect(MountTable(mounts).volume(of: path)?.type == type, "\(path)")
    }
  }
}

@Suite struct `A file of the kernel` {
  @Test func `is read to its end, in however many pieces it comes`() throws {
    // Some hundred lines, of which one read gives a page's worth; the stack is among the last.
    let text = try KernelFile.text(of: "/proc/self/maps")
    #expect(text.utf8.count > 8_192)
    #expect(text.contains("[stack]") && text.hasSuffix("\n"))
  }
}

@Suite struct `What machines say of a shared file system` {
  private func answer(_ node: String) -> ClusterProbe.Answer {
    ClusterProbe.Answer(
      node: node, gotLock: false, madeOnce: node == "n1", device: 7, clockSkew: 0.1,
      durableMilliseconds: 3, roots: [:], withoutLeases: [])
  }

  @Test(arguments: [
    ([], ["nodes"]),
    (["n2"], ["nodes", "renames between nodes"]),  // it was seen to replace a file, and ended
  ])
  func `is nothing good where none has answered`(torn: [String], names: [String]) {
    let findings = ClusterDoctor.findings(
      [], missing: ["n1", "n2"], torn: torn, device: 7, isOffline: false, isReplacing: true,
      leaseSeconds: 300)
    #expect(findings.map(\.name) == names)
    #expect(findings.allSatisfy { !$0.isGood })
  }

  /// - Returns: The names of what is not as it should be.
  private func bad(
    _ answers: [ClusterProbe.Answer], missing: [String] = [], torn: [String] = [],
    isOffline: Bool = false
  ) -> [String] {
    ClusterDoctor.findings(
      answers, missing: missing, torn: torn, device: 7, isOffline: isOffline, isReplacing: true,
      leaseSeconds: 300
    ).filter { !$0.isGood }.map(\.name)
  }

  @Test func `is good where nothing speaks against it`() {
    #expect(bad([answer("n1"), answer("n2")]).isEmpty)
  }

  @Test func `names what is not`() {
    func changed(_ change: (inout ClusterProbe.Answer) -> Void) -> [ClusterProbe.Answer] {
      var other = answer("n2")
      change(&other)
      return [answer("n1"), other]
    }
    #expect(bad(changed { $0.gotLock = true }) == ["locks between nodes"])
    #expect(bad(changed { $0.madeOnce = true }) == ["new files"])
    #expect(bad(changed { $0.device = 8 }) == ["volume number"])
    #expect(bad(changed { $0.clockSkew = -100 }) == ["clocks and file times"])
    #expect(bad(changed { $0.failure = "EIO" }) == ["durable write from nodes"])
    #expect(bad(changed { $0.roots = ["/s": "read-only"] }) == ["stores from nodes"])
    #expect(bad(changed { $0.otherRoots = ["/s"] }) == ["stores are the same"])
    #expect(bad(changed { $0.danger = "it is NFS" }) == ["shared file system"])
    #expect(bad(changed { $0.withoutLeases = ["/s"] }) == ["file leases from nodes"])
    #expect(bad(changed { $0.withoutLeases = ["/s"] }, isOffline: true).isEmpty)
    #expect(bad([answer("n1")], missing: ["n3"]) == ["nodes"])
    #expect(bad([answer("n1")], torn: ["n1"]) == ["renames between nodes"])
  }
}
