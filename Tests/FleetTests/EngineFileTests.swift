import Foundation
import SystemPackage
import Testing

@testable import GodwitFleet

@Suite struct `The key engine of a pipeline's file` {
  private func read(_ engine: String) throws -> Pipeline {
    let text = "stores: { roots: /a }\nmodels: m\n" + engine
    return try Pipeline(bytes: Array(text.utf8), file: "/srv/Pipelines/nightly/pipeline.yaml")
  }

  @Test(arguments: [
    ("", Engine.local),  // without the key
    ("engine: local", .local),
    ("engine: slurm", .slurm),
    ("engine: array", .array),
    ("engine: { slurm: {} }", .slurm),
    ("engine: { array: { bundle: { stores: 5 } } }", .array),
  ])
  func `says where the work is done`(text: String, engine: Engine) throws {
    #expect(try read(text).engine == engine)
  }

  @Test func `has a default for every key of a cluster`() throws {
    let settings = try read("engine: slurm").cluster
    #expect(settings == ClusterSettings())
    #expect(settings.bundleStores == 2_000)
    #expect(settings.bundleBytes == 1 << 30)
    #expect(settings.arrayMax == 1_000)
  }

  @Test func `says how work is cut and submitted`() throws {
    let settings = try read(
      """
      engine:
        slurm:
          partition: night
          account: team-7
          nodes: 8
          time: 1h30m
          bundle: { stores: 100, bytes: 64MiB }
          array-max: 500
          sbatch: [--qos=low, --mem=4G]
          environment: [LIBRARY_HOME, _a1]
      """
    ).cluster
    var expected = ClusterSettings()
    (expected.partition, expected.account, expected.nodes) = ("night", "team-7", 8)
    (expected.timeSeconds, expected.bundleStores, expected.bundleBytes) = (5_400, 100, 64 << 20)
    (expected.arrayMax, expected.sbatch) = (500, ["--qos=low", "--mem=4G"])
    expected.environment = ["LIBRARY_HOME", "_a1"]
    #expect(settings == expected)
  }

  @Test(arguments: [
    "--qos=low", "-plong", "--exclusive", "--exclusive=user", "--nice=5", "-wn1", "--nodelist=n1",
    "--exclude=n2,n[3-5]", "-x/etc/nodes", "-plong,night",
  ])
  func `may give options of sbatch that say where tasks run`(option: String) throws {
    #expect(try read("engine: { slurm: { sbatch: ['\(option)'] } }").cluster.sbatch == [option])
  }

  @Test(arguments: [
    ("engine: slrum", "slrum"),  // misspelt
    ("engine: { slurm: {}, array: {} }", "one of the last two"),  // both
    ("engine: { slurm: { partitions: a } }", "partition"),  // an unknown key
    ("engine: { array: { partition: a } }", "partition"),  // a key of another engine
    ("engine: { slurm: { nodes: 0 } }", "nodes"),  // below the range
    ("engine: { slurm: { array-max: 1001 } }", "array-max"),  // above it
    ("engine: { slurm: { bundle: {} } }", "stores, or bytes"),  // nothing
    ("engine: { slurm: { partition: 'a b' } }", "not a name"),  // would be two arguments
    ("engine: { slurm: { sbatch: --qos=low } }", "list"),  // not a list
    ("engine: { slurm: { sbatch: [hello] } }", "not an option"),  // a script's name
    ("engine: { slurm: { environment: HOME } }", "list"),  // not a list
    ("engine: { slurm: { environment: [A=1] } }", "not the name"),  // a value
    ("engine: { slurm: { environment: ['A,B'] } }", "not the name"),  // two
    ("engine: { slurm: { environment: [ALL] } }", "not the name"),  // a word of sbatch's
    ("engine: { slurm: { sbatch: [--array=1-5] } }", "--qos="),
    ("engine: { slurm: { sbatch: [-a1-5] } }", "may give"),  // ours, in its short form
    ("engine: { slurm: { sbatch: [--arr=1-5] } }", "may give"),  // shortened
    ("engine: { slurm: { sbatch: [--test-only] } }", "may give"),  // nothing would be submitted
    ("engine: { slurm: { sbatch: [--version] } }", "may give"),
    ("engine: { slurm: { sbatch: [--hold] } }", "may give"),  // nothing would begin
    ("engine: { slurm: { sbatch: [-Hd1] } }", "may give"),  // several in one
    ("engine: { slurm: { sbatch: [--output=/x] } }", "may give"),  // the log would be elsewhere
    ("engine: { slurm: { sbatch: [-D/x] } }", "may give"),
    ("engine: { slurm: { sbatch: [--qos] } }", "may give"),  // would take the next option's place
    ("engine: { slurm: { sbatch: [-p] } }", "may give"),
    ("engine: { slurm: { sbatch: ['--qos='] } }", "may give"),
    ("engine: { slurm: { sbatch: ['--nodelist=n2,n3'] } }", "several machines"),  // a list
    ("engine: { slurm: { sbatch: ['-wn2,n3'] } }", "several machines"),
    ("engine: { slurm: { sbatch: ['--nodelist=n[1-3]'] } }", "several machines"),  // a range
    ("engine: { slurm: { sbatch: ['-wn2 n3'] } }", "several machines"),
    ("engine: { slurm: { sbatch: [-w/etc/nodes] } }", "several machines"),  // whatever the file has
  ])
  func `is refused where it cannot be meant`(text: String, said: String) throws {
    let error = #expect(throws: PipelineError.self) { try read(text) }
    #expect("\(error.map(String.init(describing:)) ?? "")".contains(said))
  }
}
