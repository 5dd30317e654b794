import Foundation
import PackagePlugin

/// Says which commit an executable is built from, for `--version`.
///
/// Package.swift could ask, too, and SwiftPM would keep the first answer for as long as that file
/// stays the same.
@main
struct BuildCommit: BuildToolPlugin {
  /// Writes the file only where it changes, so that nothing is compiled again without need. Another
  /// package's clone around an unpacked archive of this one is not meant.
  private static let script = """
    top=$(git -C "$1" rev-parse --show-toplevel 2>/dev/null) || top=
    commit=nil modified=false
    if [ -n "$top" ] && [ "$(cd "$top" && pwd -P)" = "$(cd "$1" && pwd -P)" ]; then
      commit="\\"$(git -C "$1" rev-parse --verify -q HEAD)\\""
      git -C "$1" diff --quiet HEAD 2>/dev/null || modified=true
    fi
    text="enum BuildCommit {
      static let hash: String? = $commit
      static let isModified = $modified
    }"
    mkdir -p "$2"
    [ "$(cat "$2/BuildCommit.swift" 2>/dev/null)" = "$text" ] || echo "$text" > "$2/BuildCommit.swift"
    """

  func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
    let folder = context.pluginWorkDirectoryURL.appending(path: "Commit")
    return [
      .prebuildCommand(
        displayName: "Asking git for the commit",
        executable: URL(filePath: "/bin/sh"),
        arguments: [
          "-c", Self.script, "sh", context.package.directoryURL.path(percentEncoded: false),
          folder.path(percentEncoded: false),
        ], outputFilesDirectory: folder)
    ]
  }
}
