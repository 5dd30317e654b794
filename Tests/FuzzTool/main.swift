// libFuzzer with a parser of ours, which GODWIT_FUZZ_TARGET names. See scripts/fuzz.
import FuzzTargets
import Glibc

/// libFuzzer's own entry point. Source: "Using libFuzzer as a library", LLVM's documentation.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
  _ count: UnsafeMutablePointer<Int32>,
  _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
  _ callback: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32
) -> Int32

if CommandLine.arguments.contains("--list") {
  for target in FuzzTarget.allCases { print(target.rawValue) }
  exit(0)
}

private let target: FuzzTarget = {
  let name = getenv("GODWIT_FUZZ_TARGET").map { String(cString: $0) } ?? ""
  guard let target = FuzzTarget(rawValue: name) else {
    print("GODWIT_FUZZ_TARGET names no target. --list lists them.")
    exit(64)
  }
  return target
}()

var count = CommandLine.argc
var arguments = CommandLine.unsafeArgv
_ = target
exit(
  runDriver(&count, &arguments) { bytes, count in
    target.run(Array(UnsafeBufferPointer(start: bytes, count: count)))
    return 0
  })
